package exec

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/testseed"
)

var sequentialNS = namespace.NS{DB: "db", Coll: "nearby"}

var (
	testStoreTime = time.UnixMilli(1_000_000_000_000).UTC()
	creating      = storage.WriteOptions{Durability: kv.Buffered, Create: true}
)

// newTestStore is a store in memory whose clock stands still.
func newTestStore(t testing.TB) (*storage.Store, *indexddl.DDL, *index.Parser) {
	t.Helper()
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	parser := index.NewParser(match.NewParser())
	s, ddl, err := indexddl.Open(context.Background(), engine, storage.Options{Clock: clock.NewFake(testStoreTime), Indexes: parser})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, ddl, parser
}

// sequentialRecords is a collection of which every seventh record is deleted and every fifth hidden, and the ids of all there
// ever were, in order.
func sequentialRecords(t testing.TB, n int) (*storage.Store, []storage.RecordID) {
	f, ddl, parser := newTestStore(t)
	if _, err := ddl.CreateIndexes(context.Background(), sequentialNS, func(c *catalog.Collection) ([]*index.Definition, error) {
		d, err := parser.Parse(bson.MustDoc(`{key: {d: 1}, name: "d", expireAfterSeconds: 0, hideExpired: true}`), c.Options.Collation)
		return []*index.Definition{d}, err
	}); err != nil {
		t.Fatal(err)
	}
	var ids []storage.RecordID
	err := f.Write(context.Background(), sequentialNS, creating, func(w *storage.Writer) error {
		for i := range n {
			date := testStoreTime.UnixMilli() + int64(i)
			if i%5 == 0 {
				date -= 1 << 40
			}
			id, err := w.Insert(bson.Build().Int32("_id", int32(i)).Date("d", date+1000).Doc())
			if err != nil {
				return err
			}
			ids = append(ids, id.Clone())
		}
		for i := 3; i < n; i += 7 {
			if rec, there, err := w.Get(ids[i]); err != nil || !there && i%5 != 0 {
				t.Fatal(there, err)
			} else if there {
				if err := w.Delete(rec); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(ids, func(a, b storage.RecordID) int { return slices.Compare(a, b) })
	return f, ids
}

// TestSequentialFetcher asks for records in all manners of order, and compares with Get.
func TestSequentialFetcher(t *testing.T) {
	const records = 500
	f, ids := sequentialRecords(t, records)
	seed := testseed.Of(t)
	r := rand.New(rand.NewPCG(seed, 0))
	v, err := f.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	reader, _ := v.Collection(sequentialNS)
	n := newSequentialFetcher(reader)
	walked, expected, ahead := 0, 0, 0
	for at, step, left := 0, 1, 0; walked < 2000; left-- {
		if left <= 0 {
			at, step, left = r.IntN(records), []int{-9, -2, -1, 0, 1, 1, 2, 3, 9}[r.IntN(9)], r.IntN(100)
		}
		if at = at + step; at < 0 || at >= records {
			left = 0
			continue
		}
		if r.IntN(8) == 0 { // the index alone tells that it is not wanted
			continue
		}
		if n.Expects() && r.IntN(2) == 0 { // the record is asked for then
			var upcoming idsAhead
			for next := at + step; next >= 0 && next < records && len(upcoming) < r.IntN(2*storage.MaxAhead); next += step {
				upcoming = append(upcoming, ids[next].Clone())
			}
			if err := n.Expect(ids[at], upcoming); err != nil {
				t.Fatal(err)
			}
			expected++
			for i := range upcoming {
				clear(upcoming[i]) // which a cursor does when it reads on
			}
		}
		want, wanted, err := reader.Get(ids[at])
		if err != nil {
			t.Fatal(err)
		}
		if !n.ahead.IsEmpty() {
			ahead++
		}
		got, ok, err := n.Get(ids[at])
		if err != nil || ok != wanted || string(got.Doc) != string(want.Doc) || ok && string(got.ID) != string(want.ID) || got.Modified != want.Modified {
			t.Fatalf("record %d: %v %v %s, want %v %s (seed %d)", at, err, ok, got.Doc, wanted, want.Doc, seed)
		}
		if n.cursor != nil {
			walked++
		}
		if r.IntN(200) == 0 {
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if expected == 0 || ahead == 0 {
		t.Errorf("of %d times that records were expected they were looked up together for %d", expected, ahead)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSequentialFetcherBesideWrites: what a transaction writes between the time at which records are looked up together and the one at which
// they are asked for is seen, as by one that looks for each.
func TestSequentialFetcherBesideWrites(t *testing.T) {
	f, ids := sequentialRecords(t, 300)
	txn, err := f.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Rollback()
	w, err := txn.Writer(sequentialNS)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(testseed.Of(t), 0))
	n := newSequentialFetcher(w.Reader)
	ahead, changed := 0, 0
	for range 300 {
		var list idsAhead
		for range 2 + r.IntN(2*storage.MaxAhead) {
			list = append(list, ids[r.IntN(len(ids))])
		}
		if n.Expects() {
			if err := n.Expect(list[0], list[1:]); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range list {
			if rec, there, err := w.Get(list[r.IntN(len(list))]); err != nil {
				t.Fatal(err)
			} else if there && r.IntN(4) == 0 {
				if r.IntN(6) == 0 {
					err = w.Delete(rec)
				} else {
					_, _, err = w.Update(rec, bson.Build().Value("_id", rec.Doc.Lookup("_id")).Int32("n", r.Int32()).Doc())
				}
				if err != nil {
					t.Fatal(err)
				}
				changed++
			}
			if !n.ahead.IsEmpty() {
				ahead++
			}
			want, wanted, err := w.Get(id)
			if err != nil {
				t.Fatal(err)
			}
			got, there, err := n.Get(id)
			if err != nil || there != wanted || string(got.Doc) != string(want.Doc) {
				t.Fatalf("record %s: %v %v %s, want %v %s", id, err, there, got.Doc, wanted, want.Doc)
			}
		}
	}
	if ahead == 0 || changed == 0 {
		t.Errorf("%d records were looked up together, and %d changed", ahead, changed)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// idsAhead are those of the records that come.
type idsAhead []storage.RecordID

func (a idsAhead) Upcoming(dst []storage.RecordID) []storage.RecordID { return append(dst, a...) }

// TestSequentialFetcherWaits: tries that are in vain become rare, and one that pays makes the next one come soon.
func TestSequentialFetcherWaits(t *testing.T) {
	f, ids := sequentialRecords(t, 500)
	v, err := f.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	reader, _ := v.Collection(sequentialNS)
	n := newSequentialFetcher(reader)
	walks := func(step, times int) (count int) {
		for i := range times {
			before := n.found
			if _, _, err := n.Get(ids[(1+i*step)%len(ids)]); err != nil {
				t.Fatal(err)
			}
			if n.cursor != nil && n.found != before {
				count++
			}
		}
		return count
	}
	if found := walks(40, 10_000); found > 0 || n.nextWait != sequentialMaxWait {
		t.Errorf("%d were found by walking to what lies 40 apart, and the next try comes after %d", found, n.nextWait)
	}
	if found := walks(1, 10_000); found < 3000 || n.nextWait != sequentialFirstWait {
		t.Errorf("%d were found by walking to neighbours, and the next try comes after %d", found, n.nextWait)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSequentialFetcherInTransaction: it sees what the transaction has written.
func TestSequentialFetcherInTransaction(t *testing.T) {
	f, ids := sequentialRecords(t, 100)
	err := f.Write(context.Background(), sequentialNS, creating, func(w *storage.Writer) error {
		n := newSequentialFetcher(w.Reader)
		for i, id := range ids {
			rec, there, err := n.Get(id)
			if err != nil {
				return err
			}
			if i+1 < len(ids) {
				if next, ok, err := w.Get(ids[i+1]); err != nil || ok && w.Delete(next) != nil {
					t.Fatal(err)
				}
			}
			if there && i > 0 {
				t.Fatalf("record %d was deleted, and is %s", i, rec.Doc)
			}
		}
		return n.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkSequentialFetcher gets a hundred neighbours, as an index gives their ids; ns/op is for all of them.
func BenchmarkSequentialFetcher(b *testing.B) {
	const records, neighbours = 10_000, 100
	f, ids := sequentialRecords(b, records)
	v, err := f.View(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	r, _ := v.Collection(sequentialNS)
	b.ResetTimer()
	for range b.N {
		n, at := newSequentialFetcher(r), rand.IntN(records-neighbours)
		for i := range neighbours {
			if _, _, err := n.Get(ids[at+i]); err != nil {
				b.Fatal(err)
			}
		}
		_ = n.Close()
	}
}
