package expiryorder

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/testseed"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

func at(order uint32, span byte, date int64, n uint64) layout.RecordID {
	return layout.OrderedID(layout.AppendPlace(nil, order, span, date), n)
}

// A tombstone covers what its sweep has deleted: what had got its number by then and was dated up to its cut, of its order and span.
func TestTombstones(t *testing.T) {
	ts := Tombstones(nil).With(Tombstone{7, layout.OnDefault, 100, 50, nil})
	for i, c := range []struct {
		id   layout.RecordID
		want bool
	}{
		{at(7, layout.OnDefault, 100, 50), true},
		{at(7, layout.OnDefault, -1, 1), true},
		{at(7, layout.OnDefault, 101, 50), false},
		{at(7, layout.OnDefault, 100, 51), false},
		{at(7, layout.OnOverride, 100, 50), false},
		{at(8, layout.OnDefault, 100, 50), false},
		{layout.SequenceID(1), false},
	} {
		if got := ts.Cover(c.id); got != c.want {
			t.Errorf("%d: %x is covered: %v", i, c.id, got)
		}
	}
	ts = ts.With(Tombstone{7, layout.OnDefault, 90, 60, nil})
	if len(ts) != 2 {
		t.Errorf("an earlier cut with later numbers: %v", ts)
	}
	ts = ts.With(Tombstone{7, layout.OnOverride, math.MinInt64, 60, nil}).With(Tombstone{7, layout.OnDefault, 200, 70, nil})
	if len(ts) != 2 || ts.OfOthers(7) || !ts.OfOthers(8) {
		t.Errorf("a later sweep of the same: %v", ts)
	}
	again, err := DecodeTombstones(ts.Encode())
	if err != nil || !reflect.DeepEqual(again, ts) {
		t.Errorf("%v is read as %v (%v)", ts, again, err)
	}
	if _, err := DecodeTombstones(ts.Encode()[1:]); err == nil {
		t.Error("half a tombstone is read")
	}
}

// A record lies where its document says, and the keys of its date come at its own or before.
func TestPlace(t *testing.T) {
	ts := &Order{Collection: 4, Number: 7, Rule: &policy.Rule{Kind: policy.Modified, Seconds: 10, Index: &index.Definition{Name: "ts"}}}
	for doc, want := range map[string]struct {
		span byte
		date int64
	}{
		`{_id: 1}`:          {layout.OnDefault, 5000},
		`{_id: 1, ttl: 3}`:  {layout.OnOverride, 8000},
		`{_id: 1, ttl: -1}`: {layout.OnNever, math.MaxInt64},
	} {
		id := layout.OrderedID(ts.AppendPlace(nil, bson.MustDoc(doc), 5000), 1)
		if id.Span() != want.span || id.Date() != want.date || !ts.Has(id) {
			t.Errorf("%s lies at %d in span %d, want %d in %d", doc, id.Date(), id.Span(), want.date, want.span)
		}
		low, high := ts.Bounds()
		key := layout.RecordKey(nil, 4, id)
		if bytes.Compare(low, key) > 0 || bytes.Compare(key, high) >= 0 {
			t.Errorf("%x is not between %x and %x", key, low, high)
		}
		if dated := ts.DatedKey(want.span, want.date); bytes.Compare(dated, key) > 0 || !bytes.HasPrefix(key, dated) {
			t.Errorf("%x does not begin with %x", key, dated)
		}
		bounds := ts.HiddenBounds(18_000)
		if behind := ts.IsBehind(&bounds, id); behind != (want.span != layout.OnNever) {
			t.Errorf("%s is hidden eight seconds after its TTL: %v", doc, behind)
		}
	}
	var none *Order
	if _, _, ok := none.Of(at(7, layout.OnDefault, 1, 1)); ok || none.Has(at(7, layout.OnDefault, 1, 1)) || none.Relocates() {
		t.Error("no order has records")
	}
}

// A histogram counts as a list of all records does, however wide its slots have become.
func TestHistogram(t *testing.T) {
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	h, dates := NewHistogram(true), []int64{}
	for range 3 * maxSlots {
		date := r.Int64N(1e7) - 5e6
		dates = append(dates, date)
		h.Add([]Change{{layout.OnDefault, date, 1, 10}})
	}
	for range 100 {
		cut := r.Int64N(1e7) - 5e6
		whole, last, slot := h.UpTo(layout.OnDefault, cut)
		first, end := h.SlotBounds(slot)
		before, within := int64(0), int64(0)
		for _, date := range dates {
			switch {
			case date < first:
				before++
			case date <= end:
				within++
			}
		}
		if whole != (Amount{before, 10 * before}) || last != (Amount{within, 10 * within}) || cut < first-1 || cut > end {
			t.Fatalf("seed %d: up to %d: %v and %v in %d to %d, want %d and %d", seed, cut, whole, last, first, end, before, within)
		}
	}
	whole, last, _ := h.UpTo(layout.OnDefault, 0)
	h.Swept(layout.OnDefault, 0, whole, nil)
	if now, same, _ := h.UpTo(layout.OnDefault, 0); now != (Amount{}) || same != last || whole == (Amount{}) {
		t.Errorf("seed %d: %v and %v are left of %v and %v", seed, now, same, whole, last)
	}
	if floor := h.Floor(layout.OnDefault); floor != 1 {
		t.Errorf("seed %d: the floor is %d", seed, floor)
	}
}
