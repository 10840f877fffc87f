package expr

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func substringOperators() []Operator {
	return []Operator{
		{Name: "$indexOfBytes", Since: "3.4", Doc: "The first position of a string in another in bytes, or -1.", Shape: nary{2, 4, evalIndexOfBytes}},
		{Name: "$indexOfCP", Since: "3.4", Doc: "The first position of a string in another in code points, or -1.", Shape: nary{2, 4, evalIndexOfCP}},
		{Name: "$substr", Since: "2.2", Doc: "Some bytes of a string; the old name of $substrBytes.", Shape: nary{3, 3, evalSubstrBytes}, Of: "$substrBytes"},
		{Name: "$substrBytes", Since: "3.4", Doc: "Some bytes of a string.", Shape: nary{3, 3, evalSubstrBytes}},
		{Name: "$substrCP", Since: "3.4", Doc: "Some code points of a string.", Shape: nary{3, 3, evalSubstrCP}},
	}
}

func evalSubstrBytes(env *Env, args []bson.Value) (bson.Value, error) {
	const op = "$substrBytes"
	s, err := coerceText(args[0])
	if err != nil {
		return args[0], err
	}
	if !args[1].IsNumber() {
		return args[1], mongoerr.New(16034, "%s:  starting index must be a numeric type (is BSON type %s)", op, args[1].Type)
	}
	if !args[2].IsNumber() {
		return args[2], mongoerr.New(16035, "%s:  length must be a numeric type (is BSON type %s)", op, args[2].Type)
	}
	start, err := coerceLong(args[1])
	if err != nil {
		return args[1], err
	}
	n, err := coerceLong(args[2])
	if err != nil {
		return args[2], err
	}
	if start < 0 {
		return args[1], mongoerr.New(50752, "%s:  starting index must be non-negative (got: %d)", op, start)
	}
	return cutBytes(env, op, s, start, n)
}

func cutBytes(env *Env, op, s string, start, n int64) (bson.Value, error) {
	size := int64(len(s))
	if start < size && !utf8.RuneStart(s[start]) {
		return bson.Missing, mongoerr.New(28656, "%s:  Invalid range, starting index is a UTF-8 continuation byte.", op)
	}
	end := size
	if n >= 0 && n < size-start {
		end = start + n
	}
	if n >= 0 && end < size && start < size && !utf8.RuneStart(s[end]) {
		return bson.Missing, mongoerr.New(28657, "%s:  Invalid range, ending index is in the middle of a UTF-8 character.", op)
	}
	if start >= size {
		return bson.EmptyStr, nil
	}
	return env.String(s[start:end]), nil
}

// coerceLong is a number as a long: doubles are cut off, decimals rounded.
func coerceLong(v bson.Value) (int64, error) {
	outOfRange := mongoerr.New(31109, "Can't coerce out of range value %s to long", v.Computed())
	switch v.Type {
	case bson.TypeDouble:
		f := v.Double()
		if !(f >= math.MinInt64 && f < math.MaxInt64) {
			return 0, outOfRange
		}
		return int64(f), nil
	case bson.TypeDecimal:
		d := v.Decimal()
		if d.IsNaN() || d.Inf() != 0 {
			return math.MinInt64, nil
		}
		n, exact := bson.Decimal(wholeOf(d, apd.RoundHalfEven)).AsInt64()
		if !exact {
			return math.MinInt64, nil
		}
		return n, nil
	}
	n, _ := v.AsInt64()
	return n, nil
}

func evalSubstrCP(env *Env, args []bson.Value) (bson.Value, error) {
	s, err := coerceText(args[0])
	if err != nil {
		return args[0], err
	}
	at, n := args[1], args[2]
	start, whole := int32Of(at)
	if !at.IsNumber() {
		return at, mongoerr.New(34450, "$substrCP: starting index must be a numeric type (is BSON type %s)", at.Type)
	}
	if !whole {
		return at, mongoerr.New(34451, "$substrCP: starting index cannot be represented as a 32-bit integral value: %s", at.Computed())
	}
	count, whole := int32Of(n)
	switch {
	case !n.IsNumber():
		return n, mongoerr.New(34452, "$substrCP: length must be a numeric type (is BSON type %s)", n.Type)
	case !whole:
		return n, mongoerr.New(34453, "$substrCP: length cannot be represented as a 32-bit integral value: %s", n.Computed())
	case count < 0:
		return n, mongoerr.New(34454, "$substrCP: length must be a nonnegative integer.")
	case start < 0:
		return at, mongoerr.New(34455, "$substrCP: the starting index must be nonnegative integer.")
	}
	from := skipRunes(s, int(start))
	return env.String(s[from : from+skipRunes(s[from:], int(count))]), nil
}

// skipRunes is the position in bytes behind n code points.
func skipRunes(s string, n int) int {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// findArguments reads what $indexOfBytes and $indexOfCP take; ok is false when the answer is null.
func findArguments(op string, code mongoerr.Code, args []bson.Value) (s, sub string, bounds [2]int64, ok bool, err error) {
	bounds = [2]int64{0, math.MaxInt32}
	if args[0].IsNullish() {
		return "", "", bounds, false, nil
	}
	for i, v := range args[:2] {
		if v.Type != bson.TypeString {
			return "", "", bounds, false, mongoerr.New(code+mongoerr.Code(i), "%s requires a string as the %s argument, found: %s",
				op, []string{"first", "second"}[i], v.Type)
		}
	}
	for i, v := range args[2:] {
		which := []string{"starting", "ending"}[i]
		n, whole := int32Of(v)
		if !whole {
			return "", "", bounds, false, mongoerr.New(40096, "%s requires an integral %s index, found a value of type: %s, with value: %s", op, which, v.Type, v.Computed())
		}
		if n < 0 {
			return "", "", bounds, false, mongoerr.New(40097, "%s requires a nonnegative %s index, found: %s", op, which, v.Computed())
		}
		bounds[i] = int64(n)
	}
	return args[0].Str(), args[1].Str(), bounds, true, nil
}

func evalIndexOfBytes(env *Env, args []bson.Value) (bson.Value, error) {
	s, sub, bounds, ok, err := findArguments("$indexOfBytes", 40091, args)
	if err != nil || !ok {
		return bson.Null, err
	}
	start, end := bounds[0], min(bounds[1], int64(len(s)))
	if start > int64(len(s)) || start > end {
		return env.Int32(-1), nil
	}
	at := strings.Index(s[start:end], sub)
	if at >= 0 {
		at += int(start)
	}
	return env.Int32(int32(at)), nil
}

func evalIndexOfCP(env *Env, args []bson.Value) (bson.Value, error) {
	s, sub, bounds, ok, err := findArguments("$indexOfCP", 40093, args)
	if err != nil || !ok {
		return bson.Null, err
	}
	if s == "" && sub == "" && bounds[0] == 0 {
		return env.Int32(0), nil
	}
	// The match must start before the end, not end there.
	size := int64(utf8.RuneCountInString(s))
	start, end := bounds[0], min(bounds[1], size)
	if start >= end {
		return env.Int32(-1), nil
	}
	from := skipRunes(s, int(start))
	at := strings.Index(s[from:], sub)
	if at >= 0 {
		if at = int(start) + utf8.RuneCountInString(s[from:from+at]); int64(at) >= end {
			at = -1
		}
	}
	return env.Int32(int32(at)), nil
}
