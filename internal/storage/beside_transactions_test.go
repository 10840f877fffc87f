package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// sweptBeside is a collection of which 20 documents are due, _ids 0 to 19, and five are not, under a TTL of 10 seconds, with the ways in which a sweep may
// tell of what goes.
type sweptBeside struct {
	*fixture
	released []uint32
}

// sweptWays are the collections that sweeps differ for: what they tell, and where they find dates.
var sweptWays = []struct{ events, index string }{
	{"", "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}"}, // no oplog
	{"documents", "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}"},
	{"documents", "{key: {d: -1}, name: 'ttl', expireAfterSeconds: 10, hideExpired: true}"},
	{"summary", "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}"},
	{"summary", "{key: {_ts: 1}, name: 'ttl', expireAfterSeconds: 10}"},
	{"none", "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10, hideExpired: true}"},
	{"none", "{key: {_ts: 1}, name: 'ttl', expireAfterSeconds: 10}"},
	{"none", "clustered"},
	{"documents", "clustered"},
}

func eachSweptWay(t *testing.T, f func(t *testing.T, f *sweptBeside, id func(n int) string)) {
	for _, way := range sweptWays {
		t.Run(way.events+" "+way.index, func(t *testing.T) {
			s := &sweptBeside{}
			if way.events == "" {
				s.fixture = newFixture(t)
			} else {
				s.fixture = logged(t)
			}
			s.options.OnReleased = func(collection uint32) { s.released = append(s.released, collection) }
			s.reopen()
			id := func(n int) string { return fmt.Sprint(n) }
			var options []string
			if way.events != "" {
				options = append(options, "expirationEvents: '"+way.events+"'")
			}
			if way.index == "clustered" {
				options = append(options, "clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: 10")
				start := s.clock.Now().UnixMilli()
				id = func(n int) string {
					if n >= 20 && n < 100 { // which live on
						return fmt.Sprintf("new Date(%d)", start+100_000+int64(n))
					}
					return fmt.Sprintf("new Date(%d)", start+int64(n))
				}
			}
			_, err := s.CreateCollection(context.Background(), testNS, bson.MustDoc("{"+strings.Join(options, ", ")+"}"))
			s.must(err)
			if way.index != "clustered" {
				s.createIndexes(testNS, way.index, "{key: {a: 1}, name: 'a'}", "{key: {u: 1}, name: 'u', unique: true, sparse: true}")
			}
			for n := range 20 {
				s.must(s.insert(testNS, s.doc(id(n), n, "")))
			}
			s.clock.Advance(8 * time.Second)
			for n := 20; n < 25; n++ {
				s.must(s.insert(testNS, s.doc(id(n), n, "")))
			}
			f(t, s, id)
		})
	}
}

// doc is a document of now.
func (s *sweptBeside) doc(id string, n int, more string) string {
	return fmt.Sprintf("{_id: %s, d: new Date(%d), a: %d, u: %d%s}", id, s.clock.Now().UnixMilli(), n%3, n, more)
}

// sweep sweeps all at once, if it can, as often as there is more.
func (s *sweptBeside) sweep() (documents int64) {
	s.t.Helper()
	c := s.tested()
	for more := true; more; {
		done, _, err := s.Sweep(context.Background(), c.ID, c.order.Rule, s.Now())
		s.must(err)
		if done.Busy || done.Uncounted {
			s.t.Fatalf("the sweep did not come to it: %+v", done)
		}
		documents += done.Documents
		more = done.More
	}
	return documents
}

// numbers are the values of u that a view sees, in the order of the index on a, or where there is none of the records; the counter and, under
// each _id, the documents have to be the same.
func (s *sweptBeside) numbers(v *View) (all []int) {
	s.t.Helper()
	r, ok := v.Collection(testNS)
	if !ok {
		s.t.Fatal("there is no collection")
	}
	there := map[int]int{}
	c, err := r.Scan(RecordScan{})
	s.must(err)
	for c.Next() {
		doc := c.Record().Doc.Clone()
		there[int(doc.Lookup("u").Int32())]++
		rec, found, err := r.GetByID(doc.Lookup("_id"))
		if err != nil || !found || !bson.Equal(rec.Doc.Lookup("u"), doc.Lookup("u")) {
			s.t.Errorf("%s is not found by its _id: %v", doc, err)
		}
	}
	s.must(errors.Join(c.Err(), c.Close()))
	if d := r.Catalog().Index("a"); d != nil {
		byIndex := map[int]int{}
		c, err := r.ScanIndex(IndexScan{Index: d})
		s.must(err)
		for c.Next() {
			rec, found, err := r.Get(c.Entry().RecordID)
			if err != nil || !found {
				s.t.Errorf("an entry has no record: %v", err)
				continue
			}
			byIndex[int(rec.Doc.Lookup("u").Int32())]++
		}
		s.must(errors.Join(c.Err(), c.Close()))
		if fmt.Sprint(byIndex) != fmt.Sprint(there) {
			s.t.Errorf("by the index on a there are %v, of records %v", byIndex, there)
		}
	}
	n, err := r.Count()
	s.must(err)
	if n != int64(len(there)) {
		s.t.Errorf("%d are counted of %v", n, there)
	}
	for u := range 1000 {
		if there[u] > 1 {
			s.t.Errorf("%d is there %d times", u, there[u])
		}
		if there[u] > 0 {
			all = append(all, u)
		}
	}
	return all
}

func (s *sweptBeside) wantNumbers(who string, v *View, want ...int) {
	s.t.Helper()
	if got := s.numbers(v); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("%s sees %v, want %v", who, got, want)
	}
}

// wantOthers is wantNumbers for who reads now.
func (s *sweptBeside) wantOthers(want ...int) {
	s.t.Helper()
	v, err := s.View(context.Background())
	s.must(err)
	defer v.Close()
	s.wantNumbers("everybody", v, want...)
}

// wantStored is wantOthers for who sees what is hidden.
func (s *sweptBeside) wantStored(documents int64) {
	s.t.Helper()
	s.read(testNS, func(r *Reader) error {
		n, err := r.Stored()
		if n != documents {
			s.t.Errorf("%d documents are stored, want %d", n, documents)
		}
		return err
	})
}

func upTo(from, to int) (all []int) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// TestSweepBesideTransactions: a sweep spares what open transactions have written, and nothing else; they see what they saw, and commit; and
// what was spared goes when they have ended, unless it does not expire any more.
func TestSweepBesideTransactions(t *testing.T) {
	eachSweptWay(t, func(_ *testing.T, s *sweptBeside, id func(int) string) { s.besideTransactions(id, true) })
}

// TestSweepBesideAborted is TestSweepBesideTransactions where they abort.
func TestSweepBesideAborted(t *testing.T) {
	eachSweptWay(t, func(_ *testing.T, s *sweptBeside, id func(int) string) { s.besideTransactions(id, false) })
}

func (s *sweptBeside) besideTransactions(id func(int) string, commit bool) {
	t := s.t
	isClustered := s.tested().order.Clustered
	first, reader, second := s.beginTransaction(), s.beginTransaction(), s.beginTransaction()
	s.must(first.set(testNS, s.doc(id(3), 3, ", first: true"))) // lives on, but in a clustered collection
	s.must(first.Write(context.Background(), testNS, creating, func(w *Writer) error {
		rec, _, err := w.GetByID(bson.MustDoc("{i: " + id(4) + "}").Lookup("i"))
		if err != nil {
			return err
		}
		return w.Delete(rec.Clone())
	}))
	s.must(first.set(testNS, s.doc(id(100), 100, ""), s.doc(id(101), 101, "")))
	s.must(second.set(testNS, s.doc(id(21), 21, ", second: true")))
	s.clock.Advance(3 * time.Second)
	if swept := s.sweep(); swept != 18 {
		t.Fatalf("%d documents were swept, want 18", swept)
	}
	s.wantStored(7)
	s.wantNumbers("who only reads", reader.Statement(context.Background()), upTo(0, 25)...)
	s.wantNumbers("who has written", first.Statement(context.Background()), append(append(upTo(0, 4), upTo(5, 25)...), 100, 101)...)
	if err := reader.set(testNS, s.doc(id(7), 7, ", reader: true")); !mongoerr.Is(err, mongoerr.WriteConflict) {
		t.Errorf("writing what was swept: %v", err)
	}
	reader.Rollback()
	s.must(first.set(testNS, s.doc(id(3), 3, ", again: true"), s.doc(id(20), 20, ", first: true")))
	if swept := s.sweep(); swept != 0 {
		t.Errorf("%d documents more were swept", swept)
	}
	s.must(second.Commit(context.Background(), kv.Buffered))
	if len(s.released) != 0 {
		t.Errorf("%d were released by who had nothing that was spared", s.released)
	}
	s.validate(testNS)
	left := []int{20, 21, 22, 23, 24}
	if commit {
		s.must(first.Commit(context.Background(), kv.Buffered))
		left = append([]int{3}, append(left, 100, 101)...)
	} else {
		first.Rollback()
	}
	if fmt.Sprint(s.released) != fmt.Sprint([]uint32{s.tested().ID}) {
		t.Errorf("%d were released", s.released)
	}
	s.validate(testNS)
	if commit {
		s.wantStored(8)
		if !isClustered {
			s.wantOthers(left...)
		}
	}
	due := int64(0)
	switch {
	case commit && isClustered: // whose dates do not move
		due, left = 3, left[1:6]
	case !commit:
		due = 2
	}
	if swept := s.sweep(); swept != due {
		t.Errorf("%d documents were swept at the end, want %d", swept, due)
	}
	s.wantOthers(left...)
	s.wantStored(int64(len(left)))
	s.validate(testNS)
	for more := true; more; {
		var err error
		_, more, err = s.Vacuum(context.Background(), s.tested().ID, 5)
		s.must(err)
	}
	s.validate(testNS)
	s.reopen()
	s.wantOthers(left...)
	s.validate(testNS)
	s.clock.Advance(200 * time.Second)
	s.sweep()
	s.wantStored(0)
	s.validate(testNS)
}

// TestReclusterBesideTransactions: what an open transaction has written is put in order when it has ended, and all else at once; and a transaction that
// began before goes on seeing what lay elsewhere then, also when all lies in order and was swept.
func TestReclusterBesideTransactions(t *testing.T) {
	for _, commit := range []bool{true, false} {
		s := &sweptBeside{fixture: newFixture(t)}
		s.options.OnReleased = func(collection uint32) { s.released = append(s.released, collection) }
		s.reopen()
		for n := range 10 {
			s.must(s.insert(testNS, s.doc(fmt.Sprint(n), n, "")))
		}
		s.createIndexes(testNS, "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}", "{key: {a: 1}, name: 'a'}")
		reader, writer := s.beginTransaction(), s.beginTransaction()
		s.must(writer.set(testNS, s.doc("3", 3, ", w: 1"), s.doc("4", 4, ", w: 1")))
		recluster := func() {
			t.Helper()
			for more := true; more; {
				var err error
				_, more, err = s.Recluster(context.Background(), s.tested().ID, 3)
				s.must(err)
			}
		}
		wantUnclustered := func(want int64) {
			t.Helper()
			if n, err := s.Unclustered(context.Background(), s.tested().ID, 100); n != want || err != nil {
				t.Errorf("%d records lie elsewhere, want %d, %v", n, want, err)
			}
		}
		recluster()
		wantUnclustered(2)
		if commit {
			s.must(writer.Commit(context.Background(), kv.Buffered))
			wantUnclustered(0)
		} else {
			writer.Rollback()
			wantUnclustered(2)
		}
		if len(s.released) != 1 {
			t.Errorf("%d were released", s.released)
		}
		recluster()
		wantUnclustered(0)
		s.clock.Advance(11 * time.Second)
		if swept := s.sweep(); swept != 10 {
			t.Errorf("%d were swept", swept)
		}
		s.wantOthers()
		s.wantNumbers("who began before", reader.Statement(context.Background()), upTo(0, 10)...)
		reader.Rollback()
		s.validate(testNS)
	}
}

// TestVacuumBesideTransactions: a dead entry whose key an open transaction has taken stays, and with it what tells that it is dead. An entry
// that was vacuumed after a transaction began is not counted twice when that takes its key.
func TestVacuumBesideTransactions(t *testing.T) {
	for _, dense := range []bool{true, false} {
		for _, commit := range []bool{true, false} {
			s := &sweptBeside{fixture: newFixture(t)}
			s.options.OnReleased = func(collection uint32) { s.released = append(s.released, collection) }
			s.reopen()
			s.createIndexes(testNS, "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}", "{key: {a: 1}, name: 'a'}")
			for n := range 10 {
				s.must(s.insert(testNS, s.doc(fmt.Sprint(n), n, "")))
			}
			s.clock.Advance(8 * time.Second)
			s.must(s.insert(testNS, s.doc("20", 20, "")))
			s.clock.Advance(3 * time.Second)
			if swept := s.sweep(); swept != 10 {
				t.Errorf("%d were swept", swept)
			}
			early, late := s.beginTransaction(), s.beginTransaction()
			s.must(early.set(testNS, s.doc("3", 3, ", early: true")))
			vacuum := func() {
				t.Helper()
				for more := true; more; {
					var err error
					_, more, err = s.Vacuum(context.Background(), s.tested().ID, 4)
					s.must(err)
				}
			}
			if dense { // while nobody has written
				early.Rollback()
				vacuum()
				early = s.beginTransaction()
				s.must(early.set(testNS, s.doc("3", 3, ", early: true")))
				s.must(late.set(testNS, s.doc("5", 5, ", late: true")))
			} else {
				vacuum()
				if !s.tested().state.tombstones.IsSet() {
					t.Error("nothing tells that what is left is dead")
				}
				s.validate(testNS)
			}
			want := []int{20}
			if commit {
				s.must(early.Commit(context.Background(), kv.Buffered))
				if want = []int{3, 20}; dense {
					s.must(late.Commit(context.Background(), kv.Buffered))
					want = []int{3, 5, 20}
				}
			} else {
				early.Rollback()
			}
			late.Rollback()
			if got := len(s.released); got != map[bool]int{false: 1}[dense] {
				t.Errorf("%d were released", got)
			}
			vacuum()
			if s.tested().state.tombstones.IsSet() {
				t.Error("there are tombstones left")
			}
			s.validate(testNS)
			s.wantOthers(want...)
		}
	}
}

// TestSweepBesideWaiting: neither a sweep nor a transaction waits for one who waits for the transaction's end to change the collection.
func TestSweepBesideWaiting(t *testing.T) {
	s := &sweptBeside{fixture: newFixture(t)}
	s.createIndexes(testNS, "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}")
	for n := range 10 {
		s.must(s.insert(testNS, s.doc(fmt.Sprint(n), n, "")))
	}
	s.clock.Advance(10 * time.Second)
	txn := s.beginTransaction()
	s.must(txn.set(testNS, s.doc("3", 3, ", w: 1")))
	dropped := make(chan error)
	go func() {
		_, err := s.DropCollection(context.Background(), testNS)
		dropped <- err
	}()
	for lock := s.tested().state.lock; lock.Try(ownership.Shared); runtime.Gosched() { // until it waits
		lock.Release(ownership.Shared)
	}
	if swept := s.sweep(); swept != 9 {
		t.Errorf("%d were swept", swept)
	}
	s.must(txn.set(testNS, s.doc("3", 3, ", w: 2"), s.doc("11", 11, "")))
	s.must(txn.Commit(context.Background(), kv.Buffered))
	s.must(<-dropped)
}

// TestSweepSparesSome: where open transactions have written more than a sweep leaves, what is due goes one by one.
func TestSweepSparesSome(t *testing.T) {
	for _, bytes := range []bool{true, false} {
		s := &sweptBeside{fixture: newFixture(t)}
		s.createIndexes(testNS, "{key: {d: 1}, name: 'ttl', expireAfterSeconds: 10}")
		for n := range 10 {
			s.must(s.insert(testNS, s.doc(fmt.Sprint(n), n, "")))
		}
		s.clock.Advance(10 * time.Second)
		txn := s.beginTransaction()
		s.must(txn.set(testNS, s.doc("3", 3, ", w: 1"), s.doc("4", 4, ", w: 1"), s.doc("5", 5, ", w: 1")))
		if s.Bounds().MostSpared = 2; bytes {
			s.Bounds().MostSpared, s.Bounds().MostSparedBytes = 3, 100
		}
		if swept := s.sweep(); swept != 0 {
			t.Errorf("%d were swept", swept)
		}
		rule := s.tested().order.Rule
		if deleted, err := s.deleteDue(context.Background(), s.tested(), rule, s.Now(), besideWriters); deleted != 7 || err != nil {
			t.Errorf("%d were deleted, %v", deleted, err)
		}
		s.wantOthers(3, 4, 5)
		txn.Rollback()
		if swept := s.sweep(); swept != 3 {
			t.Errorf("%d were swept", swept)
		}
		s.validate(testNS)
	}
}

// TestTransactionHides: what a transaction sees does not become hidden when the clock is turned back.
func TestTransactionHides(t *testing.T) {
	s := &sweptBeside{fixture: newFixture(t)}
	up := int64(math.MinInt64)
	s.options.HidesUpTo = func() int64 { return up }
	s.reopen()
	s.createIndexes(testNS, "{key: {_ts: 1}, name: 'ttl', expireAfterSeconds: 10}")
	s.must(s.insert(testNS, s.doc("1", 1, "")))
	before := s.beginTransaction()
	s.wantNumbers("a transaction", before.Statement(context.Background()), 1)
	up = s.Now() + 20_000
	s.wantNumbers("a transaction that began before", before.Statement(context.Background()), 1)
	s.wantNumbers("a transaction that began after", s.beginTransaction().Statement(context.Background()))
	s.wantOthers()
}
