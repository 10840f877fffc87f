package member

import (
	"testing"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestLettersShareABudget: what has not come as a whole is counted over all connections, and given back when a letter is read, or its
// connection ends.
func TestLettersShareABudget(t *testing.T) {
	g := &Group{}
	part := make([]byte, letterBytes)
	var callers []*Caller
	var err error
	for err == nil && len(callers) < 1000 {
		k := &Caller{}
		callers = append(callers, k)
		for range maxLetterBytes / letterBytes / 2 {
			if err = g.grow(k, part); err != nil {
				break
			}
		}
	}
	if mongoerr.From(err).Code != mongoerr.ExceededMemoryLimit || len(callers) != 5 {
		t.Fatalf("%v after %d connections", err, len(callers))
	}
	g.Forget(callers[0])
	if err := g.grow(callers[4], part); err != nil {
		t.Error("there is room again:", err)
	}
	for _, k := range callers {
		g.Forget(k)
	}
	if n := g.letters.Load(); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
	k := &Caller{}
	for range maxLetterBytes / letterBytes {
		if err := g.grow(k, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.grow(k, part); mongoerr.From(err).Code != mongoerr.ExceededMemoryLimit {
		t.Error("one letter is larger than it may be:", err)
	}
}
