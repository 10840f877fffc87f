package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestJudges: what judges the clients' output must be able to say no.
func TestJudges(t *testing.T) {
	for _, c := range []struct {
		out  string
		exit error
		good bool
	}{
		{"ok a\nok b\n1..2\n", nil, true},
		{"noise\nok a\nmore noise\n1..1", nil, true},
		{"ok a\nok b\n1..2\n", errors.New("exit status 1"), false},
		{"ok a\nnot ok b: why\n1..2\n", nil, false},
		{"ok a\nok b\n", nil, false},
		{"ok a\n1..2\n", nil, false},
		{"1..0\n", nil, false},
		{"", nil, false},
	} {
		if err := checkTAP(c.out, c.exit); (err == nil) != c.good {
			t.Errorf("%q (%v): %v", c.out, c.exit, err)
		}
	}

	typed := filepath.Join(t.TempDir(), "typed.txt")
	if err := os.WriteFile(typed, []byte("1 + 1\n// > 2\nf()\n// > /got \\d+/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for out, good := range map[string]bool{
		"> 2\n> got 17\n": true,
		"> got 17\n> 2\n": false, // in another order
		"> 2\n> got x\n":  false,
		"":                false,
	} {
		if err := checkTyped(typed, out, nil); (err == nil) != good {
			t.Errorf("%q: %v", out, err)
		}
	}
	if checkTyped(typed, "> 2\n> got 17\n", errors.New("exit status 1")) == nil {
		t.Error("a shell that failed passed")
	}
}
