package expiryorder

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/testseed"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// A changed document lies less than a cell behind its date, stays there as long as that is so, and is hidden by its place alone
// only when it has expired, also where TTLs and clocks have changed.
func TestCells(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 3))
	o := &Order{Collection: 4, Number: 7, Rule: &policy.Rule{Kind: policy.Modified, Index: &index.Definition{Name: "ts"}}}
	docs := []bson.Doc{bson.MustDoc(`{_id: 1}`), bson.MustDoc(`{_id: 1, ttl: 5000}`), bson.MustDoc(`{_id: 1, ttl: 100}`), bson.MustDoc(`{_id: 1, ttl: -1}`)}
	id, now, stayed := at(7, layout.OnDefault, 0, 1), int64(-100_000), 0
	for range 100_000 {
		if r.IntN(1000) == 0 {
			o.Rule.Seconds = r.Int64N(10_000) - 1
			o.Cell = max(o.Cell, CellFor(o.Rule.Seconds))
		}
		now += r.Int64N(200) - 20
		if r.IntN(1000) == 0 {
			now += r.Int64N(200_000) - 100_000
		}
		doc := docs[0]
		if r.IntN(20) == 0 {
			doc = docs[r.IntN(len(docs))]
		}
		next := layout.OrderedID(o.AppendUpdated(nil, id, doc, now), 1)
		rec := layout.Record{ID: next, Modified: now, Doc: doc}
		if !o.IsPlaceOf(rec) {
			t.Fatalf("seed %d: %s, changed at %d, lies at %d in span %d", seed, doc, now, next.Date(), next.Span())
		}
		if next.IsCoarse() && string(next) == string(id) {
			stayed++
		}
		deadline, _ := o.Rule.Deadline(doc, now)
		look := now + r.Int64N(12_000_000)
		b := o.HiddenBounds(look)
		if o.IsBehind(&b, next) && deadline > look || !o.IsBehind(&b, next) && o.IsAhead(&b, next) && deadline <= look {
			t.Fatalf("seed %d: %s, changed at %d and looked at at %d, is hidden: %v", seed, doc, now, look, o.IsBehind(&b, next))
		}
		id = next
	}
	if stayed < 50_000 {
		t.Errorf("seed %d: only %d have stayed", seed, stayed)
	}
	for _, date := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - MaxCell} {
		if end := cellEnd(date, 1000); end < date || end-date >= 1000 {
			t.Errorf("the cell of %d ends at %d", date, end)
		}
	}
}
