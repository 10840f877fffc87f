package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func bitwiseOperators() []Operator {
	return []Operator{
		{Name: "$bitAnd", Since: "6.3", Doc: "The bits that are set in all ints or longs.", Shape: bits("$bitAnd", -1, func(a, b int64) int64 { return a & b })},
		{Name: "$bitNot", Since: "6.3", Doc: "The bits that are not set in an int or long.", Shape: unary(evalBitNot)},
		{Name: "$bitOr", Since: "6.3", Doc: "The bits that are set in any int or long.", Shape: bits("$bitOr", 0, func(a, b int64) int64 { return a | b })},
		{Name: "$bitXor", Since: "6.3", Doc: "The bits that are set in an odd number of ints or longs.", Shape: bits("$bitXor", 0, func(a, b int64) int64 { return a ^ b })},
	}
}

func bits(op string, none int64, f func(a, b int64) int64) nary {
	return nary{0, many, func(env *Env, args []bson.Value) (bson.Value, error) {
		n, long := none, false
		for _, v := range args {
			if v.IsNullish() {
				return bson.Null, nil
			}
			if !isInt(v) {
				return v, mongoerr.New(mongoerr.TypeMismatch, "%s only supports int and long operands.", op)
			}
			long = long || v.Type == bson.TypeInt64
			x, _ := v.AsInt64()
			n = f(n, x)
		}
		if long {
			return env.Int64(n), nil
		}
		return env.Int32(int32(n)), nil
	}}
}

func evalBitNot(env *Env, v bson.Value) (bson.Value, error) {
	switch {
	case v.IsNullish():
		return bson.Null, nil
	case v.Type == bson.TypeInt32:
		return env.Int32(^v.Int32()), nil
	case v.Type == bson.TypeInt64:
		return env.Int64(^v.Int64()), nil
	case v.IsNumber():
		return v, mongoerr.New(mongoerr.TypeMismatch, "$bitNot only supports int and long, not: %s.", v.Type)
	}
	return v, mongoerr.New(28765, "$bitNot only supports numeric types, not %s", v.Type)
}
