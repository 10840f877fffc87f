package indexddl

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
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
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

var (
	epoch    = time.UnixMilli(1_000_000_000_000).UTC()
	testNS   = namespace.NS{DB: "db", Coll: "c"}
	creating = storage.WriteOptions{Durability: kv.Buffered, Create: true}
)

// fixture is a store in memory under a clock that the test turns, and its DDL.
type fixture struct {
	*DDL
	t         *testing.T
	clock     *clock.Fake
	parser    *index.Parser
	engine    kv.Engine
	options   storage.Options
	committed chan struct{} // has something after each commit
}

func newFixture(t *testing.T) *fixture {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return newFixtureOver(t, engine)
}

// newFixtureOver is newFixture over an engine, which ends with the test.
func newFixtureOver(t *testing.T, engine kv.Engine) *fixture {
	f := &fixture{t: t, clock: clock.NewFake(epoch), parser: index.NewParser(match.NewParser()), engine: engine, committed: make(chan struct{}, 1)}
	f.options = storage.Options{Clock: f.clock, Indexes: f.parser, OnCommit: func(*kv.Commit) {
		select {
		case f.committed <- struct{}{}:
		default:
		}
	}}
	f.open()
	t.Cleanup(func() {
		if err := errors.Join(f.store.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	_, ddl, err := Open(context.Background(), f.engine, f.options)
	f.must(err)
	f.DDL = ddl
	f.Sweeper.Limits.Few, f.Sweeper.Limits.LongStretch = 1, 2
}

// online makes every index build one beside writers, with runs on disk.
func (f *fixture) online() { f.Limits.InlineDocuments, f.Limits.MemoryBytes = -1, 5000 }

// reopen is what a restart does, without a crash.
func (f *fixture) reopen() {
	f.t.Helper()
	f.must(f.store.Close())
	f.open()
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) parse(specs ...string) func(*catalog.Collection) ([]*index.Definition, error) {
	return func(c *catalog.Collection) (defs []*index.Definition, err error) {
		for _, spec := range specs {
			d, err := f.parser.Parse(bson.MustDoc(spec), c.Options.Collation)
			if err != nil {
				return nil, err
			}
			defs = append(defs, d)
		}
		return defs, nil
	}
}

func (f *fixture) createIndexes(specs ...string) {
	f.t.Helper()
	_, err := f.CreateIndexes(context.Background(), testNS, f.parse(specs...))
	f.must(err)
}

// tested is the collection that most tests are about.
func (f *fixture) tested() storage.Collection {
	f.t.Helper()
	c, ok := f.store.CollectionNamed(testNS)
	if !ok {
		f.t.Fatal("there is no collection")
	}
	return c
}

func (f *fixture) insertInto(ns namespace.NS, docs ...string) error {
	return f.store.Write(context.Background(), ns, creating, func(w *storage.Writer) error {
		for _, d := range docs {
			if _, err := w.Insert(bson.MustDoc(d)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fixture) insert(docs ...string) error { return f.insertInto(testNS, docs...) }

// change replaces, or with an empty text deletes, the document with an _id, if there is one.
func (f *fixture) change(id int32, doc string) {
	f.t.Helper()
	f.must(f.store.Write(context.Background(), testNS, creating, func(w *storage.Writer) error {
		rec, there, err := w.GetByID(bson.Int32(id))
		switch {
		case err != nil || !there:
			return err
		case doc == "":
			return w.Delete(rec)
		}
		_, _, err = w.Update(rec, bson.MustDoc(doc))
		return err
	}))
}

// mayWrite says whether nobody holds the collection's lock exclusively.
func (f *fixture) mayWrite() bool {
	ended, end := context.WithCancel(context.Background())
	end() // so it does not wait
	return f.store.Write(ended, testNS, creating, func(*storage.Writer) error { return nil }) == nil
}

// expire deletes what is due, one by one.
func (f *fixture) expire() {
	f.t.Helper()
	defer func(n int64) { f.Sweeper.Limits.Few = n }(f.Sweeper.Limits.Few)
	f.Sweeper.Limits.Few = math.MaxInt64
	c := f.tested()
	rules := c.Rules()
	for i := range rules.All() {
		_, err := f.Sweeper.DeleteDue(context.Background(), c, &rules.All()[i], f.store.Now(), sweeper.BesideWriters)
		f.must(err)
	}
}

func (f *fixture) validate() {
	f.t.Helper()
	v, err := f.store.Validate(context.Background(), testNS, nil)
	f.must(err)
	if !v.Valid {
		f.t.Fatalf("%s is not valid: %v, indexes %+v\nmissing %+v\nextra %+v", testNS, v.Errors, v.Indexes, v.Missing, v.Extra)
	}
}

// nothingLeft wants what was discarded to go, and every entry, of an index or of a side table, to belong to an index in the catalogue.
func (f *fixture) nothingLeft() {
	f.t.Helper()
	for f.isGarbageNoted() {
		<-f.committed
	}
	known := map[uint32]bool{}
	for _, c := range f.store.Catalog().All() {
		for _, d := range c.Indexes {
			known[d.ID] = true
		}
	}
	snapshot, err := f.engine.Snapshot()
	f.must(err)
	defer snapshot.Close()
	for _, prefix := range []byte{layout.IDPrefix, layout.IndexPrefix} {
		it, err := snapshot.NewIter(kv.IterOptions{Lower: []byte{prefix}, Upper: []byte{prefix + 1}})
		f.must(err)
		for it.Next() {
			if !known[binary.BigEndian.Uint32(it.Key()[1:])] {
				f.t.Errorf("the key %q belongs to nothing", it.Key())
			}
		}
		f.must(errors.Join(it.Err(), it.Close()))
	}
}

func (f *fixture) isGarbageNoted() bool {
	f.t.Helper()
	snapshot, err := f.engine.Snapshot()
	f.must(err)
	defer snapshot.Close()
	left, err := garbage.Read(snapshot)
	f.must(err)
	return len(left) > 0
}

// nothingBuilt wants no trace of a build that failed.
func (f *fixture) nothingBuilt() {
	f.t.Helper()
	f.nothingLeft()
	f.validate()
	if c := f.tested(); len(c.Indexes) != 1 || len(c.Builds()) != 0 {
		f.t.Errorf("%d indexes, %d builds", len(c.Indexes), len(c.Builds()))
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
