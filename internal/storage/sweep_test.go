package storage

import (
	"context"
	"testing"
	"time"
)

// TestSweepCountsLittle: where the cut lies in the middle of more records than are counted, a sweep ends before them.
func TestSweepCountsLittle(t *testing.T) {
	const each = 8
	for limit, want := range map[int]int64{each / 2: each, each + 1: 2 * each} {
		f := newFixture(t)
		f.mostCounted = limit
		f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
		slot := epoch.UnixMilli() / narrowestSlot * narrowestSlot
		for i := range each {
			for k, date := range []int64{slot - 100, slot + 2, slot + narrowestSlot - 1} {
				f.insertDated(int32(10*i+k), date)
			}
		}
		f.clock.Advance(time.Second + time.UnixMilli(slot+4).Sub(epoch))
		c := f.tested()
		done, ok, err := f.Sweep(context.Background(), c.ID, c.order.rule, f.Now())
		if err != nil || !ok || done.Documents != want {
			t.Errorf("at most %d counted: swept %+v, %v, %v, want %d", limit, done, ok, err, want)
		}
		f.validate(testNS)
		f.clock.Advance(time.Second)
		if done, ok, err = f.Sweep(context.Background(), c.ID, c.order.rule, f.Now()); err != nil || !ok || done.Documents != 3*each-want {
			t.Errorf("at most %d counted: then swept %+v, %v, %v", limit, done, ok, err)
		}
		f.validate(testNS)
	}
}
