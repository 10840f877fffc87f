package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func variableOperators() []Operator {
	return []Operator{
		{Name: "$const", Since: "2.2", Doc: "Its argument as it is, as the server writes constants.", Shape: special(parseLiteral), Internal: true},
		{Name: "$let", Since: "2.6", Doc: "An expression in which variables have values.", Shape: special(parseLet)},
		{Name: "$literal", Since: "2.4", Doc: "Its argument as it is, not as an expression.", Shape: special(parseLiteral)},
	}
}

func parseLiteral(_ *Parser, _ *Operator, arg bson.Value, _ *Scope) (Expr, error) {
	return Literal(arg), nil
}

// let is a $let.
type let struct {
	names []string
	slots []Slot
	vars  []Expr
	in    Expr
}

func parseLet(p *Parser, _ *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(16874, "$let only supports an object as its argument")
	}
	var vars, in bson.Value
	for it := arg.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "vars":
			vars = it.Value()
		case "in":
			in = it.Value()
		default:
			return nil, mongoerr.New(16875, "Unrecognized parameter to $let: %s", it.Key())
		}
	}
	switch {
	case vars.IsMissing():
		return nil, mongoerr.New(16876, "Missing 'vars' parameter to $let")
	case in.IsMissing():
		return nil, mongoerr.New(16877, "Missing 'in' parameter to $let")
	case vars.Type != bson.TypeObject && vars.Type != bson.TypeArray:
		return nil, mongoerr.New(10065, "invalid parameter: expected an object (vars)")
	}
	l := &let{}
	inner := scope
	for it := vars.Doc().Iter(); it.Next(); {
		if err := CheckVariableName(it.Key()); err != nil {
			return nil, err
		}
		e, err := p.parse(it.Value(), scope) // the variables do not see one another
		if err != nil {
			return nil, err
		}
		var slot Slot
		inner, slot = inner.Define(it.Key())
		l.names, l.slots, l.vars = append(l.names, it.Key()), append(l.slots, slot), append(l.vars, e)
	}
	var err error
	l.in, err = p.parse(in, inner)
	return l, err
}

func (l *let) Eval(env *Env) (bson.Value, error) {
	live := env.live
	defer func() { env.live = live }()
	vs, mark, err := env.keepAll(l.vars)
	if err != nil {
		return bson.Missing, err
	}
	for i, v := range vs {
		env.Set(l.slots[i], v)
	}
	env.stack = env.stack[:mark]
	return l.in.Eval(env)
}

func (l *let) Value() bson.Value {
	b := bson.Build().Object("$let").Object("vars")
	for i, e := range l.vars {
		b.Value(l.names[i], e.Value())
	}
	return b.End().Value("in", l.in.Value()).End().Doc().Value()
}

func (l *let) children() []Expr { return append(append([]Expr(nil), l.vars...), l.in) }

func (l *let) fold(p *Parser) (Expr, error) {
	if _, err := p.foldAll(l.vars); err != nil {
		return nil, err
	}
	var err error
	if l.in, err = l.in.fold(p); err != nil {
		return nil, err
	}
	if _, ok := Constant(l.in); ok {
		return l.in, nil
	}
	return l, nil
}
