package deleted

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

// Ranges that touch become one; the others stay as they are, in order.
func TestRanges(t *testing.T) {
	var l Ranges
	for i, step := range []struct{ start, end, want string }{
		{"d", "f", "d-f:1"},
		{"a", "b", "a-b:2 d-f:1"},
		{"x", "z", "a-b:2 d-f:1 x-z:3"},
		{"d", "g", "a-b:2 d-g:4 x-z:3"},
		{"g", "h", "a-b:2 d-h:5 x-z:3"},
		{"e", "f", "a-b:2 d-h:6 x-z:3"},
		{"c", "d", "a-b:2 c-h:7 x-z:3"},
		{"b", "y", "a-z:8"},
	} {
		l = l.With(kv.Range{Start: []byte(step.start), End: []byte(step.end)}, uint64(i+1))
		var got []string
		for _, r := range l {
			got = append(got, fmt.Sprintf("%s-%s:%d", r.Start, r.End, r.Sequence))
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Fatalf("step %d: %s, want %s", i+1, text, step.want)
		}
	}
	for key, want := range map[string]uint64{"a": 8, "q": 8, "Z": 0, "z": 0, "zz": 0} {
		if got := l.Find([]byte(key)); got != want {
			t.Errorf("%s is deleted at %d, want %d", key, got, want)
		}
	}
}
