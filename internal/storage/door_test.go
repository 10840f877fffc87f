package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

var testNS = namespace.NS{DB: "db", Coll: "c"}

// TestResume: a walk goes on behind an entry that has been deleted meanwhile, and behind one that has not.
func TestResume(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		for _, reverse := range []bool{false, true} {
			f := newFixture(t)
			f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
			f.must(f.insert(testNS, `{_id: 1, a: 1}`, `{_id: 2, a: 1}`, `{_id: 3, a: 2}`))
			var record RecordID
			var position IndexPosition
			f.read(testNS, func(r *Reader) error {
				rec, _, err := r.GetByID(bson.Int32(2))
				record = rec.ID
				d := r.Catalog().Index("a")
				position = IndexPosition{d.AppendKey(nil, 0, bson.Int32(1)), rec.ID}
				return err
			})
			if deleted {
				_, err := f.change(testNS, bson.Int32(2), "")
				f.must(err)
			}
			want := int32(3)
			if reverse {
				want = 1
			}
			f.read(testNS, func(r *Reader) error {
				byRecord, err := r.Scan(RecordScan{After: record, Reverse: reverse})
				f.must(err)
				defer byRecord.Close()
				byIndex, err := r.ScanIndex(IndexScan{Index: r.Catalog().Index("a"), After: &position, Reverse: reverse})
				f.must(err)
				defer byIndex.Close()
				if !byRecord.Next() || byRecord.Record().Doc.Lookup("_id").Int32() != want || byRecord.Next() {
					t.Errorf("deleted %v, reverse %v: the scan does not go on at %d", deleted, reverse, want)
				}
				if !byIndex.Next() {
					t.Fatalf("deleted %v, reverse %v: the index scan has ended", deleted, reverse)
				}
				rec, _, err := r.Get(byIndex.Entry().RecordID)
				if rec.Doc.Lookup("_id").Int32() != want || byIndex.Next() {
					t.Errorf("deleted %v, reverse %v: the index scan goes on at %s", deleted, reverse, rec.Doc)
				}
				return err
			})
		}
	}
}

// TestBoundsAndSeek: the bounds of scans and the jumps within them.
func TestBoundsAndSeek(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	for a := range 9 {
		f.must(f.insert(testNS, bson.Build().Int32("_id", int32(a)).Int32("a", int32(a)).Doc().Text()))
	}
	f.read(testNS, func(r *Reader) error {
		d := r.Catalog().Index("a")
		at := func(n int32) []byte { return d.AppendKey(nil, 0, bson.Int32(n)) }
		walk := func(s IndexScan, seek []byte) (out []byte) {
			s.Index = d
			c, err := r.ScanIndex(s)
			f.must(err)
			defer c.Close()
			for c.Next() {
				rec, _, err := r.Get(c.Entry().RecordID)
				f.must(err)
				out = append(out, '0'+byte(rec.Doc.Lookup("a").Int32()))
				if seek != nil {
					c.Seek(seek)
					seek = nil
				}
			}
			f.must(c.Err())
			return out
		}
		for _, c := range []struct {
			scan IndexScan
			seek []byte
			want string
		}{
			{IndexScan{}, nil, "012345678"},
			{IndexScan{Low: at(3), High: at(6)}, nil, "345"},
			{IndexScan{Low: layout.After(at(3)), High: layout.After(at(6))}, nil, "456"},
			{IndexScan{Low: at(3), High: layout.After(at(6))}, at(5), "356"},
			{IndexScan{Low: at(3), High: layout.After(at(6)), Reverse: true}, layout.After(at(4)), "643"},
			{IndexScan{Low: at(6), High: at(3)}, nil, ""},
			{IndexScan{Low: at(3), High: at(3)}, nil, ""},
			{IndexScan{Low: at(3), High: at(6)}, at(8), "3"},
		} {
			if got := string(walk(c.scan, c.seek)); got != c.want {
				t.Errorf("%+v, then to %x: got %s, want %s", c.scan, c.seek, got, c.want)
			}
		}
		return nil
	})
}

// TestExpireLooksAgain: P12, what was due when the sweep looked and is not when it deletes is spared.
func TestExpireLooksAgain(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 10}`)
	f.must(f.insert(testNS, `{_id: 1, d: new Date(0)}`, `{_id: 2, d: new Date(0)}`, `{_id: 3, d: new Date(0)}`))
	var ids []RecordID
	var rule = f.current.Load().collections[1].rules.All()[0]
	f.read(testNS, func(r *Reader) (err error) {
		ids, _, err = r.Due(&rule, f.Now(), nil, 10)
		return err
	})
	_, err := f.change(testNS, bson.Int32(1), `{_id: 1, d: new Date(1000000000000)}`)
	f.must(err)
	_, err = f.change(testNS, bson.Int32(2), "")
	f.must(err)
	var deleted []string
	f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
		deleted = nil
		return w.ExpireMany(&rule, append(ids, ids...), func(rec Record, gone bool) bool {
			if gone {
				deleted = append(deleted, rec.Doc.Text())
			}
			return true
		})
	}))
	if got := strings.Join(deleted, " "); got != `{ _id: 3, d: ISODate("1970-01-01T00:00:00Z") }` || f.ids(testNS) != "1" {
		t.Errorf("deleted %s, %s left", got, f.ids(testNS))
	}
	// An index that is gone expires nothing, whoever still holds its rule.
	_, err = f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		return c.Indexes[1:], nil
	})
	f.must(err)
	f.must(f.insert(testNS, `{_id: 4, d: new Date(0)}`))
	n, err := f.deleteDue(context.Background(), f.find([]namespace.NS{testNS})[0], &rule, f.Now(), besideWriters)
	f.must(err)
	if n != 0 {
		t.Errorf("%d expired by an index that is gone", n)
	}
}

// hooked is an engine that does something just before it gives a snapshot or transaction.
type hooked struct {
	kv.Engine
	mu     sync.Mutex // guards before: the collector begins transactions, too
	before func()
}

func (h *hooked) run() {
	if f := h.arm(nil); f != nil {
		f()
	}
}

// arm sets what is done next and returns what was to be done.
func (h *hooked) arm(f func()) (old func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, h.before = h.before, f
	return old
}

func (h *hooked) Snapshot() (kv.Snapshot, error) { h.run(); return h.Engine.Snapshot() }
func (h *hooked) Begin() (kv.Txn, error)         { h.run(); return h.Engine.Begin() }
func (h *hooked) BeginBlind() (kv.Txn, error)    { h.run(); return h.Engine.BeginBlind() }

// TestViewBelongsTogether: a view that begins while an index is dropped and a document written must not look for the
// document in the index.
func TestViewBelongsTogether(t *testing.T) {
	for _, begin := range []func(*Store) (*View, func() error, error){
		func(s *Store) (*View, func() error, error) {
			v, err := s.View(context.Background())
			return v, v.Close, err
		},
		func(s *Store) (*View, func() error, error) {
			x, err := s.Begin(context.Background())
			return x.View(), func() error { x.Rollback(); return nil }, err
		},
	} {
		f := newFixture(t)
		f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
		h := &hooked{Engine: f.engine}
		f.engine = h
		f.reopen()
		h.before = func() {
			_, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
				return c.Indexes[1:], nil
			})
			f.must(err)
			f.must(f.insert(testNS, `{_id: 1, a: 1}`))
		}
		v, end, err := begin(f.Store)
		f.must(err)
		r, _ := v.Collection(testNS)
		n, err := r.Count()
		f.must(err)
		if n != 1 || r.Catalog().Index("a") != nil {
			t.Errorf("%d documents, and the index is %v", n, r.Catalog().Index("a"))
		}
		f.must(end())
	}
}

// TestTransaction: a transaction over two collections sees what it did, and leaves all or nothing.
func TestTransaction(t *testing.T) {
	f := newFixture(t)
	other := namespace.NS{DB: "db", Coll: "other"}
	f.must(f.insert(testNS, `{_id: 1}`))
	f.must(f.insert(other, `{_id: 1}`))
	ctx := context.Background()
	run := func(end func(*Txn) error) error {
		x, err := f.Begin(ctx)
		f.must(err)
		defer x.Rollback()
		for _, ns := range []namespace.NS{testNS, other} {
			w, err := x.Writer(ns)
			f.must(err)
			_, err = w.Insert(bson.MustDoc(`{_id: 2, a: 1}`))
			f.must(err)
			again, err := x.Writer(ns)
			f.must(err)
			if again != w {
				t.Error("a second writer")
			}
			r, _ := x.View().Collection(ns)
			n, err := r.Count()
			f.must(err)
			if _, there, _ := r.GetByID(bson.Int32(2)); n != 2 || !there {
				t.Errorf("counts %d, there %v in the transaction", n, there)
			}
		}
		return end(x)
	}
	f.must(run(func(*Txn) error { return nil }))
	if got := f.ids(testNS) + ", " + f.ids(other); got != "1, 1" {
		t.Errorf("rolled back: %s", got)
	}
	// Somebody else takes the _id meanwhile.
	err := run(func(x *Txn) error {
		f.must(f.insert(other, `{_id: 2}`))
		return x.Commit(ctx, kv.Buffered)
	})
	if !mongoerr.Is(err, mongoerr.WriteConflict) || f.ids(testNS) != "1" {
		t.Errorf("got %v, %s", err, f.ids(testNS))
	}
	_, err = f.change(other, bson.Int32(2), "")
	f.must(err)
	f.must(run(func(x *Txn) error { return x.Commit(ctx, kv.Buffered) }))
	if got := f.ids(testNS) + ", " + f.ids(other); got != "1 2, 1 2" {
		t.Errorf("committed: %s", got)
	}
	f.validate(testNS)
	f.validate(other)
}

// TestTransactionAgainstChange: a transaction that holds one collection does not wait for a second one that is being
// changed, and one whose collection has changed since it began may not write to it.
func TestTransactionAgainstChange(t *testing.T) {
	f := newFixture(t)
	other := namespace.NS{DB: "db", Coll: "other"}
	f.must(f.insert(testNS, `{_id: 1}`))
	f.must(f.insert(other, `{_id: 1}`))
	x, err := f.Begin(context.Background())
	f.must(err)
	_, err = x.Writer(testNS)
	f.must(err)
	_, release, err := f.lockToChange(context.Background(), other)
	f.must(err)
	if _, err := x.Writer(other); !mongoerr.Is(err, mongoerr.LockTimeout) {
		t.Errorf("got %v", err)
	}
	release()
	f.createIndexes(other, `{key: {a: 1}, name: "a"}`)
	if _, err := x.Writer(other); !mongoerr.Is(err, mongoerr.WriteConflict) {
		t.Errorf("got %v", err)
	}
	// Who changes a collection waits for its writers, as long as its context lets it.
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(mongoerr.New(mongoerr.Interrupted, "killed"))
	if _, err := f.DropCollection(ctx, testNS); !mongoerr.Is(err, mongoerr.Interrupted) {
		t.Errorf("got %v", err)
	}
	x.Rollback()
	_, err = f.DropCollection(context.Background(), testNS)
	f.must(err)
}

// TestDeadlinesAreTold: the earliest deadline of each commit, and nothing where there is none.
func TestDeadlinesAreTold(t *testing.T) {
	f := newFixture(t)
	var told []int64
	f.options.OnDeadline = func(_ uint32, d int64) { told = append(told, d-epoch.UnixMilli()) }
	f.reopen()
	f.createIndexes(testNS, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`, `{key: {d: 1}, name: "d", expireAfterSeconds: 0}`)
	f.must(f.insert(testNS, `{_id: 1}`, `{_id: 2, ttl: 3}`, `{_id: 3, d: new Date(1000000002000)}`))
	f.must(f.insert(testNS, `{_id: 4, ttl: -1}`))
	_ = f.insert(testNS, `{_id: 5}`, `{_id: 4}`)
	_, err := f.change(testNS, bson.Int32(1), `{_id: 1, ttl: 7}`)
	f.must(err)
	_, err = f.change(testNS, bson.Int32(1), "")
	f.must(err)
	if !slices.Equal(told, []int64{2000, 7000}) {
		t.Errorf("told %v", told)
	}
}

// TestNewerFormat: a store of a newer format is refused and left alone.
func TestNewerFormat(t *testing.T) {
	f := newFixture(t)
	x, err := f.engine.Begin()
	f.must(err)
	x.Set(layout.FormatKey(), binary.BigEndian.AppendUint32(nil, header.Version+1))
	f.must(x.Commit(context.Background(), kv.Buffered))
	_, err = Open(context.Background(), f.engine, f.options)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("format ", header.Version+1)) || !strings.Contains(err.Error(), fmt.Sprint("format ", header.Version)) {
		t.Errorf("got %v", err)
	}
}

// TestFormatLost: a store that holds data and not the key of its format is not taken for a new one.
func TestFormatLost(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(testNS, `{_id: 1}`))
	x, err := f.engine.Begin()
	f.must(err)
	x.Delete(layout.FormatKey())
	f.must(x.Commit(context.Background(), kv.Buffered))
	if _, err = Open(context.Background(), f.engine, f.options); err == nil || !strings.Contains(err.Error(), "the key of its format is missing") {
		t.Errorf("got %v", err)
	}
}

// idIn is the id of the n-th record of a collection that is ordered by a field that no document has.
func idIn(f *fixture, n uint64) RecordID {
	o := f.current.Load().collections[1].order
	return layout.OrderedID(layout.AppendPlace(nil, o.Number, layout.OnNever, math.MaxInt64), n)
}

// TestValidateFinds: each thing that can be wrong is found, and said of the right index.
func TestValidateFinds(t *testing.T) {
	entry := func(f *fixture, name string, a bson.Value, id uint64) []byte {
		ix := f.current.Load().collections[1]
		for _, i := range ix.indexes {
			if i.Name == name {
				return i.EntryKey(nil, i.AppendKey(nil, 0, a), idIn(f, id))
			}
		}
		return nil
	}
	for _, c := range []struct {
		name   string
		damage func(*fixture, kv.Txn)
		want   string
	}{
		{"an entry is gone", func(f *fixture, x kv.Txn) { x.Delete(entry(f, "a", bson.Int32(7), 1)) }, "missing index entries in a,"},
		{"an entry too many", func(f *fixture, x kv.Txn) { x.Set(entry(f, "a", bson.Int32(8), 1), idIn(f, 1)[1:layout.PlaceLength]) }, "1 extra index entries in a"},
		{"an entry without a record", func(f *fixture, x kv.Txn) { x.Set(entry(f, "a", bson.Int32(7), 9), idIn(f, 9)[1:layout.PlaceLength]) }, "1 extra index entries in a"},
		{"an entry for another", func(f *fixture, x kv.Txn) {
			x.Set(entry(f, "_id_", bson.Int32(1), 0), append([]byte{layout.OrderedLength}, idIn(f, 2)...))
		}, "missing index entries in _id_"},
		{"other type bits", func(f *fixture, x kv.Txn) {
			x.Set(entry(f, "a", bson.Int32(7), 1), append([]byte{1}, idIn(f, 1)[1:layout.PlaceLength]...))
		}, "missing index entries in a"},
		{"no multikey bit", func(f *fixture, x kv.Txn) {
			x.Delete(layout.MultikeyKey(f.current.Load().catalog.Collection(testNS).Index("many").ID, 0, 0))
		}, "not marked as multikey"},
		{"a wrong count", func(f *fixture, x kv.Txn) {
			x.Add(layout.CounterKey(nil, layout.OfCollection, 1, layout.CountDocuments), 1)
		}, "counts 3 documents and has 2"},
		{"wrong bytes", func(f *fixture, x kv.Txn) {
			x.Add(layout.CounterKey(nil, layout.OfCollection, 1, layout.CountBytes), 1)
		}, "bytes and has"},
		{"wrong entries", func(f *fixture, x kv.Txn) { x.Add(layout.CounterKey(nil, layout.OfIndex, 2, layout.CountSurplus), 1) }, "counts 3 entries and has 2"},
		{"a broken document", func(f *fixture, x kv.Txn) {
			x.Set(layout.RecordKey(nil, 1, idIn(f, 1)), layout.AppendRecord(nil, 0, []byte{6, 0, 0, 0, 77, 0}))
		}, "corrupt record"},
		{"an unknown header", func(f *fixture, x kv.Txn) {
			x.Set(layout.RecordKey(nil, 1, idIn(f, 1)), append([]byte{9}, layout.AppendRecord(nil, 0, bson.MustDoc(`{_id: 1}`))[1:]...))
		}, "corrupt record"},
		{"a deadline too many", func(f *fixture, x kv.Txn) {
			d := f.current.Load().catalog.Collection(testNS).Index("ts")
			x.Set(layout.DeadlineKey(nil, d, layout.OnDefault, 5, idIn(f, 1)), nil)
		}, "1 extra index entries in ts"},
		{"a deadline gone", func(f *fixture, x kv.Txn) {
			d := f.current.Load().catalog.Collection(testNS).Index("ts")
			x.Delete(layout.DeadlineKey(nil, d, layout.OnDefault, f.Now(), idIn(f, 1)))
		}, "missing index entries in ts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`, `{key: {many: 1}, name: "many"}`, `{key: {x: 1}, name: "orders", expireAfterSeconds: 9}`,
				`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 9}`)
			f.must(f.insert(testNS, `{_id: 1, a: 7, many: [1]}`, `{_id: 2, a: 7, many: [2]}`))
			f.validate(testNS)
			x, err := f.engine.Begin()
			f.must(err)
			c.damage(f, x)
			f.must(x.Commit(context.Background(), kv.Buffered))
			v, err := f.Validate(context.Background(), testNS, nil)
			f.must(err)
			text := strings.Join(v.Errors, "\n")
			for _, i := range v.Indexes {
				if i.Valid != (len(i.Errors) == 0) {
					t.Errorf("%s: valid %v with errors %v", i.Name, i.Valid, i.Errors)
				}
				text += "\n" + strings.Join(i.Errors, "\n")
			}
			if v.Valid || !strings.Contains(text, c.want) {
				t.Errorf("valid %v, found %q, want %q", v.Valid, text, c.want)
			}
		})
	}
}

// TestContextEndsScans: a walk over what is hidden ends with its context.
func TestContextEndsScans(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {x: 1}, name: "orders", expireAfterSeconds: 1}`, `{key: {d: 1}, name: "d", expireAfterSeconds: 1, hideExpired: true}`)
	for i := range 3 * walk.StepsBetweenChecks {
		f.must(f.insert(testNS, bson.Build().Int32("_id", int32(i)).Date("d", f.Now()).Doc().Text()))
	}
	f.clock.Advance(time.Minute)
	ctx, cancel := context.WithCancelCause(context.Background())
	killed := errors.New("killed")
	cancel(killed)
	v, err := f.View(ctx)
	f.must(err)
	defer v.Close()
	r, _ := v.Collection(testNS)
	c, err := r.Scan(RecordScan{})
	f.must(err)
	defer c.Close()
	if c.Next() || !errors.Is(c.Err(), killed) {
		t.Errorf("got %v", c.Err())
	}
}

// TestFewAndManyAreRemoved: dropping takes away small and large collections alike.
func TestFewAndManyAreRemoved(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
		for i := range 2 * garbage.FewKeys {
			if _, err := w.Insert(bson.Build().Int32("_id", int32(i)).Value("a", bson.ArrayOf(bson.Int32(int32(i)))).Doc()); err != nil {
				return err
			}
		}
		return nil
	}))
	old, err := f.View(context.Background())
	f.must(err)
	_, err = f.DropCollection(context.Background(), testNS)
	f.must(err)
	f.garbage.Wait()
	nothingLeft(t, f.Store)
	// Whoever read before goes on reading what was there.
	r, _ := old.Collection(testNS)
	n := 0
	c, err := r.Scan(RecordScan{})
	f.must(err)
	for c.Next() {
		n++
	}
	f.must(errors.Join(c.Err(), c.Close(), old.Close()))
	if n != 2*garbage.FewKeys {
		t.Errorf("%d records in the old view", n)
	}
}

// TestEvents: what listeners are told.
func TestEvents(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	f.must(f.Rename(context.Background(), testNS, namespace.NS{DB: "db", Coll: "d"}, false))
	_, err := f.DropIndexes(context.Background(), namespace.NS{DB: "db", Coll: "d"}, func(c *catalog.Collection) ([]*index.Definition, error) {
		return c.Indexes[1:], nil
	})
	f.must(err)
	_, err = f.DropDatabase(context.Background(), "db")
	f.must(err)
	var kinds []meaning.EventKind
	for _, e := range f.events {
		kinds = append(kinds, e.Kind)
	}
	want := []meaning.EventKind{meaning.CollectionCreated, meaning.IndexCreated, meaning.CollectionRenamed, meaning.IndexDropped, meaning.CollectionDropped, meaning.DatabaseDropped}
	if !slices.Equal(kinds, want) {
		t.Errorf("told %v, want %v", kinds, want)
	}
}
