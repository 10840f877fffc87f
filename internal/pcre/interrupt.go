package pcre

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxUnasked is how many steps, instructions of a pattern times bytes of a subject, RE2 may take without asking whether
	// the operation goes on: about half a second.
	maxUnasked = 1 << 26
	// longSubject is from where on the steps are reckoned.
	longSubject = 16 << 10
	// runesPerAsk is how often a reader asks.
	runesPerAsk = 1 << 12
)

// Ask says whether an operation goes on; its error ends it. A nil Ask is one that goes on.
type Ask func() error

func (a Ask) now() error {
	if a == nil {
		return nil
	}
	return a()
}

// instructions is how many RE2 has for text, which it has compiled.
func instructions(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

// slow says whether RE2 may take long for s.
func (r *Regexp) slow(s string) bool {
	return len(s) > longSubject && r.instructions()*len(s) > maxUnasked
}

// asking reads a string for RE2, and ends early when the operation does.
type asking struct {
	rest string
	ask  Ask
	n    int
	err  error
}

func (a *asking) ReadRune() (rune, int, error) {
	if a.n++; a.n%runesPerAsk == 0 && a.err == nil {
		a.err = a.ask.now()
	}
	if a.err != nil || a.rest == "" {
		return 0, 0, io.EOF
	}
	c, n := utf8.DecodeRuneInString(a.rest)
	a.rest = a.rest[n:]
	return c, n, nil
}

func matchAsking(re *regexp.Regexp, s string, ask Ask) (bool, error) {
	from := &asking{rest: s, ask: ask}
	ok := re.MatchReader(from)
	return ok && from.err == nil, from.err
}

func findAsking(re *regexp.Regexp, s string, ask Ask) ([]int, error) {
	from := &asking{rest: s, ask: ask}
	at := re.FindReaderSubmatchIndex(from)
	if from.err != nil {
		return nil, from.err
	}
	return at, nil
}
