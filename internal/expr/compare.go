package expr

import "github.com/ebbdb/ebb/internal/bson"

func comparisonOperators() []Operator {
	return []Operator{
		{Name: "$cmp", Since: "2.2", Doc: "-1, 0 or 1: how the first argument compares with the second.", Shape: dyadic(evalCmp)},
		{Name: "$eq", Since: "2.2", Doc: "True when the arguments are equal.", Shape: comparison(func(c int) bool { return c == 0 })},
		{Name: "$ne", Since: "2.2", Doc: "True when the arguments are not equal.", Shape: comparison(func(c int) bool { return c != 0 })},
		{Name: "$gt", Since: "2.2", Doc: "True when the first argument is greater.", Shape: comparison(func(c int) bool { return c > 0 })},
		{Name: "$gte", Since: "2.2", Doc: "True when the first argument is not less.", Shape: comparison(func(c int) bool { return c >= 0 })},
		{Name: "$lt", Since: "2.2", Doc: "True when the first argument is less.", Shape: comparison(func(c int) bool { return c < 0 })},
		{Name: "$lte", Since: "2.2", Doc: "True when the first argument is not greater.", Shape: comparison(func(c int) bool { return c <= 0 })},
	}
}

func evalCmp(env *Env, a, b bson.Value) (bson.Value, error) {
	return env.Int32(int32(env.Compare(a, b))), nil
}

func comparison(holds func(c int) bool) dyadic {
	return func(env *Env, a, b bson.Value) (bson.Value, error) {
		return bson.Bool(holds(env.Compare(a, b))), nil
	}
}
