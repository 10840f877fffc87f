package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

var raceNS = namespace.NS{DB: "db", Coll: "race"}

// TestLostUpdates: many add to one document at once, and none is lost.
func TestLostUpdates(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(raceNS, `{_id: 1, n: 0}`))
	const writers, each = 64, 25
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for range each {
				err := f.Write(context.Background(), raceNS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) error {
					rec, _, err := w.GetByID(bson.Int32(1))
					if err != nil {
						return err
					}
					n := rec.Doc.Lookup("n").Int32()
					_, _, err = w.Update(rec, bson.Build().Int32("_id", 1).Int32("n", n+1).Doc())
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	f.read(raceNS, func(r *Reader) error {
		rec, _, err := r.GetByID(bson.Int32(1))
		if got := rec.Doc.Lookup("n").Int32(); got != writers*each {
			t.Errorf("n is %d, want %d", got, writers*each)
		}
		return err
	})
	f.validate(raceNS)
}

// TestUniqueRace: of many that insert or update to the same unique key at once, one gets it; all create the collection.
func TestUniqueRace(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(raceNS, `{key: {u: 1}, name: "u", unique: true}`)
	for round := range 20 {
		var won, lost atomic.Int32
		var work sync.WaitGroup
		for i := range 8 {
			work.Go(func() {
				err := f.insert(raceNS, fmt.Sprintf(`{_id: %d, u: %d}`, 100*round+i, round))
				switch {
				case err == nil:
					won.Add(1)
				case mongoerr.Is(err, mongoerr.DuplicateKey):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		work.Wait()
		if won.Load() != 1 || lost.Load() != 7 {
			t.Errorf("%d got the key and %d did not", won.Load(), lost.Load())
		}
	}
	f.validate(raceNS)
}

// TestExpiredRace: many insert the _id of an expired document at once; one gets it.
func TestExpiredRace(t *testing.T) {
	f := newFixture(t)
	f.createIndexes(raceNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 0, hideExpired: true}`,
		`{key: {a: 1}, name: "a"}`)
	for round := range 20 {
		f.must(f.insert(raceNS, fmt.Sprintf(`{_id: %d, d: new Date(0), a: [1, 2]}`, round)))
		var won atomic.Int32
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				err := f.insert(raceNS, fmt.Sprintf(`{_id: %d, a: 3}`, round))
				if err == nil {
					won.Add(1)
				} else if !mongoerr.Is(err, mongoerr.DuplicateKey) {
					t.Error(err)
				}
			})
		}
		work.Go(func() { f.sweep(raceNS) })
		work.Wait()
		if won.Load() != 1 {
			t.Errorf("%d got the _id", won.Load())
		}
	}
	f.validate(raceNS)
	f.read(raceNS, func(r *Reader) error {
		n, err := r.Count()
		if n != 20 {
			t.Errorf("count %d, want 20", n)
		}
		return err
	})
}

// TestChangesAgainstWriters: indexes come and go, the collection is renamed and back, while others write and read; what is
// written under a new index is in it.
func TestChangesAgainstWriters(t *testing.T) {
	f := newFixture(t)
	f.online()
	other := namespace.NS{DB: "other", Coll: "race"}
	f.must(f.insert(raceNS, `{_id: -1}`))
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for writer := range 4 {
		work.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				doc := bson.MustDoc(fmt.Sprintf(`{_id: %d, a: [%d, 1], b: %d}`, 100*writer+n%100, n%7, n))
				err := f.Write(context.Background(), raceNS, WriteOptions{Durability: kv.Buffered}, func(w *Writer) error {
					rec, there, err := w.GetByID(doc.Lookup("_id"))
					switch {
					case err != nil:
						return err
					case there && n%3 == 0:
						return w.Delete(rec)
					case there:
						_, _, err = w.Update(rec, doc)
					default:
						_, err = w.Insert(doc)
					}
					return err
				})
				if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
					t.Error(err)
				}
			}
		})
	}
	work.Go(func() {
		for ctx.Err() == nil {
			readRace(ctx, t, f)
		}
	})
	for round := range 12 {
		_, err := f.CreateIndexes(context.Background(), raceNS, f.parse(`{key: {a: 1, b: -1}, name: "ab"}`, `{key: {b: 1}, name: "b"}`))
		f.must(err)
		if round%3 == 0 {
			f.validate(raceNS)
		}
		f.must(f.Rename(context.Background(), raceNS, other, false))
		f.must(f.Rename(context.Background(), other, raceNS, false))
		_, err = f.DropIndexes(context.Background(), raceNS, func(c *catalog.Collection) ([]*index.Definition, error) {
			return c.Indexes[1:], nil
		})
		f.must(err)
	}
	stop()
	work.Wait()
	f.validate(raceNS)
	f.garbage.Wait()
	nothingLeft(t, f.Store)
}

// readRace wants each index of a view to name documents that are in the same view and say what the key says.
func readRace(ctx context.Context, t *testing.T, f *fixture) {
	v, err := f.View(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	defer v.Close()
	r, ok := v.Collection(raceNS)
	if !ok {
		return
	}
	d := r.Catalog().Index("b")
	if d == nil {
		return
	}
	c, err := r.ScanIndex(IndexScan{Index: d, Fetches: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	n := int64(0)
	for c.Next() {
		n++
		rec, there, err := r.Get(c.Entry().RecordID)
		if err != nil || !there {
			t.Errorf("an entry without a document: %v", err)
			return
		}
		b := rec.Doc.Lookup("b")
		if b.IsMissing() {
			b = bson.Null
		}
		if string(d.AppendKey(nil, 0, b)) != string(c.Entry().Key) {
			t.Errorf("%s is under another key", rec.Doc)
		}
	}
	if count, err := r.Count(); ctx.Err() == nil && (err != nil || count != n) {
		t.Errorf("the index has %d entries, the collection %d documents: %v", n, count, err)
	}
}

// TestCappedRace: a capped collection stays within its bounds and in order whoever writes.
func TestCappedRace(t *testing.T) {
	f := newFixture(t)
	_, err := f.CreateCollection(context.Background(), raceNS, bson.MustDoc(`{capped: true, size: 100000, max: 10}`))
	f.must(err)
	var work sync.WaitGroup
	for writer := range 4 {
		work.Go(func() {
			for n := range 40 {
				if err := f.insert(raceNS, fmt.Sprintf(`{_id: %d}`, 100*writer+n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	f.read(raceNS, func(r *Reader) error {
		n, err := r.Count()
		if n != 10 {
			t.Errorf("count %d, want 10", n)
		}
		return err
	})
	f.validate(raceNS)
}
