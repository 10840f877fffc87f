// Package pcre compiles the regular expressions that MongoDB's users write, which are PCRE2's. It reads a pattern once and
// says it again for an engine: RE2 of the standard library where that means the same, a backtracking engine with limits
// otherwise. What neither can do is refused; it knows nothing of queries or BSON.
package pcre

import (
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// MaxPattern is the longest pattern in bytes.
	MaxPattern = 16384
	// MaxNesting is how deep groups may nest.
	MaxNesting = 250
	// MatchTimeout ends a match that backtracks for too long. PCRE's limit of ten million steps takes about as long.
	MatchTimeout = 750 * time.Millisecond
	// maxStack bounds what a match may remember for backtracking, in integers.
	maxStack = 4 << 20
)

// Regexp is a compiled pattern. It may be used by many goroutines at once.
type Regexp struct {
	pattern, options string

	literal string // when kind is not general: what to look for
	kind    kind
	re2     func() *regexp.Regexp           // nil where RE2 cannot do it
	back    func() (*regexp2.Regexp, error) // compiled when first needed
	bytes   int                             // about what both take
	// linear and backtracking are what RE2 and the other engine read.
	linear, backtracking string
	names                []string // of the groups, "" for those without
	keepsOut             bool     // \K: the match does not start where it starts
	// instructions is how many RE2 has.
	instructions func() int
	re2Long      bool // RE2 tells whether there is a match, but not where it ends

	prefix      string
	prefixExact bool
}

type kind uint8

const (
	general kind = iota
	contains
	hasPrefix
)

// Compile compiles pattern under options: any of i, m, s, x, and u, which says what is so anyway. Errors are MongoDB's.
func Compile(pattern, options string) (*Regexp, error) {
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Regular expression cannot contain an embedded null byte")
	}
	for i := 0; i < len(options); i++ {
		if strings.IndexByte("imsxu", options[i]) < 0 {
			return nil, mongoerr.New(51108, "invalid flag in regex options: %c", options[i])
		}
	}
	if len(pattern) > MaxPattern {
		return nil, invalid("regular expression is too large")
	}
	t := &translation{in: pattern}
	t.flags.set(options, true)
	if err := t.run(); err != nil {
		return nil, err
	}
	r := &Regexp{pattern: pattern, options: options, names: t.names, keepsOut: t.keepsOut, re2Long: t.re2Long, prefix: t.prefix(), prefixExact: t.prefixExact()}
	return r, r.build(t)
}

func (r *Regexp) build(t *translation) error {
	if lit, anchored, ok := t.plain(); ok {
		r.literal, r.kind = lit, contains
		if anchored {
			r.kind = hasPrefix
		}
	}
	r.linear, r.backtracking = string(t.re2), string(t.back)
	r.back = sync.OnceValues(func() (*regexp2.Regexp, error) { return compileBacktracking(r.backtracking) })
	r.bytes = patternBytes * len(r.backtracking)
	if t.re2No {
		_, err := r.back()
		return err
	}
	if n, ok := linearBytes(r.linear); ok && n <= maxLinearBytes {
		if re, err := regexp.Compile(r.linear); err == nil {
			r.re2, r.instructions = func() *regexp.Regexp { return re }, sync.OnceValue(func() int { return instructions(r.linear) })
			r.bytes += n
			return nil
		}
	}
	_, err := r.back()
	return err
}

func compileBacktracking(text string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(text, regexp2.OptionMaintainCaptureOrder(), regexp2.OptionMaxBacktrackingStackSize(maxStack))
	if err != nil {
		return nil, invalid("%s", err)
	}
	re.MatchTimeout = MatchTimeout
	return re, nil
}

func invalid(format string, args ...any) error {
	return mongoerr.Prefix("Regular expression is invalid: ", mongoerr.New(51091, format, args...))
}

func unsupported(what string) error {
	return mongoerr.New(mongoerr.NotImplemented, "%s is not supported in regular expressions", what)
}

// String is the pattern as it was given.
func (r *Regexp) String() string { return r.pattern }

// Options are the options as they were given.
func (r *Regexp) Options() string { return r.options }

// Groups is the number of capturing groups.
func (r *Regexp) Groups() int { return len(r.names) }

// Prefix is a text that each match starts with at the start of the subject, "" when there is none; exact says that every
// subject with that prefix matches.
func (r *Regexp) Prefix() (prefix string, exact bool) { return r.prefix, r.prefixExact }

// Match says whether r matches somewhere in s. Ask may end it.
func (r *Regexp) Match(s string, ask Ask) (bool, error) {
	switch {
	case r.kind == contains:
		return strings.Contains(s, r.literal), nil
	case r.kind == hasPrefix:
		return strings.HasPrefix(s, r.literal), nil
	case r.re2 != nil && r.slow(s):
		return matchAsking(r.re2(), s, ask)
	case r.re2 != nil:
		return r.re2().MatchString(s), nil
	}
	re, err := r.back()
	if err != nil {
		return false, err
	}
	ok, err := re.MatchString(s)
	if err != nil {
		err = tooMuch()
	}
	return ok && err == nil, firstError(ask.now(), err)
}

// Find is the first match in s, as Matches gives it.
func (r *Regexp) Find(s string, ask Ask) ([]int, error) {
	return r.Matches(s, ask).Next()
}

// Matches finds one match after the other.
type Matches struct {
	r     *Regexp
	s     string
	ask   Ask
	at    int // where RE2's match, the first, has ended, or where the search goes on behind an empty one
	began bool
	back  *regexp2.Regexp // once it is needed
	last  *regexp2.Match
}

// Matches returns the matches in s. Ask may end each search.
func (r *Regexp) Matches(s string, ask Ask) *Matches { return &Matches{r: r, s: s, ask: ask} }

// Next is the next match, as regexp.FindStringSubmatchIndex has it: pairs of start and end for the whole and each group, -1 for
// groups that took no part. It begins where the one before has ended, or one character later when that was empty. It is nil
// when there is none.
func (m *Matches) Next() ([]int, error) {
	switch {
	case m.r.keepsOut:
		return nil, unsupported(`\K`)
	case m.began || m.r.re2 == nil || m.r.re2Long:
		return m.backtrack()
	}
	m.began = true
	// RE2 cannot start in the middle and still see what stands before; the backtracking engine can.
	if m.r.slow(m.s) {
		at, err := findAsking(m.r.re2(), m.s, m.ask)
		return m.note(at), err
	}
	return m.note(m.r.re2().FindStringSubmatchIndex(m.s)), nil
}

// note remembers where RE2's match has ended.
func (m *Matches) note(at []int) []int {
	if at == nil {
		return nil
	}
	if m.at = at[1]; at[0] == at[1] && m.at < len(m.s) {
		_, n := utf8.DecodeRuneInString(m.s[m.at:])
		m.at += n
	}
	return at
}

// backtrack takes all but the first match from the one before, since the engine reads the subject anew for each search that
// begins without one.
func (m *Matches) backtrack() (_ []int, err error) {
	if m.back == nil {
		if m.back, err = m.r.back(); err != nil {
			return nil, err
		}
	}
	if m.last == nil {
		m.last, err = m.back.FindStringMatchStartingAt(m.s, m.at)
	} else {
		m.last, err = m.back.FindNextMatch(m.last)
	}
	m.began = true
	if err != nil {
		err = tooMuch()
	}
	if err = firstError(m.ask.now(), err); err != nil || m.last == nil {
		return nil, err
	}
	var out []int
	for _, g := range m.last.Groups() {
		if len(g.Captures) == 0 {
			out = append(out, -1, -1)
			continue
		}
		start, n := g.Captures[len(g.Captures)-1].ByteRange()
		out = append(out, start, start+n)
	}
	return out, nil
}

func tooMuch() error {
	return mongoerr.New(51156, "Error occurred while executing regular expression: match limit exceeded")
}

// firstError is the reason why an operation has ended, if it has, and otherwise what is wrong with its match.
func firstError(ended, err error) error {
	if ended != nil {
		return ended
	}
	return err
}
