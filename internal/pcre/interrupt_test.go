package pcre

import (
	"errors"
	"strings"
	"testing"
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

// TestLongSubject: what is read piece by piece says the same.
func TestLongSubject(t *testing.T) {
	long := strings.Repeat("äb", 30_000) + "xyz"
	for pattern, want := range map[string]bool{
		`[äb]{1,900}xyz$`: true,
		`[äb]{1,900}xyw$`: false,
	} {
		re, err := Compile(pattern, "")
		if err != nil {
			t.Fatal(err)
		}
		if !re.slow(long) {
			t.Fatal("that is no long work")
		}
		if ok, err := re.Match(long, nil); ok != want || err != nil {
			t.Errorf("%s: %v %v", pattern, ok, err)
		}
		at, err := re.Find(long, nil)
		if (at != nil) != want || err != nil || want && (at[1] != len(long) || long[at[0]:at[1]] != re.re2.FindString(long)) {
			t.Errorf("%s: %v %v", pattern, at, err)
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
