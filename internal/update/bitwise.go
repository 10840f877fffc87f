package update

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// bitwiseOperators are the operators on the bits of integers.
func bitwiseOperators() []Operator {
	return []Operator{
		{Name: "$bit", Doc: "Computes AND, OR and XOR on an integer.", Since: "1.0", Creates: true, parse: parseBit},
	}
}

// bit is a list of operations, done in order.
type bit []bitOperation

type bitOperation struct {
	name    string
	operand int64
	long    bool
}

func parseBit(_ *parser, _ string, v bson.Value) (modifier, error) {
	if v.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.BadValue, "The $bit modifier is not compatible with a %s."+
			" You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}", v.Type)
	}
	var m bit
	for it := v.Doc().Iter(); it.Next(); {
		name, operand := it.Key(), it.Value()
		if name != "and" && name != "or" && name != "xor" {
			return nil, mongoerr.New(mongoerr.BadValue, "The $bit modifier only supports 'and', 'or', and 'xor', not '%s'"+
				" which is an unknown operator: {%s}", name, element(name, operand))
		}
		if operand.Type != bson.TypeInt32 && operand.Type != bson.TypeInt64 {
			return nil, mongoerr.New(mongoerr.BadValue, "The $bit modifier field must be an Integer(32/64 bit); a '%s'"+
				" is not supported here: {%s}", operand.Type, element(name, operand))
		}
		n, _ := operand.AsInt64()
		m = append(m, bitOperation{name, n, operand.Type == bson.TypeInt64})
	}
	if m == nil {
		return nil, mongoerr.New(mongoerr.BadValue,
			"You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}")
	}
	return m, nil
}

func (m bit) apply(a *applier, dst []byte, old bson.Value) ([]byte, bson.Type, effect, error) {
	var n int64
	switch old.Type {
	case bson.TypeMissing:
	case bson.TypeInt32, bson.TypeInt64:
		n, _ = old.AsInt64()
	default:
		return dst, 0, unchanged, mongoerr.New(mongoerr.BadValue,
			"Cannot apply $bit to a value of non-integral type.{%s} has the field %s of non-integer type %s",
			a.idText(), a.path[len(a.path)-1], old.Type)
	}
	before, long := n, old.Type == bson.TypeInt64
	for _, op := range m {
		switch op.name {
		case "and":
			n &= op.operand
		case "or":
			n |= op.operand
		case "xor":
			n ^= op.operand
		}
		long = long || op.long
	}
	if n == before && !old.IsMissing() && long == (old.Type == bson.TypeInt64) {
		return keep(dst)
	}
	if long {
		return put(dst, bson.Int64(n))
	}
	return put(dst, bson.Int32(int32(n)))
}
