package sweeper_test

import (
	"testing"
	"time"
)

// half is a world with a collection of so many documents, of which as many more were swept.
func half(t *testing.T, n int) *world {
	w := newWorld(t)
	w.index(byDate, plain)
	w.insert(0, n, 0)
	w.insert(n, n, time.Hour)
	w.clock.Advance(time.Minute)
	if done, ok := w.sweep(); !ok || done.Documents != int64(n) {
		t.Fatal(done, ok)
	}
	return w
}

// vacuum vacuums to the end, and does something after each slice.
func (w *world) vacuum(limit int, after func()) (removed int) {
	w.Helper()
	c := w.collection()
	for more := true; more; {
		var n int
		var err error
		n, more, err = w.Vacuum(ctx, c.ID, limit)
		w.must(err)
		removed += n
		after()
	}
	return removed
}

// TestVacuum: each dead entry is removed, and counted, once: by compaction of an index where many are dead and nobody writes, one by one or
// in short stretches where somebody does, or where the engine can do no more.
func TestVacuum(t *testing.T) {
	const n = 40
	for name, c := range map[string]struct {
		prepare  func(w *world)
		writes   bool
		compacts bool
	}{
		"compaction":                      {func(*world) {}, false, true},
		"few are dead":                    {func(w *world) { w.Limits.Few = 1000 }, false, false},
		"a short index":                   {func(w *world) { w.Limits.LongStretch = 1000 }, false, false},
		"writers":                         {func(*world) {}, true, true},
		"an engine without range deletes": {func(w *world) { w.reopen(limited{w.engine, w.T}) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := half(t, n)
			c.prepare(w)
			w.wantStored(n, 2*n)
			compacted, written := false, 0
			removed := w.vacuum(3, func() {
				compacted = compacted || w.IsCompacting(w.collection().ID)
				if c.writes && written < 5 {
					written++
					w.insert(1000+written, 1, time.Hour)
				}
			})
			if removed != 2*n || compacted != (c.compacts && !*onTiKV) {
				t.Errorf("%d entries were removed, and an index compacted: %v", removed, compacted)
			}
			w.wantStored(int64(n+written), 0)
			id := w.collection().ID
			if n, more, err := w.Vacuum(ctx, id, 3); n != 0 || more || err != nil || w.IsCompacting(id) {
				t.Errorf("when nothing is dead: %d, %v, %v", n, more, err)
			}
		})
	}
}

// TestVacuumAtMost: a slice removes no more than it may, unless a stretch is put in place.
func TestVacuumAtMost(t *testing.T) {
	w := half(t, 40)
	w.Limits.Few = 1000
	removed, more, err := w.Vacuum(ctx, w.collection().ID, 7)
	if removed > 7 || removed == 0 || !more || err != nil {
		t.Errorf("%d, %v, %v", removed, more, err)
	}
	w.wantStored(40, int64(80-removed))
}

// TestCompactionMeetsWriter: what is written just before a stretch would be put in place is not lost, and the stretch is given up.
func TestCompactionMeetsWriter(t *testing.T) {
	notOnTiKV(t, "indexes are compacted by tables, which it does not take over")
	const n = 40
	w := half(t, n)
	engine := &watched{Engine: w.engine}
	w.reopen(engine)
	written := 0
	engine.atSeal = func() {
		written++
		w.insert(-10, 1, time.Hour) // in the stretch
	}
	if removed := w.vacuum(3, func() {}); removed != 2*n || written != 1 {
		t.Errorf("%d entries were removed, and %d documents written meanwhile", removed, written)
	}
	w.wantStored(n+1, 0)
	if engine.begun == 0 || engine.discarded < engine.begun {
		t.Errorf("of %d replacements %d were discarded", engine.begun, engine.discarded)
	}
}
