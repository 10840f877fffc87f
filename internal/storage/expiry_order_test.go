package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

func (x *script) number() uint32 { return x.current.Load().catalog.Collection(x.ns()).ID }

// sweepAtOnce deletes by each rule what can be deleted as a stretch.
func (x *script) sweepAtOnce() (out string) {
	c := x.current.Load().collections[x.number()]
	for i := range c.rules.All() {
		rule := &c.rules.All()[i]
		done, ok, err := x.Sweep(context.Background(), c.ID, rule, x.Now())
		x.must(err)
		if !ok {
			out += fmt.Sprintf("%s: one by one\n", rule.Name())
			continue
		}
		out += fmt.Sprintf("%s: %d documents, %d bytes, %d keys\n", rule.Name(), done.Documents, done.Bytes, done.Keys)
	}
	return out
}

func (x *script) recluster() string {
	limit := 1000
	x.d.MaybeScanArgs(x.t, "limit", &limit)
	moved, more, err := x.Recluster(context.Background(), x.number(), limit)
	x.must(err)
	return fmt.Sprintf("%d moved, more: %v", moved, more)
}

func (x *script) unclustered() string {
	limit := 1000
	x.d.MaybeScanArgs(x.t, "limit", &limit)
	n, err := x.Unclustered(context.Background(), x.number(), int64(limit))
	x.must(err)
	_, moved := x.Reclustered(x.number())
	return fmt.Sprintf("%d unclustered, %d moved", n, moved)
}

// vacuumSome vacuums once where there is a limit, and otherwise until nothing is left.
func (x *script) vacuumSome() string {
	limit, once := 1000, x.d.HasArg("limit")
	x.d.MaybeScanArgs(x.t, "limit", &limit)
	all, more := 0, true
	for more {
		var removed int
		var err error
		removed, more, err = x.Vacuum(context.Background(), x.number(), limit)
		x.must(err)
		if all += removed; once {
			break
		}
	}
	return fmt.Sprintf("%d removed, more: %v", all, more)
}

// keys counts what lies in each index by looking at keys alone, beside all entries that are stored.
func (x *script) keys() (out string) {
	x.read(x.ns(), func(r *Reader) error {
		dead, documents, err := r.Dead()
		out = fmt.Sprintf("%d documents, %d dead\n", documents, dead)
		for _, d := range r.Catalog().Indexes {
			if d.Kind == index.Deadline {
				continue
			}
			n, err := r.CountEntries(d, nil, nil, 0)
			x.must(err)
			stored, err := r.Entries(d)
			x.must(err)
			out += fmt.Sprintf("%s: %d of %d\n", d.Name, n, stored)
		}
		return err
	})
	return out
}

// TestAgain: a record is found again where it has moved, and another with its _id is another.
func TestAgain(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 60}`)
	f.must(f.insert(testNS, `{_id: 1}`))
	var before Record
	f.read(testNS, func(r *Reader) (err error) {
		before, _, err = r.GetByID(bson.Int32(1))
		before = before.Clone()
		return err
	})
	again := func() (found string) {
		f.read(testNS, func(r *Reader) error {
			rec, ok, err := r.Again(before)
			found = fmt.Sprint(ok, " ", rec.Doc.Text())
			return err
		})
		return found
	}
	f.clock.Advance(5000000)
	_, err := f.change(testNS, bson.Int32(1), `{_id: 1, a: 1}`)
	f.must(err)
	if got := again(); got != `true { _id: 1, a: 1 }` {
		t.Errorf("after a change: %s", got)
	}
	_, err = f.change(testNS, bson.Int32(1), "")
	f.must(err)
	f.must(f.insert(testNS, `{_id: 1, b: 1}`))
	if got := again(); got[:5] != "false" {
		t.Errorf("another one with its _id: %s", got)
	}
}

// TestSequenceAfterArrange: a record that comes after a start does not get the number of one that was moved before, or since.
func TestSequenceAfterArrange(t *testing.T) {
	for _, restarts := range []int{0, 1, 2} {
		f := newFixture(t)
		f.must(f.insert(testNS, `{_id: 1, a: 1}`, `{_id: 2, a: 1}`))
		if restarts > 0 {
			f.reopen()
		}
		f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 0}`, `{key: {a: 1}, name: "a"}`)
		_, _, err := f.Recluster(context.Background(), f.current.Load().catalog.Collection(testNS).ID, 10)
		f.must(err)
		if restarts > 1 {
			f.reopen()
		}
		f.must(f.insert(testNS, `{_id: 3, a: 1}`, `{_id: 4, a: 1}`))
		numbers := map[uint64]bool{}
		f.read(testNS, func(r *Reader) error {
			c, err := r.Scan(RecordScan{})
			f.must(err)
			defer c.Close()
			for c.Next() {
				n, _ := c.Record().ID.Sequence()
				numbers[n] = true
			}
			return c.Err()
		})
		if len(numbers) != 4 {
			t.Errorf("after %d restarts 4 records have the numbers %v", restarts, numbers)
		}
		f.validate(testNS)
	}
}

// TestSweepWaitsForWriters: a transaction that began before a sweep does not write into the collection after it.
func TestSweepBesideTransaction(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 0}`)
	f.must(f.insert(testNS, `{_id: 1, d: ISODate("2001-01-01T00:00:00Z")}`))
	txn, err := f.Begin(context.Background())
	f.must(err)
	defer txn.Rollback()
	c := f.current.Load().collections[f.current.Load().catalog.Collection(testNS).ID]
	if _, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now()); !ok || err != nil {
		t.Fatalf("swept: %v, %v", ok, err)
	}
	if _, err := txn.Writer(testNS); failed(err)[:3] != "112" {
		t.Errorf("got %v", err)
	}
	w, err := f.Begin(context.Background())
	f.must(err)
	_, err = w.Writer(testNS)
	f.must(err)
	f.must(w.Commit(context.Background(), kv.Buffered))
}

// TestFrozen: while rules are being loosened, readers under the old ones see what expires, counted and by every index.
func TestFrozen(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`, `{key: {a: 1}, name: "a"}`)
	f.must(f.insert(testNS, `{_id: 1, a: 1}`))
	f.clock.Advance(5 * time.Second)
	f.must(f.insert(testNS, `{_id: 2, a: 2}`))
	c := f.current.Load().collections[f.collection(testNS)]
	c.frozen.Store(f.Now())
	f.clock.Advance(5 * time.Second) // the first expires
	for _, want := range []int64{2, 1} {
		f.read(testNS, func(r *Reader) error {
			n, err := r.Count()
			_, there, missing := r.GetByID(bson.Int32(1))
			if n != want || there != (want == 2) || missing != nil {
				t.Errorf("%d documents are seen, not %d; the first: %v (%v)", n, want, there, missing)
			}
			return err
		})
		f.handle(c).Thaw()
	}
}

// TestStopHiding: from the last deletion on until nothing is hidden any more nobody writes, and nothing becomes hidden.
func TestStopHiding(t *testing.T) {
	f := newFixture(t)
	f.hideAll = true
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 10}`)
	for i := range 3 {
		f.must(f.insert(testNS, fmt.Sprintf("{_id: %d, d: Date(%d)}", i, f.Now()+int64(i)*1000)))
	}
	f.clock.Advance(10 * time.Second) // the first expires
	seen := func(want int64) {
		t.Helper()
		f.read(testNS, func(r *Reader) error {
			n, err := r.Count()
			_, second, missing := r.GetByID(bson.Int32(1))
			if n != want || !second || missing != nil {
				t.Errorf("%d documents are seen, not %d; the second: %v (%v)", n, want, second, missing)
			}
			return err
		})
	}
	done, err := f.StopHiding(context.Background(), ttlchange.OnHidden{}, func() error {
		f.clock.Advance(time.Second) // and the second
		seen(2)
		if c := f.find([]namespace.NS{testNS})[0]; c.state.lock.Try(ownership.Shared) {
			t.Error("somebody may write")
			c.state.lock.Release(ownership.Shared)
		}
		f.hideAll = false
		seen(2)
		return nil
	})
	if err != nil || done != (ttlchange.Loosened{Deleted: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	seen(2)
	if f.expiryClock.Frozen() != 0 {
		t.Error("time stands still")
	}
}

func (f *fixture) collection(ns namespace.NS) uint32 {
	return f.current.Load().catalog.Collection(ns).ID
}

// TestUnclustered: what does not lie in the order is counted, whatever was moved before, under this order and another.
func TestUnclustered(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.must(f.insert(testNS, fmt.Sprintf(`{_id: %d, d: Date(%d), e: Date(%d)}`, i, int64(4e12)-int64(i), int64(4e12)+int64(i))))
	}
	c := f.current.Load().catalog.Collection(testNS).ID
	check := func(what string, want, wantMoved int64) {
		t.Helper()
		n, err := f.Unclustered(context.Background(), c, 1000)
		if _, moved := f.Reclustered(c); err != nil || n != want || moved != wantMoved {
			t.Errorf("%s: %d unclustered and %d moved, not %d and %d; %v", what, n, moved, want, wantMoved, err)
		}
	}
	recluster := func(limit int) {
		_, _, err := f.Recluster(context.Background(), c, limit)
		f.must(err)
	}
	check("without an order", 0, 0)
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1000}`)
	check("with one", 20, 0)
	recluster(7)
	check("after some were moved", 13, 7)
	f.must(f.insert(testNS, `{_id: 20, d: Date(4000000000005)}`))
	_, err := f.change(testNS, bson.Int32(15), `{_id: 15, d: Date(4000000000006)}`)
	f.must(err)
	check("after an insert and a change", 12, 7)
	f.reopen()
	check("after a start", 12, 0)
	recluster(2)
	_, err = f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("d")}, nil
	})
	f.must(err)
	check("without an order again", 0, 0)
	f.createIndexes(testNS, `{key: {e: 1}, name: "e", expireAfterSeconds: 1000}`)
	check("with another", 21, 0)
	recluster(1000)
	check("when all is in order", 0, 21)
	n, err := f.Unclustered(context.Background(), c+1, 1000)
	if n != 0 || err != nil {
		t.Errorf("of no collection: %d, %v", n, err)
	}
}
