package bson

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testseed"
)

// TestPlaces: elements are found by their positions as by walking the array, whatever was asked for before.
func TestPlaces(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var p Places
	for range 300 {
		n := random.IntN(5 * placeStride)
		b := Build().Array("a")
		for i := range n {
			b.String(IndexKey(i), strings.Repeat("x", random.IntN(20)))
		}
		array := b.End().Doc().Lookup("a").Doc()
		want := array.Values(nil)
		p = PlacesOf(array, p)
		if !p.Are(array) || p.Are(array.Clone()) {
			t.Fatal("which array they are of")
		}
		for range 20 {
			i, j := random.IntN(n+3), random.IntN(n+3)
			var at Value
			if i < n {
				at = want[i]
			}
			if got := p.Index(i); got.Type != at.Type || string(got.Data) != string(at.Data) {
				t.Fatalf("seed %d: %d of %d is %s, and not %s", seed, i, n, got, at)
			}
			between := p.Values(nil, i, j)
			if len(between) != max(min(j, n)-min(i, n), 0) {
				t.Fatalf("seed %d: %d between %d and %d of %d", seed, len(between), i, j, n)
			}
			for k, v := range between {
				if string(v.Data) != string(want[i+k].Data) {
					t.Fatalf("seed %d: %d behind %d of %d is %s", seed, k, i, n, v)
				}
			}
			if random.IntN(4) == 0 && p.Count() != n {
				t.Fatalf("seed %d: %d elements, and not %d", seed, p.Count(), n)
			}
		}
		if random.IntN(2) == 0 {
			p.Forget()
		}
	}
}
