package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/testseed"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// slidingFixture is a collection with a TTL index on _ts whose cells are as wide as they get.
func slidingFixture(t *testing.T, documents int, doc func(n int) string) *fixture {
	f := newFixture(t)
	f.createIndexes(datedNS, fmt.Sprintf(`{key: {_ts: 1}, name: "ts", expireAfterSeconds: %d}`, slidingSeconds), `{key: {a: 1}, name: "a"}`)
	f.must(f.Write(context.Background(), datedNS, creating, func(w *Writer) error {
		for n := range documents {
			if _, err := w.Insert(bson.MustDoc(doc(n))); err != nil {
				return err
			}
		}
		return nil
	}))
	return f
}

const slidingSeconds = 3840

// touchAll changes the documents up to an _id one after the other.
func (f *fixture) touchAll(documents int, between func() time.Duration) {
	f.t.Helper()
	ids := make([]int, documents)
	for n := range ids {
		ids[n] = n
	}
	f.touch(ids, between)
}

// touch changes documents by their _ids; between each two so much time goes by.
func (f *fixture) touch(ids []int, between func() time.Duration) {
	f.t.Helper()
	for _, n := range ids {
		f.must(f.Write(context.Background(), datedNS, creating, func(w *Writer) error {
			rec, ok, err := w.GetByID(bson.Int32(int32(n)))
			if !ok || err != nil {
				return err // it may have expired
			}
			rec = rec.Clone()
			_, _, err = w.Update(rec, touched(rec.Doc, int64(f.clock.Now().UnixNano())))
			return err
		}))
		f.clock.Advance(between())
	}
}

// modified are the deadlines of all stored documents, by _id, and when each was modified.
func (f *fixture) modified() (deadlines, modified map[string]int64, coarse int) {
	f.t.Helper()
	deadlines, modified = map[string]int64{}, map[string]int64{}
	f.read(datedNS, func(r *Reader) error {
		c, err := r.Unhidden().Scan(RecordScan{})
		f.must(err)
		defer c.Close()
		for c.Next() {
			rec := c.Record()
			id := rec.Doc.Lookup("_id").String()
			deadlines[id], _ = r.Rules().All()[0].Deadline(rec.Doc, rec.Modified)
			modified[id] = rec.Modified
			if rec.ID.IsOrdered() && rec.ID.IsCoarse() {
				coarse++
			}
		}
		return c.Err()
	})
	return deadlines, modified, coarse
}

// TestCoarsePlaces asks everything that is known of deadlines, where most records lie at coarse places, at random times, and
// compares with the documents.
func TestCoarsePlaces(t *testing.T) {
	const documents = 300
	random := rand.New(rand.NewPCG(testseed.Of(t), 1))
	f := slidingFixture(t, documents, func(n int) string {
		if ttl := []string{"", "", ", ttl: -1", ", ttl: 4000", ", ttl: 3700", fmt.Sprintf(", ttl: %d", 1000+random.IntN(60)), ", ttl: 30"}[random.IntN(7)]; ttl != "" {
			return fmt.Sprintf(`{_id: %d, a: %d%s}`, n, n%7, ttl)
		}
		return fmt.Sprintf(`{_id: %d, a: %d}`, n, n%7)
	})
	f.touch(random.Perm(documents), func() time.Duration { return time.Duration(random.IntN(400)) * time.Millisecond })
	if _, _, coarse := f.modified(); coarse < documents/4 {
		t.Fatalf("only %d records lie at coarse places", coarse)
	}
	for range 60 {
		f.checkCoarse(random)
		if random.IntN(8) == 0 {
			f.clock.Step(-time.Duration(random.IntN(20_000)) * time.Millisecond)
		} else {
			f.clock.Advance(time.Duration(random.IntN(200_000)) * time.Millisecond)
		}
		if random.IntN(4) == 0 {
			f.touch(random.Perm(documents)[:random.IntN(documents)], func() time.Duration { return time.Duration(random.IntN(20)) * time.Millisecond })
		}
	}
}

func (f *fixture) checkCoarse(random *rand.Rand) {
	f.t.Helper()
	f.validate(datedNS)
	deadlines, modified, _ := f.modified()
	at := f.Now() + random.Int64N(5_000_000) - 500_000
	all, due := []int64{}, []int64{}
	next, upcoming := int64(policy.Never), int64(policy.Never)
	for _, d := range deadlines {
		if d == policy.Never {
			continue
		}
		all, next = append(all, d), min(next, d)
		if d <= at {
			due = append(due, d)
		} else {
			upcoming = min(upcoming, d)
		}
	}
	slices.Sort(all)
	slices.Sort(due)
	f.read(datedNS, func(r *Reader) error {
		rule := &r.Rules().All()[0]
		f.checkSeen(r, deadlines)
		if got := f.deadlines(r, rule); !slices.Equal(got, all) {
			f.t.Fatalf("the deadlines are %v, want %v", got, all)
		}
		got, ok, err := r.Dates().Next(rule)
		if f.must(err); got != next || ok != (next != policy.Never) {
			f.t.Fatalf("the next deadline is %d, want %d", got, next)
		}
		if got, _, err = r.Dates().Upcoming(rule, at); err != nil || got != upcoming {
			f.t.Fatalf("the next deadline after %d is %d, want %d (%v)", at, got, upcoming, err)
		}
		if n, err := r.Dates().Count(rule, at, math.MaxInt64); err != nil || n != int64(len(due)) {
			f.t.Fatalf("%d are due at %d, want %d (%v)", n, at, len(due), err)
		}
		f.checkStanding(r, rule, at, due)
		f.checkDryRun(r, rule, at, deadlines)
		since := f.Now() - random.Int64N(500_000)
		defaults, onDefault := f.onDefault(r), 0
		for id, m := range modified {
			if m > since && defaults[id] {
				onDefault++
			}
		}
		after, err := r.Dates().ModifiedAfter(rule, since, math.MaxInt64)
		if err != nil || after != int64(onDefault) {
			f.t.Fatalf("%d were modified after %d, want %d (%v)", after, since, onDefault, err)
		}
		f.checkDue(r, rule, at, deadlines, random)
		return nil
	})
}

// checkSeen compares what is seen, and counted, with the deadlines.
func (f *fixture) checkSeen(r *Reader, deadlines map[string]int64) {
	f.t.Helper()
	left := 0
	for _, d := range deadlines {
		if d > f.Now() {
			left++
		}
	}
	c, err := r.Scan(RecordScan{})
	f.must(err)
	defer c.Close()
	seen := 0
	for ; c.Next(); seen++ {
		if id := c.Record().Doc.Lookup("_id"); deadlines[id.String()] <= f.Now() {
			f.t.Fatalf("%s is seen at %d, and has expired at %d", id, f.Now(), deadlines[id.String()])
		}
	}
	n, err := r.Count()
	if err := errors.Join(err, c.Err()); err != nil || seen != left || n != int64(left) {
		f.t.Fatalf("%d are seen and %d counted, want %d (%v)", seen, n, left, err)
	}
}

// onDefault are the _ids of documents without a ttl of their own.
func (f *fixture) onDefault(r *Reader) map[string]bool {
	ids := map[string]bool{}
	c, err := r.Unhidden().Scan(RecordScan{})
	f.must(err)
	defer c.Close()
	for c.Next() {
		if doc := c.Record().Doc; doc.Lookup("ttl").Type == 0 {
			ids[doc.Lookup("_id").String()] = true
		}
	}
	return ids
}

func (f *fixture) checkStanding(r *Reader, rule *policy.Rule, at int64, dues []int64) {
	f.t.Helper()
	s, err := r.Dates().Standing(rule, at, &due.Front{}, math.MaxInt64, math.MaxInt64)
	oldest := int64(policy.Never)
	if len(dues) > 0 {
		oldest = dues[0]
	}
	if err != nil || s.Oldest != oldest || s.Due != int64(len(dues)) || !s.All {
		f.t.Fatalf("at %d: %+v, want %d due, the oldest at %d (%v)", at, s, len(dues), oldest, err)
	}
}

// checkDryRun compares what a shorter TTL would expire.
func (f *fixture) checkDryRun(r *Reader, rule *policy.Rule, at int64, deadlines map[string]int64) {
	f.t.Helper()
	shorter := *rule
	shorter.Seconds = 60
	want := int64(0)
	c, err := r.Unhidden().Scan(RecordScan{})
	f.must(err)
	defer c.Close()
	for c.Next() {
		if d, _ := shorter.Deadline(c.Record().Doc, c.Record().Modified); d <= at {
			want++
		}
	}
	n := int64(0)
	w, err := r.Dates().DeadlinesBy(&shorter, at, func(int64) { n++ })
	if err != nil || !w.All || n != want {
		f.t.Fatalf("%d would expire by %d, want %d of %d (%+v, %v)", n, at, want, len(deadlines), w, err)
	}
}

// checkDue goes through what is due in steps, with a grace and without.
func (f *fixture) checkDue(r *Reader, rule *policy.Rule, at int64, deadlines map[string]int64, random *rand.Rand) {
	f.t.Helper()
	graces := []int64{math.MinInt64, at - random.Int64N(100_000), at - random.Int64N(100_000)}
	graces[2] |= 0xFF // the keys behind such a date are shorter
	for _, spared := range graces {
		want := map[string]bool{}
		for id, d := range deadlines {
			if d <= at && d > spared {
				want[id] = true
			}
		}
		var after []byte
		for more := true; more; more = after != nil {
			spans := due.Soon(r.Dates().DueBy(rule, at))
			if spared != math.MinInt64 {
				due.Behind(spans, r.Dates().DueBy(rule, spared))
			}
			ids, next, err := r.Dates().Some(spans, after, 1+random.IntN(40))
			f.must(err)
			for _, id := range ids {
				rec, _, err := r.stored(id)
				f.must(err)
				if _id := rec.Doc.Lookup("_id").String(); !want[_id] {
					f.t.Fatalf("%s is due at %d, spared up to %d, or comes twice: its deadline is %d", _id, at, spared, deadlines[_id])
				} else {
					delete(want, _id)
				}
			}
			after = next
		}
		if len(want) > 0 {
			f.t.Fatalf("%v should be due at %d, spared up to %d", want, at, spared)
		}
	}
}

// TestCrowdedCell: where more records lie at one place than are looked at, they are hidden on time and deleted at the place's end, at
// once; who waits for the next deadline waits until then.
func TestCrowdedCell(t *testing.T) {
	for _, documents := range []int{due.MostLooked - 1, due.MostLooked + 1} {
		f := slidingFixture(t, documents, func(n int) string { return fmt.Sprintf(`{_id: %d, a: %d}`, n, n%7) })
		f.clock.Advance(time.UnixMilli((f.Now()/expiryorder.MaxCell+1)*expiryorder.MaxCell + 1).Sub(f.clock.Now()))
		changed := f.Now()
		f.touchAll(documents, func() time.Duration { return time.Millisecond })
		if _, _, coarse := f.modified(); coarse != documents {
			t.Fatalf("%d of %d lie at coarse places", coarse, documents)
		}
		place := changed + expiryorder.MaxCell - 1
		f.clock.Advance(time.UnixMilli(changed + slidingSeconds*1000 + 20_000).Sub(f.clock.Now()))
		var ids []RecordID
		var upcoming, seen int64
		f.read(datedNS, func(r *Reader) (err error) {
			rule := &r.Rules().All()[0]
			ids, _, err = r.Due(rule, f.Now(), nil, 2*documents)
			f.must(err)
			upcoming, _, err = r.Dates().Upcoming(rule, changed+slidingSeconds*1000-1)
			f.must(err)
			seen, err = r.Count()
			return err
		})
		want, wantUpcoming := documents, changed+slidingSeconds*1000
		if documents > due.MostLooked {
			want, wantUpcoming = 0, place+slidingSeconds*1000
		}
		if len(ids) != want || upcoming != wantUpcoming || seen != 0 {
			t.Errorf("of %d: %d may be deleted, want %d; the next deadline is %d, want %d; %d are seen", documents, len(ids), want, upcoming, wantUpcoming, seen)
		}
		if _, ok, err := f.Sweep(context.Background(), f.collection(datedNS), f.current.Load().collections[f.collection(datedNS)].order.Rule, f.Now()); ok || err != nil {
			t.Errorf("something was swept before its place: %v", err)
		}
		f.clock.Advance(time.UnixMilli(place + slidingSeconds*1000).Sub(f.clock.Now()))
		done, ok, err := f.Sweep(context.Background(), f.collection(datedNS), f.current.Load().collections[f.collection(datedNS)].order.Rule, f.Now())
		if !ok || err != nil || done.Documents != int64(documents) {
			t.Errorf("at the end of the cell %+v were swept, want %d documents (%v)", done, documents, err)
		}
		f.validate(datedNS)
	}
}

// TestStaysInPlace: a record whose document is changed less than a cell later stays where it is, and its index entries with it.
func TestStaysInPlace(t *testing.T) {
	f := slidingFixture(t, 1, func(int) string { return `{_id: 0, a: 1}` })
	f.touchAll(1, func() time.Duration { return time.Second })
	place := func() (id RecordID) {
		f.read(datedNS, func(r *Reader) error {
			rec, _, err := r.GetByID(bson.Int32(0))
			id = rec.ID.Clone()
			return err
		})
		return id
	}
	first, moved := place(), 0
	for range 120 { // two cells
		f.touchAll(1, func() time.Duration { return time.Second })
		if next := place(); string(next) != string(first) {
			first = next
			moved++
		}
	}
	if moved < 1 || moved > 3 {
		t.Errorf("it has moved %d times", moved)
	}
	f.validate(datedNS)
}

// TestShorterTTLPlacesExactly: under a TTL that is much shorter than the cells are wide, changed documents have exact places
// again; what lies at coarse ones expires on time by the new TTL.
func TestShorterTTLPlacesExactly(t *testing.T) {
	f := slidingFixture(t, 3, func(n int) string { return fmt.Sprintf(`{_id: %d, a: 1}`, n) })
	f.touchAll(3, func() time.Duration { return time.Second })
	f.must(f.Modify(context.Background(), datedNS, func(c *catalog.Collection) (*catalog.Collection, error) {
		defs := slices.Clone(c.Indexes)
		for i, d := range defs {
			if d.Name == "ts" {
				changed, err := f.parser.Load(bson.MustDoc(`{v: 2, key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`), nil)
				if err != nil {
					return nil, err
				}
				defs[i] = changed.WithID(d.ID)
			}
		}
		return c.WithIndexes(defs), nil
	}))
	if o := f.Catalog().Collection(datedNS).Order; o.Cell != expiryorder.MaxCell {
		t.Errorf("the cell is %d", o.Cell)
	}
	f.touchAll(1, func() time.Duration { return time.Second })
	if _, _, coarse := f.modified(); coarse != 2 {
		t.Errorf("%d lie at coarse places", coarse)
	}
	seen := func() (n int64) {
		f.read(datedNS, func(r *Reader) (err error) { n, err = r.Count(); return err })
		return n
	}
	var counts []int64
	f.clock.Advance(6 * time.Second)
	for range 4 {
		counts = append(counts, seen())
		f.clock.Advance(time.Second)
	}
	if !slices.Equal(counts, []int64{3, 2, 1, 0}) {
		t.Errorf("%v are seen, second by second", counts)
	}
	f.validate(datedNS)
}

var otherNS = namespace.NS{DB: "db", Coll: "other"}

// TestUpgradeFormat4: a store of format 4 knew no cells. When it is opened its orders by _ts get theirs; no record moves before its
// document is changed.
func TestUpgradeFormat4(t *testing.T) {
	f := slidingFixture(t, 3, func(n int) string { return fmt.Sprintf(`{_id: %d, a: 1}`, n) })
	f.createIndexes(otherNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 60}`)
	c := f.Catalog().Collection(datedNS)
	other := *f.Catalog().Collection(otherNS).Order
	f.must(f.Store.Close())
	x, err := f.engine.Begin()
	f.must(err)
	old := c.WithOrder(&catalog.Order{Number: c.Order.Number, Index: c.Order.Index})
	if old.Document().Lookup("order").Doc().Lookup("cell").Type != 0 {
		t.Fatal("that is no document of format 4")
	}
	x.Set(layout.CollectionKey(c.ID), old.Document())
	x.Set(layout.FormatKey(), binary.BigEndian.AppendUint32(nil, 4))
	f.must(x.Commit(context.Background(), kv.Buffered))
	for range 2 {
		f.open()
		if got := *f.Catalog().Collection(datedNS).Order; got != *c.Order || got.Cell != expiryorder.MaxCell {
			t.Errorf("the order is %+v, was %+v", got, *c.Order)
		}
		if got := *f.Catalog().Collection(otherNS).Order; got != other || got.Cell != 0 {
			t.Errorf("the order by a field is %+v, was %+v", got, other)
		}
		if format, err := f.engine.Snapshot(); err != nil {
			t.Error(err)
		} else {
			v, err := format.Get(layout.FormatKey())
			if err != nil || binary.BigEndian.Uint32(v) != header.Plain {
				t.Errorf("the format is %x (%v)", v, err)
			}
			f.must(format.Close())
		}
		if _, _, coarse := f.modified(); coarse != 0 {
			t.Errorf("%d were moved", coarse)
		}
		f.validate(datedNS)
		f.must(f.Store.Close())
	}
	f.open()
	f.clock.Advance(time.Second)
	f.touchAll(2, func() time.Duration { return time.Second })
	if _, _, coarse := f.modified(); coarse != 2 {
		t.Errorf("%d of the changed lie at coarse places", coarse)
	}
	f.validate(datedNS)
}
