package expr

import "github.com/ebbdb/ebb/internal/bson"

func typeOperators() []Operator {
	return []Operator{
		{Name: "$isNumber", Since: "4.4", Doc: "True when its argument is an int, long, double or decimal.",
			Shape: unary(func(_ *Env, v bson.Value) (bson.Value, error) { return bson.Bool(v.IsNumber()), nil })},
		{Name: "$type", Since: "3.4", Doc: "The name of its argument's type.",
			Shape: unary(func(env *Env, v bson.Value) (bson.Value, error) { return env.String(v.Type.String()), nil })},
	}
}
