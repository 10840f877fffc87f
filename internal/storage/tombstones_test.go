package storage

import (
	"context"
	"math"
	"testing"
	"time"
)

// TestMarked: once the tombstones of a collection are deleted nobody looks for them, but in views that may still see them.
func TestMarked(t *testing.T) {
	for name, unmark := range map[string]func(f *fixture){
		"vacuumed one by one": func(f *fixture) {
			f.Bounds().Few = math.MaxInt64
			f.vacuumTo(func() bool { return false })
		},
		"vacuumed in stretches": func(f *fixture) { f.vacuumTo(func() bool { return false }) },
		"all swept":             func(f *fixture) { f.sweepTested(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
			f.looksForTombstones(false)
			for i := range int32(20) {
				f.insertDated(i, f.Now())
			}
			f.clock.Advance(time.Second)
			f.insertDated(30, f.Now())
			f.sweepTested(20)
			f.looksForTombstones(true)
			f.clock.Advance(time.Second)
			before, err := f.View(context.Background())
			f.must(err)
			unmark(f)
			f.looksForTombstones(false)
			r, _ := before.Collection(testNS)
			if n, err := r.scanned("a"); n != 1 || err != nil {
				t.Errorf("a view from before sees %d living entries (%v)", n, err)
			}
			f.must(before.Close())
			f.validate(testNS)
			for _, id := range []int32{40, 41} {
				f.insertDated(id, f.Now()+int64(id))
			}
			f.clock.Advance(time.Second + 40*time.Millisecond)
			if f.Bounds().Few = 1; name == "all swept" {
				f.sweepTested(1)
			} else {
				f.sweepTested(2)
			}
			f.looksForTombstones(true)
			f.validate(testNS)
		})
	}
}

func (f *fixture) looksForTombstones(want bool) {
	f.t.Helper()
	f.read(testNS, func(r *Reader) error {
		if r.MayHaveTombstones() != want {
			f.t.Errorf("tombstones are looked for: %v", !want)
		}
		return nil
	})
}

func (f *fixture) sweepTested(want int64) {
	f.t.Helper()
	c := f.tested()
	done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
	if done.Documents != want || !ok || err != nil {
		f.t.Errorf("swept %+v, %v, %v", done, ok, err)
	}
}

// scanned counts what a scan of an index finds.
func (r *Reader) scanned(name string) (n int, err error) {
	cur, err := r.ScanIndex(IndexScan{Index: r.c.Index(name)})
	if err != nil {
		return 0, err
	}
	defer cur.Close()
	for cur.Next() {
		n++
	}
	return n, cur.Err()
}
