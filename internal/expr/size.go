package expr

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func sizeOperators() []Operator {
	return []Operator{
		{Name: "$binarySize", Since: "4.4", Doc: "The size of a string or of binary data in bytes.", Shape: unary(evalBinarySize)},
		{Name: "$bsonSize", Since: "4.4", Doc: "The size of a document in bytes.", Shape: unary(evalBSONSize)},
	}
}

func evalBinarySize(env *Env, v bson.Value) (bson.Value, error) {
	switch {
	case v.IsNullish():
		return bson.Null, nil
	case v.Type == bson.TypeString:
		return env.Int32(int32(len(v.Str()))), nil
	case v.Type == bson.TypeBinary:
		_, data := v.Binary()
		return env.Int32(int32(len(data))), nil
	}
	return v, mongoerr.New(51276, "$binarySize requires a string or BinData argument, found: %s", v.Type)
}

func evalBSONSize(env *Env, v bson.Value) (bson.Value, error) {
	switch {
	case v.IsNullish():
		return bson.Null, nil
	case v.Type == bson.TypeObject:
		return env.Int32(int32(len(v.Data))), nil
	}
	return v, mongoerr.New(31393, "$bsonSize requires a document input, found: %s", v.Type)
}
