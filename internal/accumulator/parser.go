package accumulator

import (
	"sync"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Operator is one row of the table.
type Operator struct {
	Name, Since, Doc string
	// Group parses it as an accumulator of $group, nil where it is none.
	Group parseGroup
	// Window parses it as a function of $setWindowFields, nil where it is none.
	Window parseWindow

	// alone says that nothing else may be given with the window function.
	alone bool
}

type parseGroup func(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error)

type maker func(init bson.Value) (Fold, error)

// Operators is the whole table.
func Operators() []Operator {
	var out []Operator
	for _, family := range [][]Operator{
		sumOperators(), extremeOperators(), endOperators(), arrayOperators(), setOperators(), objectOperators(), deviationOperators(),
		topOperators(), percentileOperators(), javascriptOperators(), rankOperators(), shiftOperators(), rateOperators(),
		fillOperators(), covarianceOperators(), movingOperators(), scaleOperators(),
	} {
		out = append(out, family...)
	}
	return out
}

// Parser reads accumulators for one operation.
type Parser struct {
	exprs    *expr.Parser
	collator bson.Collator
	keys     bson.StringKeyer
	table    map[string]*Operator
}

// NewParser makes a parser that reads arguments with exprs and compares strings by collator, whose keys are keys; nil
// compares bytes.
func NewParser(exprs *expr.Parser, collator bson.Collator, keys bson.StringKeyer) *Parser {
	return &Parser{exprs: exprs, collator: collator, keys: keys, table: table()}
}

var table = sync.OnceValue(func() map[string]*Operator {
	rows := Operators()
	t := make(map[string]*Operator, len(rows))
	for i := range rows {
		t[rows[i].Name] = &rows[i]
	}
	return t
})

// Group reads {$sum: <argument>}, the value of the field name of a $group.
func (p *Parser) Group(name string, v bson.Value, scope *expr.Scope) (*Spec, error) {
	if v.Type != bson.TypeObject || v.Doc().FirstKey() == "" || v.Doc().FirstKey()[0] != '$' {
		return nil, mongoerr.New(40234, "The field '%s' must be an accumulator object", name)
	}
	if v.Doc().Count() != 1 {
		return nil, mongoerr.New(40238, "The field '%s' must specify one accumulator", name)
	}
	opName, arg := v.Doc().FirstKey(), v.Doc().Index(0)
	op := p.table[opName]
	switch {
	case arg.Type == bson.TypeArray:
		return nil, mongoerr.New(40237, "The %s accumulator is a unary operator", opName)
	case op == nil || op.Group == nil:
		return nil, mongoerr.New(15952, "unknown group operator '%s'", opName)
	}
	return op.Group(p, op, arg, scope)
}

type growth bool

const (
	fixed growth = false
	grows growth = true
)

// one is an accumulator of one expression.
func one(make maker, g growth) parseGroup {
	return oneWith(func(*Parser) maker { return make }, g)
}

func oneWith(make func(*Parser) maker, g growth) parseGroup {
	return func(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error) {
		e, err := p.exprs.Parse(arg, scope)
		if err != nil {
			return nil, err
		}
		return &Spec{Op: op, Args: []expr.Expr{e}, Grows: bool(g), make: make(p)}, nil
	}
}

func parseCount(_ *Parser, op *Operator, arg bson.Value, _ *expr.Scope) (*Spec, error) {
	if arg.Type != bson.TypeObject || !arg.Doc().IsEmpty() {
		return nil, mongoerr.New(mongoerr.TypeMismatch, "$count takes no arguments, i.e. $count:{}")
	}
	return &Spec{Op: op, Args: []expr.Expr{expr.Literal(bson.Int32(1))}, make: newSum,
		print: func(*Spec) bson.Value { return bson.EmptyDoc.Value() }}, nil
}

// several is an accumulator of {input: <expression>, n: <expression>}.
func several(notObject mongoerr.Code, make func(*Parser) maker) parseGroup {
	return func(p *Parser, op *Operator, arg bson.Value, scope *expr.Scope) (*Spec, error) {
		if arg.Type != bson.TypeObject {
			return nil, mongoerr.New(notObject, "specification must be an object; found %s: %s", op.Name, arg)
		}
		s := &Spec{Op: op, Grows: true, make: make(p), print: printSeveral}
		var input expr.Expr
		for it := arg.Doc().Iter(); it.Next(); {
			e, err := p.exprs.Parse(it.Value(), scope)
			switch it.Key() {
			case "n":
				s.Init = e
			case "input":
				input = e
			default:
				return nil, mongoerr.New(5787901, "Unknown argument for 'n' operator: %s", it.Key())
			}
			if err != nil {
				return nil, err
			}
		}
		switch {
		case s.Init == nil:
			return nil, mongoerr.New(5787906, "Missing value for 'n'")
		case input == nil:
			return nil, mongoerr.New(5787907, "Missing value for 'input'")
		}
		s.Args = []expr.Expr{input}
		return s, checkConstantN(op.Name, s.Init)
	}
}

func printSeveral(s *Spec) bson.Value {
	return bson.Build().Value("n", s.Init.Value()).Value("input", s.Args[0].Value()).Doc().Value()
}

// checkConstantN refuses a wrong n while parsing, when it is known by then.
func checkConstantN(op string, n expr.Expr) error {
	if v, constant := expr.Constant(n); constant {
		_, err := readN(op, v)
		return err
	}
	return nil
}

// readN is the n of $firstN and its like.
func readN(_ string, v bson.Value) (int64, error) {
	n, integral := v.AsInt64()
	if !v.IsNumber() || !integral || n <= 0 {
		return 0, mongoerr.New(7548606, "Value for 'n' must be a positive integer, but found: %s", orNull(v))
	}
	return n, nil
}
