package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func stringOperators() []Operator {
	return []Operator{
		{Name: "$concat", Since: "2.4", Doc: "All strings in one.", Shape: nary{0, many, evalConcat}},
		{Name: "$ltrim", Since: "4.0", Doc: "A string without white space, or the given characters, at its start.", Shape: trimShape(true, false)},
		{Name: "$replaceAll", Since: "4.4", Doc: "A string with all occurrences of another replaced.", Shape: replaceShape(-1)},
		{Name: "$replaceOne", Since: "4.4", Doc: "A string with the first occurrence of another replaced.", Shape: replaceShape(1)},
		{Name: "$rtrim", Since: "4.0", Doc: "A string without white space, or the given characters, at its end.", Shape: trimShape(false, true)},
		{Name: "$split", Since: "3.4", Doc: "The parts of a string between delimiters.", Shape: dyadic(evalSplit)},
		{Name: "$strLenBytes", Since: "3.4", Doc: "The length of a string in bytes.", Shape: unary(evalStrLenBytes)},
		{Name: "$strLenCP", Since: "3.4", Doc: "The length of a string in code points.", Shape: unary(evalStrLenCP)},
		{Name: "$strcasecmp", Since: "2.2", Doc: "-1, 0 or 1: how two strings compare when case does not count.", Shape: dyadic(evalStrcasecmp)},
		{Name: "$toLower", Since: "2.2", Doc: "A string in lower case.", Shape: unary(func(env *Env, v bson.Value) (bson.Value, error) {
			return changeCase(env, v, 'A', 'Z')
		})},
		{Name: "$toUpper", Since: "2.2", Doc: "A string in upper case.", Shape: unary(func(env *Env, v bson.Value) (bson.Value, error) {
			return changeCase(env, v, 'a', 'z')
		})},
		{Name: "$trim", Since: "4.0", Doc: "A string without white space, or the given characters, at both ends.", Shape: trimShape(true, true)},
	}
}

func evalConcat(env *Env, args []bson.Value) (bson.Value, error) {
	n := 0
	for _, v := range args {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeString {
			return v, mongoerr.New(16702, "$concat only supports strings, not %s", v.Type)
		}
		n += len(v.Str())
	}
	if n >= MaxStringBytes {
		return bson.Missing, errStringTooLong()
	}
	out, at := env.newString(n)
	for _, v := range args {
		at += copy(out.Data[at:], v.Str())
	}
	return out, nil
}

// newString is a string of n bytes to be filled from position at on.
func (e *Env) newString(n int) (v bson.Value, at int) {
	b := e.alloc(n + 5)
	size := uint32(n + 1)
	b[0], b[1], b[2], b[3] = byte(size), byte(size>>8), byte(size>>16), byte(size>>24)
	b[n+4] = 0
	return bson.Value{Type: bson.TypeString, Data: b}, 4
}

// changeCase changes ASCII letters only, as MongoDB does.
func changeCase(env *Env, v bson.Value, from, to byte) (bson.Value, error) {
	s, err := coerceText(v)
	if err != nil {
		return v, err
	}
	out, at := env.newString(len(s))
	for i := range len(s) {
		c := s[i]
		if c >= from && c <= to {
			c ^= 0x20
		}
		out.Data[at+i] = c
	}
	return out, nil
}

func evalStrcasecmp(env *Env, a, b bson.Value) (bson.Value, error) {
	x, err := coerceText(a)
	if err != nil {
		return a, err
	}
	y, err := coerceText(b)
	if err != nil {
		return b, err
	}
	for i := range min(len(x), len(y)) {
		if c, d := upper(x[i]), upper(y[i]); c != d {
			return env.Int32(int32(compareBytes(c, d))), nil
		}
	}
	return env.Int32(int32(sign64(int64(len(x)-len(y))) * int64(boolInt(len(x) != len(y))))), nil
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func compareBytes(a, b byte) int {
	if a < b {
		return -1
	}
	return 1
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func evalSplit(env *Env, v, by bson.Value) (bson.Value, error) {
	if v.IsNullish() || by.IsNullish() {
		return bson.Null, nil
	}
	if v.Type != bson.TypeString {
		return v, mongoerr.New(40085, "$split requires an expression that evaluates to a string as a first argument, found: %s", v.Type)
	}
	if by.Type != bson.TypeString {
		return by, mongoerr.New(10503900, "$split requires an expression that evaluates to a string as a second argument, found: %s", by.Type)
	}
	sep := by.Str()
	if sep == "" {
		return by, mongoerr.New(40087, "$split requires a non-empty separator")
	}
	seps := strings.Count(v.Str(), sep) // before there are more parts than any array holds
	if err := checkSize(arrayBytes(seps+1, emptyStringBytes) + len(v.Str()) - seps*len(sep)); err != nil {
		return v, err
	}
	mark := len(env.stack)
	for s, more := v.Str(), true; more; {
		var part string
		part, s, more = strings.Cut(s, sep)
		env.stack = append(env.stack, env.String(part))
		if err := env.tick(); err != nil {
			return v, err
		}
	}
	return env.arrayFrom(mark)
}

func evalStrLenBytes(env *Env, v bson.Value) (bson.Value, error) {
	if v.Type != bson.TypeString {
		return v, mongoerr.New(34473, "$strLenBytes requires a string argument, found: %s", v.Type)
	}
	return env.Int32(int32(len(v.Str()))), nil
}

func evalStrLenCP(env *Env, v bson.Value) (bson.Value, error) {
	if v.Type != bson.TypeString {
		return v, mongoerr.New(34471, "$strLenCP requires a string argument, found: %s", v.Type)
	}
	return env.Int32(int32(utf8.RuneCountInString(v.Str()))), nil
}

// whiteSpace is what the trim operators cut when they are not told what.
const whiteSpace = "\x00\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func trimShape(left, right bool) special {
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		return named{
			params:    []param{{"input", 50695}, {"chars", 0}},
			notObject: 50696,
			unknown:   50694,
			lacking:   "%[1]s requires an '%[2]s' field",
			eval: func(env *Env, c *call) (bson.Value, error) {
				input, err := c.arg(env, 0)
				if err != nil {
					return input, err
				}
				chars, err := c.arg(env, 1)
				if err != nil {
					return chars, err
				}
				return trim(env, c, input, chars, left, right)
			},
		}.parse(p, op, arg, scope)
	}
}

func trim(env *Env, c *call, input, chars bson.Value, left, right bool) (bson.Value, error) {
	if input.IsNullish() {
		return bson.Null, nil
	}
	if input.Type != bson.TypeString {
		return input, mongoerr.New(50699, "%s requires its input to be a string, got %s (of type %s) instead.", c.op.Name, input.Computed(), input.Type)
	}
	set := whiteSpace
	if c.args[1] != nil {
		if chars.IsNullish() {
			return bson.Null, nil
		}
		if chars.Type != bson.TypeString {
			return chars, mongoerr.New(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", c.op.Name, chars, chars.Type)
		}
		set = chars.Str()
	}
	s := input.Str()
	if left {
		s = strings.TrimLeft(s, set)
	}
	if right {
		s = strings.TrimRight(s, set)
	}
	return env.String(s), nil
}

func replaceShape(times int) special {
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		return named{
			params:    []param{{"input", 51749}, {"find", 51748}, {"replacement", 51747}},
			notObject: 51751,
			unknown:   51750,
			lacking:   "%[1]s requires '%[2]s' to be specified",
			of: func(env *Env, args []bson.Value) (bson.Value, error) {
				return replace(env, op.Name, args, times)
			},
		}.parse(p, op, arg, scope)
	}
}

func replace(env *Env, op string, args []bson.Value, times int) (bson.Value, error) {
	null := false
	for i, v := range args {
		if v.IsNullish() {
			null = true
		} else if v.Type != bson.TypeString {
			return v, mongoerr.New([]mongoerr.Code{10503904, 10503901, 10503902}[i], "%s requires that '%s' be a string, found: %s",
				op, []string{"input", "find", "replacement"}[i], v)
		}
	}
	if null {
		return bson.Null, nil
	}
	s, find, by := args[0].Str(), args[1].Str(), args[2].Str()
	n := strings.Count(s, find)
	if find == "" {
		n = len(s) + 1 // at most
	}
	if times >= 0 {
		n = min(n, times)
	}
	if n == 0 {
		return args[0], nil
	}
	if grow := len(by) - len(find); grow > 0 && len(s)+n*grow >= MaxStringBytes {
		return args[0], errStringTooLong()
	}
	return env.Text(strings.Replace(s, find, by, times))
}
