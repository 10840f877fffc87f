package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pcre"
)

func regexOperators() []Operator {
	return []Operator{
		{Name: "$regexFind", Since: "4.2", Doc: "The first match of a regular expression in a string, with its captures.", Shape: regexShape(evalRegexFind)},
		{Name: "$regexFindAll", Since: "4.2", Doc: "All matches of a regular expression in a string, with their captures.", Shape: regexShape(evalRegexFindAll)},
		{Name: "$regexMatch", Since: "4.2", Doc: "True when a regular expression matches a string.", Shape: regexShape(evalRegexMatch)},
	}
}

// regexEval answers for a subject and a pattern; re is nil when one of them is null.
type regexEval func(env *Env, re *pcre.Regexp, s string) (bson.Value, error)

// compiled is the pattern of a call, compiled when it is constant.
type compiled struct {
	re *pcre.Regexp // nil for a null pattern
}

func regexShape(f regexEval) named {
	return named{
		params:    []param{{"input", 31022}, {"regex", 31023}, {"options", 0}},
		notObject: 51103,
		unknown:   31024,
		lacking:   "%[1]s requires '%[2]s' parameter",
		eval:      func(env *Env, c *call) (bson.Value, error) { return evalRegex(env, c, f) },
		prepare:   prepareRegex,
	}
}

// patternsPerAsk is how many patterns are compiled between two questions whether the operation goes on.
const patternsPerAsk = 64

// prepareRegex compiles a constant pattern once.
func prepareRegex(p *Parser, c *call) error {
	regex, ok := Constant(c.args[1])
	if !ok {
		return nil
	}
	options := bson.Missing
	if c.args[2] != nil {
		if options, ok = Constant(c.args[2]); !ok {
			return nil
		}
	}
	p.env.ticks += ticksPerAsk / patternsPerAsk
	if err := p.env.tick(); err != nil {
		return err
	}
	re, err := compileRegex(p.Patterns(), c.op.Name, regex, options)
	if err != nil {
		return err
	}
	c.state = compiled{re}
	return nil
}

func evalRegex(env *Env, c *call, f regexEval) (bson.Value, error) {
	input, err := c.args[0].Eval(env)
	if err != nil {
		return input, err
	}
	pattern, ok := c.state.(compiled)
	if !ok {
		regex, err := c.args[1].Eval(env)
		if err != nil {
			return regex, err
		}
		options, err := c.arg(env, 2)
		if err != nil {
			return options, err
		}
		if pattern.re, err = compileRegex(nil, c.op.Name, regex, options); err != nil {
			return regex, err
		}
	}
	if !input.IsNullish() && input.Type != bson.TypeString {
		return input, mongoerr.New(51104, "%s needs 'input' to be of type string", c.op.Name)
	}
	if input.IsNullish() || pattern.re == nil {
		return f(env, nil, "")
	}
	return f(env, pattern.re, input.Str())
}

// compileRegex is the pattern, or nil when it is null.
func compileRegex(within *pcre.Budget, op string, regex, options bson.Value) (*pcre.Regexp, error) {
	text, flags := "", ""
	switch {
	case regex.Type == bson.TypeRegex:
		text, flags = regex.Regex()
		flags = knownFlags(flags)
	case regex.Type == bson.TypeString:
		text = regex.Str()
	case !regex.IsNullish():
		return nil, mongoerr.New(51105, "%s needs 'regex' to be of type string or regex", op)
	}
	if options.Type == bson.TypeString {
		if flags != "" {
			return nil, mongoerr.New(51107, "%s found regex option(s) specified in both 'regex' and 'option' fields", op)
		}
		flags = options.Str()
	} else if !options.IsNullish() {
		return nil, mongoerr.New(51106, "%s needs 'options' to be of type string", op)
	}
	if regex.IsNullish() {
		return nil, nil
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, mongoerr.New(51109, "%s: regular expression cannot contain an embedded null byte", op)
	}
	if strings.IndexByte(flags, 0) >= 0 {
		return nil, mongoerr.New(51110, "%s: regular expression options cannot contain an embedded null byte", op)
	}
	if len(text) > MaxPatternBytes {
		return nil, mongoerr.New(51111, "Invalid Regex in %s: regular expression is too large", op)
	}
	re, err := within.Compile(text, flags)
	if mongoerr.Is(err, 51091) {
		return nil, mongoerr.New(51111, "Invalid Regex in %s: %s", op, err)
	}
	return re, err
}

// knownFlags leaves out the letters of a regular expression value that mean nothing.
func knownFlags(flags string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("imsxu", r) {
			return r
		}
		return -1
	}, flags)
}

func evalRegexMatch(env *Env, re *pcre.Regexp, s string) (bson.Value, error) {
	if re == nil {
		return bson.False, nil
	}
	ok, err := re.Match(s, env.Interrupt)
	return bson.Bool(ok), err
}

func evalRegexFind(env *Env, re *pcre.Regexp, s string) (bson.Value, error) {
	if re == nil {
		return bson.Null, nil
	}
	at, err := re.Find(s, env.Interrupt)
	if err != nil || at == nil {
		return bson.Null, err
	}
	return matchObject(env, s, at, utf8.RuneCountInString(s[:at[0]]))
}

// maxMatchesBytes is how large all that $regexFindAll finds may be.
const maxMatchesBytes = 64 << 20

// evalRegexFindAll starts each search where the match before ended, or one character later when that was empty.
func evalRegexFindAll(env *Env, re *pcre.Regexp, s string) (bson.Value, error) {
	mark := len(env.stack)
	if re == nil {
		return env.arrayFrom(mark)
	}
	counted, runes, size := 0, 0, 0
	for matches := re.Matches(s, env.Interrupt); ; {
		at, err := matches.Next()
		if err != nil {
			return bson.Missing, err
		}
		if at == nil {
			break
		}
		runes += utf8.RuneCountInString(s[counted:at[0]])
		counted = at[0]
		v, err := matchObject(env, s, at, runes)
		if err == nil {
			err = env.tick()
		}
		if size += len(v.Data); err == nil && size > maxMatchesBytes {
			err = mongoerr.New(51151, "$regexFindAll: the size of buffer to store output exceeded the 64MB limit")
		}
		if err != nil {
			return v, err
		}
		env.stack = append(env.stack, v)
		next := at[1]
		if at[1] == at[0] && next < len(s) {
			_, n := utf8.DecodeRuneInString(s[next:])
			next += n
		}
		if next >= len(s) {
			break // what is empty behind the last character is no match
		}
	}
	return env.arrayFrom(mark)
}

func matchKeys() []string { return []string{"match", "idx", "captures"} }

func matchObject(env *Env, s string, at []int, idx int) (bson.Value, error) {
	mark := len(env.stack)
	for i := 2; i < len(at); i += 2 {
		capture := bson.Null
		if at[i] >= 0 {
			capture = env.String(s[at[i]:at[i+1]])
		}
		env.stack = append(env.stack, capture)
	}
	captures, err := env.arrayFrom(mark)
	if err != nil {
		return captures, err
	}
	return env.Object(matchKeys(), []bson.Value{env.String(s[at[0]:at[1]]), env.Int32(int32(idx)), captures})
}
