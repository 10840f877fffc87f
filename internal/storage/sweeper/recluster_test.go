package sweeper_test

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
)

// TestRecluster: documents that were there before a TTL are moved in slices, in which they stay found, and are swept when all are.
func TestRecluster(t *testing.T) {
	const n = 20
	w := newWorld(t)
	w.insert(0, n, 0)
	id := w.collection().ID
	if moved, more, err := w.Recluster(ctx, id, 100); moved != 0 || more || err != nil {
		t.Errorf("without an order: %d, %v, %v", moved, more, err)
	}
	if order, moved := w.Reclustered(id); order != 0 || moved != 0 {
		t.Errorf("without an order: %d, %d", order, moved)
	}
	w.index(byDate)
	w.wantUnclustered(n)
	w.clock.Advance(time.Minute)
	if done, ok := w.sweep(); ok {
		t.Errorf("what does not lie in order was swept: %+v", done)
	}
	left := int64(n)
	for more := true; more; {
		var moved int
		var err error
		moved, more, err = w.Recluster(ctx, id, 6)
		w.must(err)
		if moved > 6 {
			t.Errorf("%d records were moved at once", moved)
		}
		left -= int64(moved)
		w.wantUnclustered(left)
		w.wantStored(n, 0)
		if order, moved := w.Reclustered(id); order == 0 || moved != n-left {
			t.Errorf("%d records were moved to order %d, want %d", moved, order, n-left)
		}
	}
	if left != 0 {
		t.Errorf("%d records were not moved", left)
	}
	if done, ok := w.sweep(); !ok || done.Documents != n {
		t.Errorf("%+v, %v", done, ok)
	}
}

// TestReclusterAnew: another order begins at the beginning, and counts for itself.
func TestReclusterAnew(t *testing.T) {
	w := newWorld(t)
	w.insert(0, 10, 0)
	w.index(byDate, byOther)
	id := w.collection().ID
	if moved, _, err := w.Recluster(ctx, id, 100); moved != 10 || err != nil {
		t.Fatal(moved, err)
	}
	before, _ := w.Reclustered(id)
	if _, err := w.ddl.DropIndexes(ctx, tested, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("d")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	order, moved := w.Reclustered(id)
	if order <= before || moved != 0 {
		t.Errorf("under the next order: %d, %d; the one before was %d", order, moved, before)
	}
	w.wantUnclustered(10)
	if moved, more, err := w.Recluster(ctx, id, 100); moved != 10 || more || err != nil {
		t.Errorf("%d, %v, %v", moved, more, err)
	}
	w.wantUnclustered(0)
	w.wantStored(10, 0)
}

// wantUnclustered counts without a bound, and up to one.
func (w *world) wantUnclustered(want int64) {
	w.Helper()
	for _, limit := range []int64{1 << 20, 3} {
		if n, err := w.Unclustered(ctx, w.collection().ID, limit); err != nil || n != min(want, limit) {
			w.Errorf("%d records lie elsewhere, counted up to %d, want %d, %v", n, limit, want, err)
		}
	}
}
