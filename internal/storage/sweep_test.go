package storage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// TestSweepCountsLittle: where the cut lies in the middle of more records than are counted, a sweep ends before them.
func TestSweepCountsLittle(t *testing.T) {
	const each = 8
	for limit, want := range map[int]int64{each / 2: each, each + 1: 2 * each} {
		f := newFixture(t)
		f.Bounds().MostCounted = limit
		f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
		slot := epoch.UnixMilli() / expiryorder.NarrowestSlot * expiryorder.NarrowestSlot
		for i := range each {
			for k, date := range []int64{slot - 100, slot + 2, slot + expiryorder.NarrowestSlot - 1} {
				f.insertDated(int32(10*i+k), date)
			}
		}
		f.clock.Advance(time.Second + time.UnixMilli(slot+4).Sub(epoch))
		c := f.tested()
		done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now())
		if err != nil || !ok || done.Documents != want {
			t.Errorf("at most %d counted: swept %+v, %v, %v, want %d", limit, done, ok, err, want)
		}
		f.validate(testNS)
		f.clock.Advance(time.Second)
		if done, ok, err = f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now()); err != nil || !ok || done.Documents != 3*each-want {
			t.Errorf("at most %d counted: then swept %+v, %v, %v", limit, done, ok, err)
		}
		f.validate(testNS)
	}
}

// TestSweepLooksBeforeItEmpties: where the counter says that a sweep leaves nothing, what lies on either side of it stays.
func TestSweepLooksBeforeItEmpties(t *testing.T) {
	now := epoch.UnixMilli()
	for _, c := range []struct {
		index string
		stay  string // documents that do not expire, each on another side of what does
	}{
		{`{key: {d: 1}, name: "t", expireAfterSeconds: 1}`, fmt.Sprintf(`{_id: 100, d: Date(%d)}`, now+1e9)},
		{`{key: {d: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: 100}`},
		{`{key: {_ts: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: 100, ttl: 1000000}`},
		{`{key: {_ts: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: 100, ttl: -1}`},
		{`{key: {_ts: 1}, name: "t", expireAfterSeconds: 1000}`, `{_id: 100}`},
		{`{key: {_ts: 1}, name: "t", expireAfterSeconds: -1}`, `{_id: 100}`},
	} {
		f := newFixture(t)
		f.createIndexes(testNS, c.index, `{key: {a: 1}, name: "a"}`)
		for i := range 20 {
			f.must(f.insert(testNS, fmt.Sprintf(`{_id: %d, d: Date(%d), ttl: 1, a: 1}`, i, now)))
		}
		f.must(f.insert(testNS, c.stay))
		f.must(f.spoilCount(-1))
		f.clock.Advance(time.Second)
		coll := f.tested()
		done, ok, err := f.Sweep(context.Background(), coll.ID, coll.order.Rule, f.Now())
		if err != nil || !ok || done.Documents != 20 {
			t.Errorf("%s: swept %+v, %v, %v", c.index, done, ok, err)
		}
		f.must(f.spoilCount(1))
		if got := f.ids(testNS); got != "100" {
			t.Errorf("%s: %s is left, not the one that has not expired: %s", c.index, got, c.stay)
		}
		f.validate(testNS)
	}
}

// spoilCount makes the counter of documents wrong.
func (f *fixture) spoilCount(by int64) error {
	t, err := f.engine.Begin()
	if err != nil {
		return err
	}
	t.Add(layout.CounterKey(nil, layout.OfCollection, f.tested().ID, layout.CountDocuments), by)
	return t.Commit(context.Background(), kv.Synced)
}

// TestManyDueInASeries: what is due is found in pieces, and goes on behind the last, by each kind of rule.
func TestManyDueInASeries(t *testing.T) {
	f := newFixture(t)
	_, err := f.CreateCollection(context.Background(), testNS, bson.MustDoc(`{timeseries: {timeField: "t", metaField: "m", bucketMaxSpanSeconds: 3600}, expireAfterSeconds: NumberLong(10)}`))
	f.must(err)
	f.createIndexes(testNS, `{key: {t: 1}, name: "t", expireAfterSeconds: 10, partialFilterExpression: {m: {$lt: 3}}}`)
	const n = 2500
	var docs []string
	for i := range n {
		docs = append(docs, fmt.Sprintf(`{_id: %d, t: Date(%d), m: %d}`, i, epoch.UnixMilli()-int64(i%7), i%5))
	}
	for some := range slices.Chunk(docs, 500) {
		f.must(f.insert(testNS, some...))
	}
	f.clock.Advance(3 * time.Hour)
	for _, rule := range f.tested().rules.All() {
		want := n
		if rule.Index != nil {
			want = n / 5 * 3
		}
		f.read(testNS, func(r *Reader) error {
			seen := map[string]bool{}
			for after, more := []byte(nil), true; more; more = after != nil {
				ids, next, err := r.Due(&rule, f.Now(), after, 1000)
				if err != nil {
					return err
				}
				for _, id := range ids {
					seen[string(id)] = true
				}
				after = next
			}
			if len(seen) != want {
				t.Errorf("%d are found by rule %q, not %d", len(seen), rule.Name(), want)
			}
			return nil
		})
	}
	own, _ := f.tested().rules.Own()
	if deleted, err := f.deleteDue(context.Background(), f.find([]namespace.NS{testNS})[0], own, f.Now(), besideWriters); err != nil || deleted != n {
		t.Errorf("%d are deleted, %v", deleted, err)
	}
	f.validate(testNS)
}
