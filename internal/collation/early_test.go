package collation

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/testseed"
)

// pieces are what long strings are made of: letters, digits, punctuation, accents by themselves, what is joined with what
// stands beside it, what has no weight, what is no text.
var pieces = []string{"a", "B", "c", "h", "l", "l·l", "dž", "é", "e\u0301", "\u0301", "\u0327", "ß", "æ", "7", "19", "٣", "-", " ", "\u00a0", "漢", "か", "カ", "가", "\u1100\u1161", "เก", "\u0000", "\u200b", "\xff", "🙂"}

// TestLongStrings: what long strings begin with orders them as their whole keys do.
func TestLongStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 1))
	text := func(bytes int) string {
		var b strings.Builder
		some := make([]string, 1+r.IntN(4))
		for i := range some {
			some[i] = pieces[r.IntN(len(pieces))]
		}
		for b.Len() < bytes {
			if r.IntN(50) == 0 {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			b.WriteString(some[r.IntN(len(some))])
		}
		return b.String()
	}
	for _, spec := range []string{`{locale: "en"}`, `{locale: "de", strength: 1}`, `{locale: "fr_CA", strength: 2}`, `{locale: "es@collation=traditional"}`, `{locale: "da", caseFirst: "upper"}`,
		`{locale: "ja", strength: 4}`, `{locale: "en", numericOrdering: true}`, `{locale: "en", alternate: "shifted"}`, `{locale: "th", alternate: "shifted", maxVariable: "space", strength: 4}`} {
		c, err := Parse(bson.MustDoc(spec))
		if err != nil {
			t.Fatal(err)
		}
		decided := 0
		for range 60 {
			same := text(r.IntN(2 * earlyBytes))
			a, b := same+text(r.IntN(12*earlyBytes)), same+text(r.IntN(12*earlyBytes))
			if r.IntN(3) == 0 {
				b = same
			}
			want := bytes.Compare([]byte(c.Key(a)), []byte(c.Key(b)))
			if got := c.CompareString(a, b); got != want {
				t.Fatalf("%s: %q and %q compare as %d, not %d", spec, a, b, got, want)
			}
			k := newKeyer(&c.Spec)
			if k.early(a, b) != 0 {
				decided++
			}
		}
		if decided < 10 {
			t.Errorf("%s: only %d of 60 pairs are decided early", spec, decided)
		}
	}
}
