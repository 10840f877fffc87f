package expr

import (
	"crypto/md5"
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func randomOperators() []Operator {
	return []Operator{
		{Name: "$rand", Since: "4.4.2", Doc: "A random number from 0 to before 1.", Shape: special(parseRand), Volatile: true, Random: true},
		{Name: "$sampleRate", Since: "4.4.2", Doc: "True with the given probability.", Shape: unary(evalSampleRate), Volatile: true, Random: true, Internal: true},
		{Name: "$toHashedIndexKey", Since: "4.4", Doc: "The hash of a value as hashed indexes compute it.", Shape: unary(evalHashedKey)},
	}
}

func parseRand(_ *Parser, op *Operator, arg bson.Value, _ *Scope) (Expr, error) {
	if arg.Type != bson.TypeObject && arg.Type != bson.TypeArray {
		return nil, mongoerr.New(10065, "invalid parameter: expected an object ($rand)")
	}
	if !arg.Doc().IsEmpty() {
		return nil, mongoerr.New(3040501, "$rand does not currently accept arguments")
	}
	return &call{op: op, names: []string{}, eval: func(env *Env, _ *call) (bson.Value, error) { return env.Double(env.Rand()), nil }}, nil
}

func evalSampleRate(env *Env, v bson.Value) (bson.Value, error) {
	if !v.IsNumber() || v.AsDouble() < 0 || v.AsDouble() > 1 {
		return v, mongoerr.New(mongoerr.BadValue, "numeric argument to $sampleRate must be in [0, 1]")
	}
	return bson.Bool(env.Rand() < v.AsDouble()), nil
}

func evalHashedKey(env *Env, v bson.Value) (bson.Value, error) {
	return env.Int64(HashedKey(v)), nil
}

// HashedKey is the hash of v that hashed indexes and shard keys use: the first eight bytes of an MD5 over type and bytes,
// numbers taken as longs.
func HashedKey(v bson.Value) int64 {
	b := binary.LittleEndian.AppendUint32(nil, 0) // the seed
	sum := md5.Sum(appendHashed(b, v, nil))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// appendHashed appends what is hashed of v; name is that of a field in a document, with its zero.
func appendHashed(b []byte, v bson.Value, name []byte) []byte {
	t := v.Type
	if t == bson.TypeMissing {
		t = bson.TypeNull
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(t.Class())))
	b = append(b, name...)
	d := v.Doc()
	switch {
	case t.IsNumber():
		return binary.LittleEndian.AppendUint64(b, uint64(hashedLong(v)))
	case t == bson.TypeCodeWithScope:
		var code string
		code, d = v.CodeWithScope()
		b = append(b, code...)
	case t != bson.TypeObject && t != bson.TypeArray:
		return append(b, v.Data...)
	}
	for it := d.Iter(); it.Next(); {
		b = appendHashed(b, it.Value(), append([]byte(it.Key()), 0))
	}
	return binary.LittleEndian.AppendUint32(b, 0) // the end counts as an element
}

func hashedLong(v bson.Value) int64 {
	switch v.Type {
	case bson.TypeDouble:
		f := v.Double()
		switch {
		case math.IsNaN(f):
			return 0
		case f >= math.MaxInt64:
			return math.MaxInt64
		case f <= math.MinInt64:
			return math.MinInt64
		}
		return int64(f)
	case bson.TypeDecimal:
		return v.TruncInt64()
	}
	n, _ := v.AsInt64()
	return n
}
