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
		{Name: "$rand", Since: "4.4.2", Doc: "A random number from 0 to before 1.", Shape: special(parseRand), Volatile: true},
		{Name: "$sampleRate", Since: "4.4.2", Doc: "True with the given probability.", Shape: unary(evalSampleRate), Volatile: true, Internal: true},
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
	sum := md5.Sum(appendHashed(b, v, ""))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

func appendHashed(b []byte, v bson.Value, key string) []byte {
	t := v.Type
	if t == bson.TypeMissing {
		t = bson.TypeNull
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(canonicalClass(t))))
	b = append(append(b, key...), 0)
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return binary.LittleEndian.AppendUint64(b, uint64(hashedLong(v)))
	case bson.TypeDecimal:
		return binary.LittleEndian.AppendUint64(b, uint64(hashedLong(v)))
	case bson.TypeObject, bson.TypeArray:
		for it := v.Doc().Iter(); it.Next(); {
			b = appendHashed(b, it.Value(), it.Key())
		}
		return append(b, 0) // the end of the object
	}
	return append(b, v.Data...)
}

func canonicalClass(t bson.Type) int { return t.Class() }

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
