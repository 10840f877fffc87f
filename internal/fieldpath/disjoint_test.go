package fieldpath

import (
	"fmt"
	"strings"
	"testing"
)

// TestDisjoint adds paths one after the other; behind a path that is refused stands the one that is in its way.
func TestDisjoint(t *testing.T) {
	for paths, want := range map[string]string{
		"a b c":          "a b c",
		"a a":            "a a!a",
		"a.b a":          "a.b a!a.b",
		"a.b a.c a":      "a.b a.c a!a.b",
		"a a.b":          "a a.b!a",
		"a a.b.c":        "a a.b.c!a",
		"a.b a.bc ab a.": "a.b a.bc ab a.",
		"a.b.c a.b.d":    "a.b.c a.b.d",
		"a.b.c a.b a.d":  "a.b.c a.b!a.b.c a.d",
	} {
		var d Disjoint
		var got []string
		for _, path := range strings.Fields(paths) {
			if other, met := d.Conflict(path); met {
				path += "!" + other
			} else {
				d.Add(path)
			}
			got = append(got, path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, not %s", paths, got, want)
		}
	}
}

func BenchmarkDisjoint(b *testing.B) {
	var paths []string
	for i := range 25_000 {
		paths = append(paths, fmt.Sprintf("a%d.b.c", i))
	}
	for b.Loop() {
		var d Disjoint
		for _, p := range paths {
			if _, met := d.Conflict(p); met {
				b.Fatal(p)
			}
			d.Add(p)
		}
	}
}
