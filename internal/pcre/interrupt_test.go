package pcre

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// TestInterrupt: a match ends when its operation does, in either engine; the time limit of the test is what fails otherwise.
func TestInterrupt(t *testing.T) {
	stop := errors.New("stop")
	long := strings.Repeat("ab", 4<<20)
	for _, c := range []struct{ pattern, subject string }{
		{`(?:a|b|ab|ba){1,300}(?:a|b|ab|ba){1,300}(?:a|b|ab|ba){1,300}c$`, long}, // minutes for RE2
		{`(a+)+\1$`, strings.Repeat("a", 60) + "b"},
		{`(.*)(.*)(.*)(.*)(.*)\1\2\3c`, strings.Repeat("ab", 500)},
	} {
		re, err := Compile(c.pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		ask := func() error {
			if asked++; asked > 1 {
				return stop
			}
			return nil
		}
		if _, err := re.Match(c.subject, func() error { return stop }); !errors.Is(err, stop) {
			t.Errorf("Match %s: %v", c.pattern, err)
		}
		if _, err := re.Find(c.subject, func() error { return stop }); !errors.Is(err, stop) {
			t.Errorf("Find %s: %v", c.pattern, err)
		}
		if re.re2 != nil {
			if _, err := re.Match(c.subject, ask); !errors.Is(err, stop) {
				t.Errorf("Match %s: %v", c.pattern, err)
			}
		}
	}
}

// TestLongSubject: what is read piece by piece says the same. A match is where it is without pieces, with \z, and where the backtracking
// engine finds it, which takes all others. How long that may take is a matter of the machine, and not of this test.
func TestLongSubject(t *testing.T) {
	const most, pairs = 800, 15_000
	long := strings.Repeat("äb", pairs) + "xyz"
	where := []int{(2*pairs - most) / 2 * len("äb"), len(long)}
	for _, c := range []struct {
		pattern    string
		matches    bool
		backtracks bool
	}{
		{`[äb]{1,800}xyz\z`, true, false},
		{`[äb]{1,800}xyw\z`, false, false},
		{`[äb]{1,800}xyz$`, true, true},
		{`[äb]{1,800}xyw$`, false, true},
	} {
		re, err := Compile(c.pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		if re.re2 == nil || !re.slow(long) || re.re2Long != c.backtracks {
			t.Fatalf("%s is no long work, or another engine's", c.pattern)
		}
		back, err := re.back()
		if err != nil {
			t.Fatal(err)
		}
		back.MatchTimeout = regexp2.DefaultMatchTimeout
		if !c.backtracks { // Match asks RE2 in any case
			if ok, err := re.Match(long, nil); ok != c.matches || err != nil {
				t.Errorf("%s: %v %v", c.pattern, ok, err)
			}
		}
		at, err := re.Find(long, nil)
		if err != nil || (at != nil) != c.matches || c.matches && !slices.Equal(at, where) {
			t.Errorf("%s: %v %v, want %v", c.pattern, at, err, where)
		}
	}
}

// TestAllMatches goes through all matches of a long subject without reading it anew for each.
func TestAllMatches(t *testing.T) {
	for _, pattern := range []string{`.`, `(?=.)`, `(.)(?!\1)`} {
		re, err := Compile(pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		all, n, end := re.Matches(strings.Repeat("ab", 200_000), nil), 0, 0
		for {
			at, err := all.Next()
			if err != nil {
				t.Fatal(err)
			}
			if at == nil {
				break
			}
			if at[0] < end {
				t.Fatalf("%s: %v behind %d", pattern, at, end)
			}
			n, end = n+1, at[1]
		}
		if n != 400_000 {
			t.Errorf("%s: %d", pattern, n)
		}
	}
}
