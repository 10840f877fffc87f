package expr

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func arrayOperators() []Operator {
	return []Operator{
		{Name: "$arrayElemAt", Since: "3.2", Doc: "The element of an array at a position, from the end when negative.", Shape: dyadic(evalElemAt)},
		{Name: "$concatArrays", Since: "3.2", Doc: "The elements of all arrays in one.", Shape: nary{0, many, evalConcatArrays}},
		{Name: "$in", Since: "3.4", Doc: "True when a value is in an array.", Shape: dyadic(evalIn)},
		{Name: "$indexOfArray", Since: "3.4", Doc: "The first position of a value in an array, or -1.", Shape: nary{2, 4, evalIndexOfArray}},
		{Name: "$isArray", Since: "3.2", Doc: "True when its argument is an array.",
			Shape: unary(func(_ *Env, v bson.Value) (bson.Value, error) { return bson.Bool(v.Type == bson.TypeArray), nil })},
		{Name: "$range", Since: "3.4", Doc: "The ints from a start to before an end, by a step.", Shape: nary{2, 3, evalRange}},
		{Name: "$reverseArray", Since: "3.4", Doc: "An array in the opposite order.", Shape: unary(evalReverseArray)},
		{Name: "$size", Since: "2.6", Doc: "The number of elements of an array.", Shape: unary(evalSize)},
		{Name: "$slice", Since: "3.2", Doc: "Some elements of an array.", Shape: nary{2, 3, evalSlice}},
	}
}

func evalElemAt(env *Env, array, at bson.Value) (bson.Value, error) {
	if array.IsNullish() || at.IsNullish() {
		return bson.Null, nil
	}
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(28689, "$arrayElemAt's first argument must be an array, but is %s", array.Type)
	}
	if !at.IsNumber() {
		return at, mongoerr.New(28690, "$arrayElemAt's second argument must be a numeric value, but is %s", at.Type)
	}
	i, ok := int32Of(at)
	if !ok {
		return at, mongoerr.New(28691, "$arrayElemAt's second argument must be representable as a 32-bit integer: %s", at)
	}
	return env.elementAt(array, int(i)), nil
}

func evalConcatArrays(env *Env, args []bson.Value) (bson.Value, error) {
	size := 0
	for _, v := range args {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(28664, "$concatArrays only supports arrays, not %s", v.Type)
		}
		size += len(v.Data) - len(bson.EmptyDoc)
	}
	if err := checkSize(size); err != nil { // names of elements get longer only
		return bson.Missing, err
	}
	mark := len(env.stack)
	for _, v := range args {
		env.elements(v)
	}
	return env.arrayFrom(mark)
}

func evalIn(env *Env, v, array bson.Value) (bson.Value, error) {
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(40081, "$in requires an array as a second argument, found: %s", array.Type)
	}
	for it := array.Doc().Iter(); it.Next(); {
		if env.Compare(v, it.Value()) == 0 {
			return bson.True, nil
		}
	}
	return bson.False, nil
}

func evalIndexOfArray(env *Env, args []bson.Value) (bson.Value, error) {
	array := args[0]
	if array.IsNullish() {
		return bson.Null, nil
	}
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(40090, "$indexOfArray requires an array as a first argument, found: %s", array.Type)
	}
	bounds := [2]int{0, math.MaxInt32}
	for i, v := range args[2:] {
		n, ok := int32Of(v)
		if !ok {
			return v, mongoerr.New(9711600, "$indexOfArray requires an integral %s index, found a value of type: %s, with value: %s",
				[]string{"starting", "ending"}[i], v.Type, v)
		}
		if n < 0 {
			return v, mongoerr.New(9711601, "$indexOfArray requires a nonnegative %s index, found: %s", []string{"starting", "ending"}[i], v.Computed())
		}
		bounds[i] = int(n)
	}
	i := 0
	for it := array.Doc().Iter(); it.Next() && i < bounds[1]; i++ {
		if i >= bounds[0] && env.Compare(it.Value(), args[1]) == 0 {
			return env.Int32(int32(i)), nil
		}
	}
	return env.Int32(-1), nil
}

func evalRange(env *Env, args []bson.Value) (bson.Value, error) {
	names := [3]string{"starting", "ending", "step"}
	bounds := [3]int64{0, 0, 1}
	for i, v := range args {
		if !v.IsNumber() {
			return v, mongoerr.New(mongoerr.Code(34443+2*i), "$range requires a numeric %s value, found value of type: %s", names[i], v.Type)
		}
		n, ok := int32Of(v)
		if !ok {
			return v, mongoerr.New(mongoerr.Code(34444+2*i), "$range requires a %s value that can be represented as a 32-bit integer, found value: %s", names[i], v.Computed())
		}
		bounds[i] = int64(n)
	}
	start, end, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return args[2], mongoerr.New(34449, "$range requires a non-zero step value")
	}
	count := max(0, (end-start+step-sign64(step))/step)
	if bytes := count * 16; bytes > MaxArrayBytes {
		return args[0], mongoerr.New(mongoerr.ExceededMemoryLimit,
			"$range would use too much memory (%d bytes) and cannot spill to disk. Memory limit: %d bytes", bytes, MaxArrayBytes)
	}
	mark := len(env.stack)
	for n := start; count > 0; n, count = n+step, count-1 {
		env.stack = append(env.stack, env.Int32(int32(n)))
		if err := env.tick(); err != nil {
			return bson.Missing, err
		}
	}
	return env.arrayFrom(mark)
}

func sign64(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}

func evalReverseArray(env *Env, v bson.Value) (bson.Value, error) {
	if v.IsNullish() {
		return bson.Null, nil
	}
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(34435, "The argument to $reverseArray must be an array, but was of type: %s", v.Type)
	}
	vs, mark := env.elements(v)
	slices.Reverse(vs)
	return env.arrayFrom(mark)
}

func evalSize(env *Env, v bson.Value) (bson.Value, error) {
	if v.Type != bson.TypeArray {
		return v, mongoerr.New(17124, "The argument to $size must be an array, but was of type: %s", v.Type)
	}
	return env.Int32(int32(env.placesOf(v).Count())), nil
}

func evalSlice(env *Env, args []bson.Value) (bson.Value, error) {
	array := args[0]
	if array.IsNullish() || args[1].IsNullish() {
		return bson.Null, nil
	}
	if array.Type != bson.TypeArray {
		return array, mongoerr.New(28724, "First argument to $slice must be an array, but is of type: %s", array.Type)
	}
	n, err := sliceArgument(args[1], "Second", 28725)
	if err != nil {
		return array, err
	}
	places := env.placesOf(array)
	size := int64(math.MaxInt32) // more than there are: those from the first on need not be counted
	if n < 0 {
		size = int64(places.Count())
	}
	start, end := int64(0), n
	if n < 0 {
		start, end = max(0, size+n), size
	}
	if len(args) == 3 {
		if args[2].IsNullish() {
			return bson.Null, nil
		}
		count, err := sliceArgument(args[2], "Third", 28727)
		if err != nil {
			return array, err
		}
		if count <= 0 {
			return array, mongoerr.New(28729, "Third argument to $slice must be positive: %s", args[2])
		}
		start = n
		if n < 0 {
			start = max(0, size+n)
		}
		end = start + count
	}
	start, end = min(start, size), min(end, size)
	mark := len(env.stack)
	env.stack = places.Values(env.stack, int(start), int(end))
	env.ticks += (len(env.stack) - mark) / perTick
	return env.arrayFrom(mark)
}

func sliceArgument(v bson.Value, which string, code mongoerr.Code) (int64, error) {
	if !v.IsNumber() {
		return 0, mongoerr.New(code, "%s argument to $slice must be numeric, but is of type: %s", which, v.Type)
	}
	n, ok := int32Of(v)
	if !ok {
		return 0, mongoerr.New(code+1, "%s argument to $slice can't be represented as a 32-bit integer: %s", which, v.Computed())
	}
	return int64(n), nil
}
