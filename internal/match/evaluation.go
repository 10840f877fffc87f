package match

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func evaluationOperators() []Operator {
	return []Operator{
		{Name: "$expr", Doc: "Matches when an aggregation expression is true.", Since: "3.6", top: parseExpr},
		{Name: "$jsonSchema", Doc: "Matches documents that are valid under a JSON Schema.", Since: "3.6", top: parseJSONSchema},
		{Name: "$mod", Doc: "Matches numbers whose remainder of a division is a given one.", Since: "1.0", field: parseMod},
		{Name: "$regex", Doc: "Matches strings in which a regular expression is found.", Since: "1.0", field: parseRegex},
		{Name: "$options", Doc: "Holds the options of the $regex beside it.", Since: "1.0", field: parseRegexOptions},
		{Name: "$text", Doc: "Searches the collection's text index.", Since: "2.6", top: parseText},
		{Name: "$where", Doc: "Matches when a JavaScript function says so.", Since: "1.0", top: parseWhere},
	}
}

// Mod matches numbers that leave Remainder when divided by Divisor, both cut to whole numbers.
type Mod struct {
	Path               fieldpath.Path
	Divisor, Remainder int64
}

func (n *Mod) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *Mod) test(_ run, v bson.Value) (bool, error) {
	dividend, ok := truncated(v)
	if !ok {
		return false, nil
	}
	if n.Divisor == -1 { // the smallest long has no negative
		return n.Remainder == 0, nil
	}
	return dividend%n.Divisor == n.Remainder, nil
}

// truncated is a number cut to a whole one, when that fits a long.
func truncated(v bson.Value) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return n, true
	case bson.TypeDouble, bson.TypeDecimal:
		f := v.AsDouble()
		if math.IsNaN(f) || f >= 1<<63 || f < -(1<<63) {
			return 0, v.Type == bson.TypeDecimal && f == 1<<63 && v.TruncInt64() != math.MaxInt64
		}
		return v.TruncInt64(), true
	}
	return 0, false
}

func parseMod(_ *parsing, path fieldpath.Path, arg bson.Value, _ bson.Doc) (Node, error) {
	if arg.Type != bson.TypeArray {
		return nil, badValue("malformed mod, needs to be an array")
	}
	vs := arg.Doc().Values(nil)
	switch {
	case len(vs) == 0:
		return nil, badValue("malformed mod, not enough elements")
	case !vs[0].IsNumber():
		return nil, badValue("malformed mod, divisor not a number")
	case len(vs) == 1:
		return nil, badValue("malformed mod, not enough elements")
	case !vs[1].IsNumber():
		return nil, badValue("malformed mod, remainder not a number")
	case len(vs) > 2:
		return nil, badValue("malformed mod, too many elements")
	}
	divisor, err := coerced("divisor", vs[0])
	if err != nil {
		return nil, err
	}
	remainder, err := coerced("remainder", vs[1])
	if err != nil {
		return nil, err
	}
	if divisor == 0 {
		return nil, badValue("divisor cannot be 0")
	}
	return &Mod{path, divisor, remainder}, nil
}

func coerced(what string, v bson.Value) (int64, error) {
	if v.IsNaN() || math.IsInf(v.AsDouble(), 0) && v.Type == bson.TypeDouble || v.Type == bson.TypeDecimal && v.Decimal().Inf() != 0 {
		return 0, badValue("malformed mod, %s value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type", what)
	}
	n, ok := truncated(v)
	if !ok {
		return 0, badValue("malformed mod, %s value is invalid :: caused by :: Out of bounds coercing to integral value", what)
	}
	return n, nil
}

// Expr matches when an expression is true.
type Expr struct {
	Expr   expr.Expr
	Source bson.Value

	beside condition // must hold, too; nil for none
}

func (n *Expr) match(c run, s subject) (bool, error) {
	if c.env == nil {
		panic("match: $expr needs an Env")
	}
	c.env.Root = c.root
	v, err := n.Expr.Eval(c.env)
	if err != nil || !v.Truthy() || n.beside == nil {
		return err == nil && v.Truthy(), err
	}
	beside, err := n.beside.verdict(c)
	return err == nil && beside != fails, err
}

func (n *Expr) test(c run, _ bson.Value) (bool, error) { return n.match(c, subject{}) }

func parseExpr(p *parsing, arg bson.Value) (Node, error) {
	switch {
	case p.level != topLevel:
		return nil, badValue("$expr can only be applied to the top-level document")
	case p.Allow&AllowExpr == 0 || p.Exprs == nil:
		return nil, mongoerr.New(mongoerr.QueryFeatureNotAllowed, "$expr is not allowed in this context")
	}
	e, err := p.Exprs.Parse(arg, p.Scope)
	if err != nil {
		return nil, err
	}
	n := &Expr{Expr: e, Source: arg}
	if p.Collation != nil && !p.AsWritten {
		n.beside = conditionOf(e)
	}
	return n, nil
}
