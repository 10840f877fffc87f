// Package regex compiles PCRE patterns with MongoDB's options and matches them. It knows nothing of queries, of BSON or of
// the error codes that its users answer with.
package regex

import (
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// Limits, so that no pattern takes the server down.
const (
	// MaxPatternBytes is the longest pattern, as MongoDB's.
	MaxPatternBytes = 32764
	// MaxMatchTime ends a match that backtracks without end.
	MaxMatchTime = 10 * time.Second
	// MaxBacktracks is how many alternatives one match may keep open.
	MaxBacktracks = 1 << 21
)

// ErrLimit says that a match took too long or too much memory.
var ErrLimit = errors.New("regular expression exceeded its match limit")

// BadOption is the error of an option that is none of i, m, s, x, u.
type BadOption byte

func (o BadOption) Error() string { return "invalid flag in regex options: " + string(rune(o)) }

// Regex is a compiled pattern. It is safe for concurrent use.
//
// Two engines stand behind it. RE2 (the standard library's) runs in linear time, and takes what it can take with the same
// result; the backtracking one takes the rest: look-around, back-references, atomic groups, the option x, and "$" before a
// final newline.
type Regex struct {
	pattern string
	fast    *regexp.Regexp                 // nil when RE2 cannot
	full    func() (*regexp2.Regexp, error) // compiled when first needed
	dollar  bool                           // the pattern has a "$" that may match before a final newline
	behind  bool                           // the pattern looks at what is before the place where it starts
}

// Check says whether options has only letters that are options.
func Check(options string) error {
	for i := 0; i < len(options); i++ {
		if !strings.Contains("imsxu", options[i:i+1]) {
			return BadOption(options[i])
		}
	}
	return nil
}

// Compile compiles pattern; letters of options that are no options are ignored (see Check).
func Compile(pattern, options string) (*Regex, error) {
	if len(pattern) > MaxPatternBytes {
		return nil, errors.New("regular expression is too large")
	}
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, errors.New("regular expression cannot contain an embedded null byte")
	}
	t := translate(pattern)
	r := &Regex{pattern: pattern, dollar: t.dollar, behind: t.behind}
	r.full = sync.OnceValues(func() (*regexp2.Regexp, error) { return compileFull(t, options) })
	if !t.unicode && !strings.Contains(options, "x") {
		r.fast, _ = regexp.Compile(flags(options) + t.text)
	}
	if r.fast == nil {
		if _, err := r.full(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func flags(options string) string {
	set := ""
	for _, o := range []string{"i", "m", "s"} {
		if strings.Contains(options, o) {
			set += o
		}
	}
	if set == "" {
		return ""
	}
	return "(?" + set + ")"
}

func compileFull(t translation, options string) (*regexp2.Regexp, error) {
	var o regexp2.RegexOptions
	if !t.unicode {
		o = regexp2.RE2
	}
	for _, x := range []struct {
		letter string
		option regexp2.RegexOptions
	}{{"i", regexp2.IgnoreCase}, {"m", regexp2.Multiline}, {"s", regexp2.Singleline}, {"x", regexp2.IgnorePatternWhitespace}} {
		if strings.Contains(options, x.letter) {
			o |= x.option
		}
	}
	text := t.text
	if t.dollar && !strings.Contains(options, "m") && !t.unicode {
		text = t.dollars // in the engine's RE2 mode "$" would be the very end
	}
	re, err := regexp2.Compile(text, o, regexp2.OptionMaintainCaptureOrder(), regexp2.OptionMaxBacktrackingStackSize(MaxBacktracks))
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = MaxMatchTime
	return re, nil
}

// String is the pattern.
func (r *Regex) String() string { return r.pattern }

func (r *Regex) useFast(s string) bool {
	return r.fast != nil && !(r.dollar && strings.HasSuffix(s, "\n"))
}

// Match says whether s has a match.
func (r *Regex) Match(s string) (bool, error) {
	if r.useFast(s) {
		return r.fast.MatchString(s), nil
	}
	re, err := r.full()
	if err != nil {
		return false, err
	}
	ok, err := re.MatchString(s)
	if err != nil {
		return false, ErrLimit
	}
	return ok, nil
}

// Find is the first match: pairs of byte offsets of the match and of each group (-1, -1 for one that took no part), or nil.
func (r *Regex) Find(s string) ([]int, error) {
	if r.useFast(s) {
		return r.fast.FindStringSubmatchIndex(s), nil
	}
	re, err := r.full()
	if err != nil {
		return nil, err
	}
	m, err := re.FindStringMatch(s)
	if err != nil {
		return nil, ErrLimit
	}
	if m == nil {
		return nil, nil
	}
	return offsets(m), nil
}

// FindAll shows visit all matches from left to right, as Find gives them, until it returns false. A match starts where the
// one before ended, or one character later when that was empty; none starts at the end of a string that is not empty.
func (r *Regex) FindAll(s string, visit func(loc []int) bool) error {
	if r.useFast(s) && !r.behind {
		r.findAllFast(s, visit)
		return nil
	}
	re, err := r.full()
	if err != nil {
		return err
	}
	m, err := re.FindStringMatch(s)
	for m != nil && err == nil {
		loc := offsets(m)
		if !visit(loc) || next(s, loc) >= len(s) {
			return nil
		}
		m, err = re.FindNextMatch(m)
	}
	if err != nil {
		return ErrLimit
	}
	return nil
}

func (r *Regex) findAllFast(s string, visit func(loc []int) bool) {
	for at := 0; ; {
		loc := r.fast.FindStringSubmatchIndex(s[at:])
		if loc == nil {
			return
		}
		for i, x := range loc {
			if x >= 0 {
				loc[i] = x + at
			}
		}
		at = next(s, loc)
		if !visit(loc) || at >= len(s) {
			return
		}
	}
}

// next is where the search goes on after loc.
func next(s string, loc []int) int {
	if loc[1] > loc[0] || loc[1] >= len(s) {
		return loc[1]
	}
	_, n := utf8.DecodeRuneInString(s[loc[1]:])
	return loc[1] + n
}

func offsets(m *regexp2.Match) []int {
	n := m.GroupCount()
	loc := make([]int, 2*n)
	for i := range n {
		g := m.GroupByNumber(i)
		if g == nil || len(g.Captures) == 0 {
			loc[2*i], loc[2*i+1] = -1, -1
			continue
		}
		at, size := g.ByteRange()
		loc[2*i], loc[2*i+1] = at, at+size
	}
	return loc
}
