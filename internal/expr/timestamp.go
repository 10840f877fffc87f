package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func timestampOperators() []Operator {
	return []Operator{
		{Name: "$tsIncrement", Since: "5.1", Doc: "The increment of a timestamp.", Shape: timestampPart("$tsIncrement", 5687302, func(_, i uint32) uint32 { return i })},
		{Name: "$tsSecond", Since: "5.1", Doc: "The seconds of a timestamp.", Shape: timestampPart("$tsSecond", 5687301, func(t, _ uint32) uint32 { return t })},
	}
}

func timestampPart(op string, code mongoerr.Code, part func(t, i uint32) uint32) unary {
	return func(env *Env, v bson.Value) (bson.Value, error) {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeTimestamp {
			return v, mongoerr.New(code, " Argument to %s must be a timestamp, but is %s", op, v.Type)
		}
		return env.Int64(int64(part(v.Timestamp()))), nil
	}
}
