package pcre

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testheap"
)

// TestBudget: very many patterns, each of which is compiled to much more than it is long, take no more than their Budget, and
// match what they matched without.
func TestBudget(t *testing.T) {
	var b Budget
	var patterns []*Regexp
	before := testheap.Bytes()
	for i := range 2000 {
		r, err := b.Compile(fmt.Sprintf("(x{900})%d", i), "i")
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, r)
	}
	if took := testheap.Bytes() - before; took > 2*maxCompiledBytes {
		t.Errorf("%d patterns take %d bytes", len(patterns), took)
	}
	for _, i := range []int{0, len(patterns) - 1} {
		one := fmt.Sprintf("%s%d", strings.Repeat("X", 900), i)
		for s, want := range map[string]int{one: 1, one + one + one: 3, "X": 0} {
			ok, err := patterns[i].Match(s, nil)
			n := 0
			for all := patterns[i].Matches(s, nil); ; n++ {
				at, err := all.Next()
				if err != nil {
					t.Fatal(err)
				}
				if at == nil {
					break
				}
			}
			if err != nil || ok != (want > 0) || n != want {
				t.Errorf("pattern %d: %v, %d matches, not %d; %v", i, ok, n, want, err)
			}
		}
	}
	runtime.KeepAlive(patterns)
}

// TestBytes: what a pattern is thought to take is about what it takes, and one that RE2 would take very much for is left to
// the other engine.
func TestBytes(t *testing.T) {
	for _, pattern := range []string{"x{900}y", strings.Repeat("lorem", 1000) + ".", `\pL{300}z`, "(a|b|c){300}"} {
		const n = 30
		var all [n]*Regexp
		before := testheap.Bytes()
		for i := range all {
			r, err := Compile(pattern, "")
			if err != nil {
				t.Fatal(err)
			}
			all[i] = r
		}
		took := int(testheap.Bytes()-before) / n
		if said := all[0].bytes; took > 2*said || said > 4*took {
			t.Errorf("%.20s takes %d bytes and says %d", pattern, took, said)
		}
		runtime.KeepAlive(all)
	}
	r, err := Compile(`(x{1000}y){80}`, "")
	if err != nil || r.re2 != nil {
		t.Errorf("a pattern of %d bytes is RE2's: %v", 80*1000*instructionBytes, err)
	}
}
