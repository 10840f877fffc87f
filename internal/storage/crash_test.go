package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// TestCrash cuts the power under writers and changes of the catalogue. Of what the disk then holds, with some of what was
// not synced and without the rest, a new store must make sense: every acknowledged write is there, each collection
// validates, and nothing is left of what was dropped or half built.
func TestCrash(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestCrash -seed %d", seed)
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		crash(t, rand.New(rand.NewPCG(seed, uint64(round))))
	}
}

var crashNS = namespace.NS{DB: "db", Coll: "kept"}

// written is what one writer did to its documents: the newest version that was begun and the newest acknowledged one.
type written struct {
	mu    sync.Mutex
	begun map[int]int
	acked map[int]int
}

func (h *written) copy() (begun, acked map[int]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	clone := func(m map[int]int) map[int]int {
		out := map[int]int{}
		for k, v := range m {
			out[k] = v
		}
		return out
	}
	return clone(h.begun), clone(h.acked)
}

// Every fifth version of a document is its absence; version 0 is too.
func absent(version int) bool { return version%5 == 0 }

const (
	crashWriters   = 4
	crashDocuments = 40
)

func crash(t *testing.T, rng *rand.Rand) {
	fs := crashdisk.New()
	engine := openCrashable(t, fs)
	parser := indexParser()
	f := &fixture{t: t, parser: parser}
	must(t, f.openOn(engine, Options{Clock: clock.NewFake(epoch), Indexes: parser}))
	s := f.Store
	f.BuildLimits().InlineDocuments, f.BuildLimits().MemoryBytes = int64(rng.IntN(2)*100-1), 2000 // beside writers or not, and in many runs
	f.createIndexes(crashNS, `{key: {v: 1}, name: "v"}`, `{key: {u: 1}, name: "u", unique: true, sparse: true}`,
		`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1000}`)

	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	var writes atomic.Int64
	histories := make([]*written, crashWriters)
	for i := range histories {
		histories[i] = &written{begun: map[int]int{}, acked: map[int]int{}}
		own := rand.New(rand.NewPCG(rng.Uint64(), 1))
		work.Go(func() { crashWriter(ctx, t, f, i, histories[i], own, &writes) })
	}
	ddlRNG := rand.New(rand.NewPCG(rng.Uint64(), 2))
	work.Go(func() { crashDDL(ctx, t, f, ddlRNG) })

	var acked []map[int]int
	for target := int64(20 + rng.IntN(1500)); writes.Load() < target && !t.Failed(); {
		v, err := s.View(ctx)
		must(t, err)
		must(t, v.Close())
	}
	for _, h := range histories {
		_, a := h.copy()
		acked = append(acked, a)
	}
	disk := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 3))})
	var begun []map[int]int
	for _, h := range histories {
		b, _ := h.copy()
		begun = append(begun, b)
	}
	stop()
	work.Wait()
	must(t, errors.Join(s.Close(), engine.Close()))
	afterCrash(t, disk, acked, begun)
}

func openCrashable(t *testing.T, fs vfs.FS) kv.Engine {
	t.Helper()
	engine, err := pebblekv.Open("ebb", pebblekv.Options{FS: fs, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, CommitKey: CommitKey()})
	must(t, err)
	return engine
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ended says whether err only tells that the test has ended the work.
func ended(ctx context.Context, err error) bool { return ctx.Err() != nil && err != nil }

func crashWriter(ctx context.Context, t *testing.T, f *fixture, writer int, h *written, rng *rand.Rand, writes *atomic.Int64) {
	for {
		n := rng.IntN(crashDocuments)
		h.mu.Lock()
		version := h.acked[n] + 1
		h.begun[n] = version
		h.mu.Unlock()
		id := bson.Int32(int32(writer*crashDocuments + n))
		err := f.Write(ctx, crashNS, WriteOptions{}, func(w *Writer) error {
			return crashWrite(w, id, version)
		})
		if ended(ctx, err) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		h.mu.Lock()
		h.acked[n] = version
		h.mu.Unlock()
		writes.Add(1)
	}
}

func crashWrite(w *Writer, id bson.Value, version int) error {
	rec, there, err := w.GetByID(id)
	if err != nil {
		return err
	}
	doc := bson.Build().Value("_id", id).Int32("v", int32(version)).Value("u", id).
		Value("many", bson.ArrayOf(bson.Int32(int32(version)), bson.Int32(int32(version+1)))).Doc()
	switch {
	case absent(version):
		if !there {
			return fmt.Errorf("%s is not there before version %d", id, version)
		}
		return w.Delete(rec)
	case there:
		_, _, err = w.Update(rec, doc)
	default:
		_, err = w.Insert(doc)
	}
	return err
}

// crashDDL makes, fills, renames and drops collections, and builds and drops indexes of the one that is kept.
func crashDDL(ctx context.Context, t *testing.T, f *fixture, rng *rand.Rand) {
	other := func() namespace.NS {
		return namespace.NS{DB: fmt.Sprintf("db%d", rng.IntN(2)), Coll: fmt.Sprintf("c%d", rng.IntN(3))}
	}
	for {
		var err error
		switch rng.IntN(6) {
		case 0:
			_, err = f.CreateIndexes(ctx, crashNS, f.parse(`{key: {many: 1}, name: "many"}`))
		case 1:
			_, err = f.DropIndexes(ctx, crashNS, func(c *catalog.Collection) ([]*index.Definition, error) {
				if d := c.Index("many"); d != nil {
					return []*index.Definition{d}, nil
				}
				return nil, nil
			})
		case 2, 3:
			err = f.Write(ctx, other(), creating, func(w *Writer) error {
				for range 700 { // more than are deleted one by one
					if _, err := w.Insert(bson.MustDoc(fmt.Sprintf("{_id: %d}", rng.Int32()))); err != nil {
						return err
					}
				}
				return nil
			})
			if mongoerr.Is(err, mongoerr.DuplicateKey) {
				err = nil
			}
		case 4:
			_, err = f.DropCollection(ctx, other())
		case 5:
			err = f.Rename(ctx, other(), other(), true)
			if mongoerr.Is(err, mongoerr.IllegalOperation) {
				err = nil
			}
		}
		if ended(ctx, err) {
			return
		}
		if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			t.Error(err)
			return
		}
	}
}

func afterCrash(t *testing.T, disk vfs.FS, acked, begun []map[int]int) {
	engine := openCrashable(t, disk)
	s, err := Open(context.Background(), engine, Options{Clock: clock.NewFake(epoch), Indexes: indexParser()})
	must(t, err)
	f := &fixture{t: t, Store: s}
	s.garbage.Wait()
	v, err := s.View(context.Background())
	must(t, err)
	for _, coll := range v.Catalog().All() {
		f.validate(coll.NS)
	}
	r, ok := v.Collection(crashNS)
	if !ok {
		t.Fatal("the collection is gone")
	}
	for writer := range acked {
		for n := range crashDocuments {
			rec, there, err := r.GetByID(bson.Int32(int32(writer*crashDocuments + n)))
			must(t, err)
			low, high := acked[writer][n], begun[writer][n]
			got := -1
			for version := low; version <= high; version++ {
				if there && !absent(version) && rec.Doc.Lookup("v").Int32() == int32(version) || !there && absent(version) {
					got = version
				}
			}
			if got < 0 {
				t.Errorf("document %d of writer %d is %s; version %d was acknowledged and %d begun", n, writer, rec.Doc, low, high)
			}
		}
	}
	must(t, v.Close())
	nothingLeft(t, s)
	must(t, errors.Join(s.Close(), engine.Close()))
}

// nothingLeft wants every key of the store to belong to something in the catalogue.
func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	v, err := s.View(context.Background())
	must(t, err)
	defer v.Close()
	collections, indexes := map[uint32]bool{}, map[uint32]bool{}
	for _, coll := range v.Catalog().All() {
		collections[coll.ID] = true
		for _, d := range coll.Indexes {
			indexes[d.ID] = true
		}
	}
	it, err := v.reader.NewIter(kv.IterOptions{})
	must(t, err)
	defer it.Close()
	for it.Next() {
		key := it.Key()
		known := false
		switch key[0] {
		case layout.RecordPrefix:
			known = collections[numberIn(key[1:])]
		case layout.IDPrefix, layout.IndexPrefix:
			known = indexes[numberIn(key[1:])]
		case layout.CounterPrefix:
			known = key[1] == layout.OfCollection && collections[numberIn(key[2:])] || key[1] == layout.OfIndex && indexes[numberIn(key[2:])]
		case layout.MetaPrefix:
			switch key[1] {
			case layout.MetaFormat, layout.MetaNext, layout.MetaCommit:
				known = true
			case layout.MetaCollection, layout.MetaSequence, layout.MetaTombstones:
				known = collections[numberIn(key[2:])]
			case layout.MetaMultikey:
				known = indexes[numberIn(key[2:])]
			}
		}
		if !known {
			t.Errorf("the key %q belongs to nothing", key)
		}
	}
	must(t, it.Err())
}

func numberIn(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// TestCrashInBuild cuts the power in the middle of an index build, and cancels one there: nothing is left of either.
func TestCrashInBuild(t *testing.T) {
	fs := crashdisk.New()
	h := &hooked{Engine: openCrashable(t, fs)}
	f := &fixture{t: t, parser: indexParser()}
	must(t, f.openOn(h, Options{Clock: clock.NewFake(epoch), Indexes: indexParser()}))
	s := f.Store
	f.BuildLimits().InlineDocuments, f.BuildLimits().MemoryBytes = -1, 500
	for i := range 500 {
		must(t, f.insert(crashNS, fmt.Sprintf(`{_id: %d, a: [%d]}`, i, i)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var disk vfs.FS
	loaded := func() bool { return anyKey(t, h.Engine, layout.IndexPrefix) }
	when(h, loaded, func() { // the bulk pass is done, and writers are being caught up with
		must(t, h.Engine.Sync())
		disk = fs.CrashClone(vfs.CrashCloneCfg{})
		cancel()
	})
	if _, err := f.CreateIndexes(ctx, crashNS, f.parse(`{key: {a: 1}, name: "a"}`)); !errors.Is(err, context.Canceled) || disk == nil {
		t.Fatalf("the build ended with %v", err)
	}
	s.garbage.Wait()
	nothingLeft(t, s)
	f.createIndexes(crashNS, `{key: {a: 1}, name: "a"}`)
	f.validate(crashNS)
	must(t, errors.Join(s.Close(), h.Engine.Close()))

	engine := openCrashable(t, disk)
	if !anyKey(t, engine, layout.IndexPrefix) {
		t.Fatal("the crash came before the first entry")
	}
	f = &fixture{t: t, parser: indexParser()}
	must(t, f.openOn(engine, Options{Clock: clock.NewFake(epoch), Indexes: indexParser()}))
	s = f.Store
	s.garbage.Wait()
	nothingLeft(t, s)
	f.validate(crashNS)
	f.createIndexes(crashNS, `{key: {a: 1}, name: "a"}`)
	f.validate(crashNS)
	must(t, errors.Join(s.Close(), engine.Close()))
}

// when runs f before the first snapshot or transaction that begins when ready says so.
func when(h *hooked, ready func() bool, f func()) {
	h.arm(func() {
		if ready() {
			f()
			return
		}
		when(h, ready, f)
	})
}

func anyKey(t *testing.T, engine kv.Engine, prefix byte) bool {
	t.Helper()
	snapshot, err := engine.Snapshot()
	must(t, err)
	defer snapshot.Close()
	it, err := snapshot.NewIter(kv.IterOptions{Lower: []byte{prefix}, Upper: []byte{prefix + 1}})
	must(t, err)
	defer it.Close()
	return it.First()
}
