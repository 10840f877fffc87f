package expr

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Operator is one operator of the language: a row of its family's table.
type Operator struct {
	// Name is what stands in queries, with its dollar sign.
	Name string
	// Doc says in one sentence what the operator computes.
	Doc string
	// Since is the first MongoDB version that has it.
	Since string
	// Of is the operator that it is an old name of, which messages say; "" for none.
	Of string
	// Shape parses the arguments and evaluates.
	Shape Shape
	// Volatile operators have another value each time and are not computed when parsed.
	Volatile bool
	// Random ones are volatile because they draw a number.
	Random bool
	// Internal operators are written by the server only and not documented.
	Internal bool
}

// Shape is how an operator takes its arguments; it owns their number, their names and the errors about both.
type Shape interface {
	parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error)
}

// Operators is every operator, family by family.
func Operators() []Operator {
	return slices.Concat(
		arithmeticOperators(),
		booleanOperators(),
		comparisonOperators(),
		conditionalOperators(),
		variableOperators(),
		arrayOperators(),
		lambdaOperators(),
		rearrangeOperators(),
		typeOperators(),
		stringOperators(),
		substringOperators(),
		regexOperators(),
		objectOperators(),
		setOperators(),
		bitwiseOperators(),
		timestampOperators(),
		sizeOperators(),
		randomOperators(),
		convertOperators(),
		trigonometryOperators(),
		accumulatorOperators(),
		percentileOperators(),
		metaOperators(),
		customOperators(),
		encryptedOperators(),
		datePartOperators(),
		dateTextOperators(),
		datePartsOperators(),
		dateMathOperators(),
	)
}

// call is an operator with its arguments.
type call struct {
	op    *Operator
	args  []Expr
	names []string // of args, when they are given by name; "" for one that is not written
	eval  func(env *Env, c *call) (bson.Value, error)
	// simplify, when not nil, is asked once the arguments are folded and not all of them constant.
	simplify func(p *Parser, c *call) (Expr, error)
	// prepare, when not nil, is called once the arguments are folded: it checks those that must be constant and computes
	// state from them.
	prepare func(p *Parser, c *call) error
	state   any
	// print, when not nil, writes the call back where its names do not say how.
	print func(c *call) bson.Value
}

func (c *call) Eval(env *Env) (bson.Value, error) {
	if env.ticks >= ticksPerAsk {
		if err := env.tired(); err != nil {
			return bson.Missing, err
		}
	}
	mark := len(env.stack)
	v, err := c.eval(env, c)
	if err != nil {
		env.cut(mark)
	}
	return v, err
}

func (c *call) children() []Expr {
	return slices.DeleteFunc(slices.Clone(c.args), func(e Expr) bool { return e == nil })
}

func (c *call) Value() bson.Value {
	if c.print != nil {
		return c.print(c)
	}
	if c.names == nil {
		return bson.Build().Value(c.op.Name, valuesOf(c.args)).Doc().Value()
	}
	b := bson.Build().Object(c.op.Name)
	for i, e := range c.args {
		if e != nil && c.names[i] != "" {
			b.Value(c.names[i], e.Value())
		}
	}
	return b.End().Doc().Value()
}

func (c *call) fold(p *Parser) (Expr, error) {
	all, err := p.foldAll(c.args)
	if err != nil {
		return nil, err
	}
	if c.prepare != nil {
		if err := c.prepare(p, c); err != nil {
			return nil, err
		}
	}
	if all && !c.op.Volatile {
		return p.compute(c)
	}
	if c.simplify != nil {
		return c.simplify(p, c)
	}
	return c, nil
}

// arg evaluates argument i; one that was not given is missing.
func (c *call) arg(env *Env, i int) (bson.Value, error) {
	if c.args[i] == nil {
		return bson.Missing, nil
	}
	return c.args[i].Eval(env)
}

// unary takes one argument.
type unary func(env *Env, v bson.Value) (bson.Value, error)

func (f unary) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	return p.positional(op, arg, scope, 1, 1, func(env *Env, c *call) (bson.Value, error) {
		v, err := c.args[0].Eval(env)
		if err != nil {
			return v, err
		}
		return f(env, v)
	})
}

// dyadic takes two arguments.
type dyadic func(env *Env, a, b bson.Value) (bson.Value, error)

func (f dyadic) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	return p.positional(op, arg, scope, 2, 2, func(env *Env, c *call) (bson.Value, error) {
		live := env.live
		a, err := env.keep(c.args[0])
		if err != nil {
			return a, err
		}
		b, err := c.args[1].Eval(env)
		env.live = live
		if err != nil {
			return b, err
		}
		return f(env, a, b)
	})
}

// many is the largest number of arguments of an operator that takes any number.
const many = 1 << 30

// nary takes between min and max arguments, all of which are evaluated.
type nary struct {
	min, max int
	of       func(env *Env, args []bson.Value) (bson.Value, error)
}

func (s nary) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	return p.positional(op, arg, scope, s.min, s.max, func(env *Env, c *call) (bson.Value, error) {
		vs, mark, err := env.evalAll(c.args)
		if err != nil {
			return bson.Missing, err
		}
		v, err := s.of(env, vs)
		env.stack = env.stack[:mark]
		return v, err
	})
}

// commutative is an nary operator that may take its arguments in any order: the constants among them are computed together,
// and last.
type commutative struct{ nary }

func (s commutative) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	e, err := s.nary.parse(p, op, arg, scope)
	if err != nil {
		return nil, err
	}
	e.(*call).simplify = foldConstants
	return e, nil
}

func foldConstants(p *Parser, c *call) (Expr, error) {
	var rest, constants []Expr
	for _, e := range c.args {
		if _, ok := Constant(e); ok {
			constants = append(constants, e)
		} else {
			rest = append(rest, e)
		}
	}
	if len(constants) > 1 {
		e, err := p.compute(&call{op: c.op, args: constants, eval: c.eval})
		if err != nil {
			return nil, err
		}
		constants = []Expr{e}
	}
	c.args = append(rest, constants...)
	return c, nil
}

// spread is the expression form of an accumulator: it takes any number of arguments, or one that is an array of them.
type spread func(env *Env, args []bson.Value) (bson.Value, error)

func (f spread) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	return p.positional(op, arg, scope, 0, many, func(env *Env, c *call) (bson.Value, error) {
		vs, mark, err := env.evalAll(c.args)
		if err != nil {
			return bson.Missing, err
		}
		defer env.cut(mark)
		if len(vs) == 1 && vs[0].Type == bson.TypeArray {
			vs, _ = env.elements(vs[0])
		}
		return f(env, vs)
	})
}

// lazy takes between min and max arguments and evaluates them itself.
type lazy struct {
	min, max int
	eval     func(env *Env, c *call) (bson.Value, error)
	simplify func(p *Parser, c *call) (Expr, error)
}

func (s lazy) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	c, err := p.positional(op, arg, scope, s.min, s.max, s.eval)
	if err != nil {
		return nil, err
	}
	c.(*call).simplify = s.simplify
	return c, nil
}

// positional parses the arguments of op as an array or as the one that stands in its place.
func (p *Parser) positional(op *Operator, arg bson.Value, scope *Scope, least, most int,
	eval func(env *Env, c *call) (bson.Value, error)) (Expr, error) {
	args, err := p.parseAll(arg, scope)
	if err != nil {
		return nil, err
	}
	if n := len(args); n < least || n > most {
		return nil, arityError(cmp.Or(op.Of, op.Name), n, least, most)
	}
	return &call{op: op, args: args, eval: eval}, nil
}

func arityError(name string, n, least, most int) error {
	switch {
	case least == most:
		return mongoerr.New(16020, "Expression %s takes exactly %d arguments. %d were passed in.", name, least, n)
	case most == many:
		return mongoerr.New(28667, "Expression %s takes at least %d arguments, but %d were passed in.", name, least, n)
	}
	return mongoerr.New(28667, "Expression %s takes at least %d arguments, and at most %d, but %d were passed in.", name, least, most, n)
}

// param is an argument given by name.
type param struct {
	name    string
	missing mongoerr.Code // the error when it is not given; 0 when it need not be
}

// lacksParameter is what most operators say of a parameter that they lack, with the names of both.
const lacksParameter = "Missing '%[2]s' parameter to %[1]s"

// named takes its arguments as the fields of an object.
type named struct {
	params    []param
	notObject mongoerr.Code
	echoes    bool // a message says what there is in the place of the object
	unknown   mongoerr.Code
	lacking   string // says of an operator that it lacks a parameter; "" for what most say
	eval      func(env *Env, c *call) (bson.Value, error)
	of        func(env *Env, args []bson.Value) (bson.Value, error) // instead of eval: all evaluated
	prepare   func(p *Parser, c *call) error
}

func (s named) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	switch {
	case arg.Type == bson.TypeObject:
	case s.echoes:
		return nil, mongoerr.New(s.notObject, "specification must be an object; found %s: %s", op.Name, arg)
	default:
		return nil, mongoerr.New(s.notObject, "%s requires an object as an argument, found: %s", op.Name, arg.Type)
	}
	c := &call{op: op, args: make([]Expr, len(s.params)), names: s.names(), eval: s.eval, prepare: s.prepare}
	if s.of != nil {
		c.eval = s.evalAll
	}
	for it := arg.Doc().Iter(); it.Next(); {
		i := slices.Index(c.names, it.Key())
		if i < 0 {
			return nil, mongoerr.New(s.unknown, "Unrecognized argument to %s: %s", op.Name, it.Key())
		}
		e, err := p.parse(it.Value(), scope)
		if err != nil {
			return nil, err
		}
		c.args[i] = e
	}
	for i, x := range s.params {
		if c.args[i] == nil && x.missing != 0 {
			return nil, mongoerr.New(x.missing, cmp.Or(s.lacking, lacksParameter), op.Name, x.name)
		}
	}
	return c, nil
}

func (s named) names() []string {
	out := make([]string, len(s.params))
	for i, x := range s.params {
		out[i] = x.name
	}
	return out
}

func (s named) evalAll(env *Env, c *call) (bson.Value, error) {
	vs, mark, err := env.evalAll(c.args)
	if err != nil {
		return bson.Missing, err
	}
	v, err := s.of(env, vs)
	env.stack = env.stack[:mark]
	return v, err
}

// special parses its argument itself.
type special func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error)

func (f special) parse(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	return f(p, op, arg, scope)
}
