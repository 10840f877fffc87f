package sweeper_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

var (
	start  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tested = namespace.NS{DB: "db", Coll: "c"}
	ctx    = context.Background()
)

const (
	byDate  = `{key: {d: 1}, name: "d", expireAfterSeconds: 60}`
	byOther = `{key: {e: 1}, name: "e", expireAfterSeconds: 60}`
	plain   = `{key: {a: 1}, name: "a"}`
)

// world is a store in memory with its Sweeper, under a clock that the test turns.
type world struct {
	*testing.T
	*sweeper.Sweeper
	store  *storage.Store
	ddl    *indexddl.DDL
	engine kv.Engine
	clock  *clock.Fake
	parser *index.Parser
}

// onTiKV has the stores be over TiKV clusters in memory.
var onTiKV = flag.Bool("tikv", false, "run what does not need Pebble over TiKV's protocol")

func notOnTiKV(t *testing.T, why string) {
	t.Helper()
	if *onTiKV {
		t.Skip(why)
	}
}

func openEngine(t *testing.T) kv.Engine {
	t.Helper()
	if *onTiKV {
		return tikvtest.Open(t)
	}
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 1 << 20, RowCacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	engine := openEngine(t)
	w := &world{T: t, engine: engine, clock: clock.NewFake(start), parser: index.NewParser(match.NewParser())}
	w.open(engine)
	t.Cleanup(func() {
		if err := errors.Join(w.store.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// open opens the store over an engine, with limits for few documents.
func (w *world) open(engine kv.Engine) {
	w.Helper()
	var err error
	w.store, w.ddl, err = indexddl.Open(ctx, engine, storage.Options{Clock: w.clock, Indexes: w.parser})
	w.must(err)
	w.Sweeper = w.ddl.Sweeper
	w.Limits.Few, w.Limits.LongStretch = 5, 5
}

func (w *world) reopen(engine kv.Engine) {
	w.Helper()
	w.must(w.store.Close())
	w.open(engine)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) index(specs ...string) {
	w.Helper()
	_, err := w.ddl.CreateIndexes(ctx, tested, func(c *catalog.Collection) (defs []*index.Definition, err error) {
		for _, spec := range specs {
			d, err := w.parser.Parse(bson.MustDoc(spec), c.Options.Collation)
			if err != nil {
				return nil, err
			}
			defs = append(defs, d)
		}
		return defs, nil
	})
	w.must(err)
}

// insert inserts so many documents behind the _id, whose dates d and e are so long ago, or ahead.
func (w *world) insert(behind, n int, date time.Duration) {
	w.Helper()
	at := w.clock.Now().Add(date).UnixMilli()
	w.must(w.store.Write(ctx, tested, storage.WriteOptions{Durability: kv.Buffered, Create: true}, func(wr *storage.Writer) error {
		for i := range n {
			id := int32(behind + i + 1)
			if _, err := wr.Insert(bson.Build().Int32("_id", id).Date("d", at).Date("e", at).Int32("a", id).Doc()); err != nil {
				return err
			}
		}
		return nil
	}))
}

// collection is the tested one as it is now.
func (w *world) collection() storage.Collection {
	w.Helper()
	entry := w.store.Catalog().Collection(tested)
	if entry == nil {
		w.Fatal("the collection is gone")
	}
	c, ok := w.store.CollectionByID(entry.ID)
	if !ok {
		w.Fatal("the collection is gone")
	}
	return c
}

// sweep sweeps by the rule that orders.
func (w *world) sweep() (done sweeper.Swept, ok bool) {
	w.Helper()
	c := w.collection()
	done, ok, err := w.Sweep(ctx, c.ID, c.ExpiryOrder().Rule, w.store.Now())
	w.must(err)
	return done, ok
}

// wantStored validates the collection, and wants so many documents in it, and dead entries in the indexes that have no TTL.
func (w *world) wantStored(documents, dead int64) {
	w.Helper()
	v, err := w.store.Validate(ctx, tested, nil)
	w.must(err)
	if !v.Valid || v.Records != documents {
		w.Errorf("%d documents are left, want %d: %+v", v.Records, documents, v)
	}
	view, err := w.store.View(ctx)
	w.must(err)
	defer view.Close()
	n := int64(0)
	for _, d := range w.collection().Indexes {
		if !d.TTL {
			entries, err := w.collection().Read(view).Entries(d)
			w.must(err)
			n += entries - documents
		}
	}
	if n != dead {
		w.Errorf("%d entries are dead, want %d", n, dead)
	}
}

// TestForget: what is kept of a collection goes with it, a view that a count holds too, and stays with one that is still there.
func TestForget(t *testing.T) {
	w := newWorld(t)
	w.index(byDate)
	w.insert(0, 20, time.Hour)
	w.reopen(w.engine)
	c := w.collection()
	count := func() {
		t.Helper()
		if more, err := w.CountOrder(ctx, c.ID, 3); !more || err != nil {
			t.Fatal(more, err)
		}
	}
	count()
	w.Forget(c.ID)
	if w.IsCounting(c.ID) {
		t.Error("the count goes on when the collection was to be dropped")
	}
	count()
	if _, err := w.store.DropCollection(ctx, tested); err != nil {
		t.Fatal(err)
	}
	if w.IsCounting(c.ID) {
		t.Error("the count goes on when the collection has gone")
	}
	if done, ok, err := w.Sweep(ctx, c.ID, c.ExpiryOrder().Rule, w.store.Now()); ok || err != nil {
		t.Errorf("a collection that has gone was swept: %+v, %v", done, err)
	}
	for name, f := range map[string]func() (int, bool, error){
		"vacuum":    func() (int, bool, error) { return w.Vacuum(ctx, c.ID, 10) },
		"recluster": func() (int, bool, error) { return w.Recluster(ctx, c.ID, 10) },
		"count":     func() (int, bool, error) { more, err := w.CountOrder(ctx, c.ID, 10); return 0, more, err },
	} {
		if n, more, err := f(); n != 0 || more || err != nil {
			t.Errorf("%s of a collection that has gone: %d, %v, %v", name, n, more, err)
		}
	}
}

// TestClose: a store that is closed in the middle of a count and of an index compaction gives back what they hold. The engine, which the
// test closes, fails if a view is open.
func TestClose(t *testing.T) {
	notOnTiKV(t, "indexes are compacted by tables, which it does not take over")
	w := newWorld(t)
	engine := &watched{Engine: w.engine}
	w.reopen(engine)
	w.index(byDate, plain)
	w.insert(0, 20, 0)
	w.insert(20, 20, time.Hour)
	w.clock.Advance(time.Minute)
	w.sweep()
	c := w.collection()
	if _, more, err := w.Vacuum(ctx, c.ID, 1); !more || err != nil || !w.IsCompacting(c.ID) {
		t.Fatal(more, err, w.IsCompacting(c.ID))
	}
	w.reopen(w.engine)
	if engine.begun != 1 || engine.discarded != 1 {
		t.Errorf("of %d compactions %d were given up", engine.begun, engine.discarded)
	}
	if more, err := w.CountOrder(ctx, c.ID, 3); !more || err != nil {
		t.Fatal(more, err)
	}
}
