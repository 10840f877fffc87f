package expr

import "github.com/ebbdb/ebb/internal/bson"

func booleanOperators() []Operator {
	return []Operator{
		{Name: "$and", Since: "2.2", Doc: "True when all arguments are true; later ones are not evaluated after a false one.",
			Shape: lazy{0, many, evalAnd, simplifyAnd}},
		{Name: "$or", Since: "2.2", Doc: "True when any argument is true; later ones are not evaluated after a true one.",
			Shape: lazy{0, many, evalOr, simplifyOr}},
		{Name: "$not", Since: "2.2", Doc: "True when its argument is false.",
			Shape: unary(func(_ *Env, v bson.Value) (bson.Value, error) { return bson.Bool(!v.Truthy()), nil })},
	}
}

func evalAnd(env *Env, c *call) (bson.Value, error) { return untilTruth(env, c, false) }
func evalOr(env *Env, c *call) (bson.Value, error)  { return untilTruth(env, c, true) }

// untilTruth is stop when an argument's truth is stop, else the opposite.
func untilTruth(env *Env, c *call, stop bool) (bson.Value, error) {
	for _, e := range c.args {
		v, err := e.Eval(env)
		if err != nil {
			return v, err
		}
		if v.Truthy() == stop {
			return bson.Bool(stop), nil
		}
	}
	return bson.Bool(!stop), nil
}

func simplifyAnd(_ *Parser, c *call) (Expr, error) { return decideTruth(c, false), nil }
func simplifyOr(_ *Parser, c *call) (Expr, error)  { return decideTruth(c, true), nil }

// decideTruth leaves out the constants that do not decide, and is the constant that does.
func decideTruth(c *call, stop bool) Expr {
	rest := c.args[:0]
	for _, e := range c.args {
		v, ok := Constant(e)
		switch {
		case !ok:
			rest = append(rest, e)
		case v.Truthy() == stop:
			return Literal(bson.Bool(stop))
		}
	}
	c.args = rest
	return c
}
