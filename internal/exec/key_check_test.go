package exec

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestKeyCheckFindsSpans: of many spans the one that has a value is found, or where to go on, as by walking them all.
func TestKeyCheckFindsSpans(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		spans := randomSpans(random)
		for _, backward := range []bool{false, true} {
			c := keyCheck{plan: &planner.IndexScan{Backward: backward}}
			for v := range byte(70) {
				prefix, value := []byte{9}, []byte{v}
				inside, to := c.field(prefix, value, spans)
				wantInside, want := walkSpans(prefix, value, spans, backward)
				if inside != wantInside || !bytes.Equal(to, want) {
					t.Fatalf("seed %d: %v, backward %t, %d: %t, %x, and not %t, %x", seed, spans, backward, v, inside, to, wantInside, want)
				}
			}
		}
	}
}

// randomSpans do not overlap; the last may have no end.
func randomSpans(random *rand.Rand) (spans []planner.Range) {
	var cuts []byte
	for range 2 * (1 + random.IntN(12)) {
		cuts = append(cuts, byte(random.IntN(64)))
	}
	slices.Sort(cuts)
	for i := 0; i < len(cuts); i += 2 {
		if cuts[i] < cuts[i+1] {
			spans = append(spans, planner.Range{Low: cuts[i : i+1], High: cuts[i+1 : i+2]})
		}
	}
	if random.IntN(3) == 0 {
		spans = append(spans, planner.Range{Low: []byte{65}})
	}
	return spans
}

func walkSpans(prefix, value []byte, spans []planner.Range, backward bool) (inside bool, to []byte) {
	spans = slices.Clone(spans)
	if backward {
		slices.Reverse(spans)
	}
	place := func(edge []byte) []byte { return append(slices.Clone(prefix), edge...) }
	for _, s := range spans {
		above, below := s.High != nil && bytes.Compare(value, s.High) >= 0, bytes.Compare(value, s.Low) < 0
		switch {
		case !above && !below:
			return true, nil
		case backward && above:
			return false, place(s.High)
		case !backward && below:
			return false, place(s.Low)
		}
	}
	if backward {
		return false, place(nil)
	}
	return false, keystring.Successor(place(nil))
}
