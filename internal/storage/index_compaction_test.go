package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
)

// halfDead is a store with such a collection.
func halfDead(t *testing.T, n int) *fixture {
	f := newFixture(t)
	f.fillHalfDead(n)
	return f
}

// fillHalfDead makes a collection of so many documents, every second of which was swept.
func (f *fixture) fillHalfDead(n int) {
	f.createIndexes(testNS, `{key: {d: 1}, name: "d", expireAfterSeconds: 1}`, `{key: {a: 1}, name: "a"}`)
	for i := range n {
		f.insertDated(int32(i), epoch.UnixMilli()+int64(i%2)*1e9)
	}
	f.clock.Advance(time.Second)
	c := f.tested()
	if done, ok, err := f.Sweep(context.Background(), c.ID, c.order.Rule, f.Now()); err != nil || !ok || done.Documents != int64(n/2) {
		f.t.Fatal(done, ok, err)
	}
}

func (f *fixture) insertDated(id int32, date int64) {
	f.t.Helper()
	f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
		_, err := w.Insert(bson.Build().Int32("_id", id).Date("d", date).Int32("a", id).Doc())
		return err
	}))
}

func (f *fixture) tested() *collection {
	v := f.current.Load()
	return v.collections[v.catalog.Collection(testNS).ID]
}

// vacuumTo vacuums in small slices until a state is reached, or nothing is left.
func (f *fixture) vacuumTo(reached func() bool) (more bool) {
	f.t.Helper()
	for more = true; more && !reached(); {
		var err error
		_, more, err = f.Vacuum(context.Background(), f.tested().ID, 4)
		f.must(err)
		f.validate(testNS)
	}
	return more
}

func (f *fixture) isCompacting() bool { return f.IsCompacting(f.tested().ID) }

// dead is how many entries of records that were swept there are, by the counters, beside those of so many documents.
func (f *fixture) dead(documents int64) (dead int64) {
	f.t.Helper()
	f.read(testNS, func(r *Reader) error {
		for _, name := range []string{"_id_", "a"} {
			entries, err := r.Entries(r.Catalog().Index(name))
			f.must(err)
			dead += entries - documents
		}
		return nil
	})
	return dead
}

// alone commits what do does to the engine.
func (f *fixture) alone(do func(kv.Txn)) {
	f.t.Helper()
	t, err := f.engine.Begin()
	f.must(err)
	do(t)
	f.must(t.Commit(context.Background(), kv.Buffered))
}

func never() bool { return false }

func TestIndexCompaction(t *testing.T) {
	notOnTiKV(t, "indexes are compacted by tables, which it does not take over")
	const n = 200
	f := halfDead(t, n)
	if !f.vacuumTo(f.isCompacting) {
		t.Fatal("no stretch was written anew")
	}
	if f.vacuumTo(never) || f.dead(n/2) != 0 {
		t.Errorf("%d dead entries are left", f.dead(n/2))
	}
	if f.isCompacting() {
		t.Error("an index compaction is open still")
	}
}

// TestIndexCompactionAtOnce: where the counters tell that many entries are dead, none is deleted by itself first.
func TestIndexCompactionAtOnce(t *testing.T) {
	notOnTiKV(t, "indexes are compacted by tables, which it does not take over")
	const n = 200
	f := halfDead(t, n)
	removed, more, err := f.Vacuum(context.Background(), f.tested().ID, 4)
	if removed != 0 || !more || err != nil || !f.isCompacting() {
		t.Fatal(removed, more, err, f.isCompacting())
	}
	f.insertDated(-1, epoch.UnixMilli()+1e9)
	if f.vacuumTo(never) || f.dead(n/2+1) != 0 {
		t.Errorf("%d dead entries are left", f.dead(n/2+1))
	}
}

// TestIndexCompactionMeetsWriter: whatever is written while a stretch is, and is not in it, is there afterwards.
func TestIndexCompactionMeetsWriter(t *testing.T) {
	const n = 200
	for name, write := range map[string]func(f *fixture){
		"insert": func(f *fixture) {
			f.insertDated(-1, epoch.UnixMilli()+1e9)
		},
		"the _id of one that is dead": func(f *fixture) { f.insertDated(0, epoch.UnixMilli()+1e9) },
		"drop of an index": func(f *fixture) {
			_, err := f.DropIndexes(context.Background(), testNS, func(c *catalog.Collection) ([]*index.Definition, error) {
				return []*index.Definition{c.Index("a")}, nil
			})
			f.must(err)
			f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
			f.insertDated(-1, epoch.UnixMilli()+1e9)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := halfDead(t, n)
			f.vacuumTo(f.isCompacting)
			write(f)
			f.validate(testNS)
			if f.vacuumTo(never) || f.dead(n/2+1) != 0 {
				t.Errorf("%d dead entries are left", f.dead(n/2+1))
			}
		})
	}
}

// unreplacing is an engine that does not put anything in the place of something.
type unreplacing struct {
	kv.Engine
	err error
}

func (u unreplacing) Replace(start []byte) (kv.Replacement, error) {
	r, err := u.Engine.Replace(start)
	return unreplaced{r, u.err}, err
}

type unreplaced struct {
	kv.Replacement
	err error
}

func (u unreplaced) Commit(context.Context) error { return u.err }

// TestIndexCompactionFails: what the engine refuses leaves everything as it was, and is vacuumed in another way.
func TestIndexCompactionFails(t *testing.T) {
	notOnTiKV(t, "indexes are compacted by tables, which it does not take over")
	const n = 200
	f := halfDead(t, n)
	full := errors.New("the disk is full")
	f.engine = unreplacing{f.engine, full}
	f.reopen()
	failed := false
	for more := true; more; {
		var err error
		if _, more, err = f.Vacuum(context.Background(), f.tested().ID, 4); errors.Is(err, full) {
			failed, more, err = true, true, nil
			if f.dead(n/2) == 0 {
				t.Error("nothing is dead any more")
			}
		}
		f.must(err)
		f.validate(testNS)
	}
	if !failed || f.dead(n/2) != 0 {
		t.Errorf("failed: %v; %d dead entries are left", failed, f.dead(n/2))
	}
}

// TestIndexCompactionInterrupted: a crash before a stretch takes its place, or after it, leaves counters that agree with the index.
func TestIndexCompactionInterrupted(t *testing.T) {
	const n, counted = 40, 7
	f := halfDead(t, n)
	first := append(layout.TableKey(nil, f.tested().id.Definition), f.tested().placement.AppendID(nil, bson.Int32(0))...)
	note := expiry.Note{Index: f.tested().id.ID, Removed: counted, Dead: first}
	before := f.dead(n / 2)
	f.alone(note.Add)
	f.validate(testNS) // which may come in between without a crash, too
	f.reopen()
	f.validate(testNS)
	if after := f.dead(n / 2); after != before {
		t.Errorf("before it: %d dead entries, want %d", after, before)
	}
	f.alone(func(t kv.Txn) { // what vacuuming would do
		t.Delete(first)
		note.Add(t)
		t.Add(layout.CounterKey(nil, layout.OfIndex, note.Index, layout.CountSurplus), counted-1)
	})
	f.reopen()
	f.validate(testNS)
	if after := f.dead(n / 2); after != before-1 {
		t.Errorf("after it: %d dead entries, want %d", after, before-1)
	}
	view, err := f.engine.Snapshot()
	f.must(err)
	defer view.Close()
	if err := walk.Meta(view, layout.MetaCompaction, func(key, _ []byte) error { return fmt.Errorf("%x is left", key) }); err != nil {
		t.Error(err)
	}
}

// TestIndexCompactionCrash cuts the power while stretches are written anew: what the disk then holds validates, counters too, and
// all that lives is there.
func TestIndexCompactionCrash(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestIndexCompactionCrash -seed %d", seed)
	for round := range uint64(3) {
		compactionCrash(t, rand.New(rand.NewPCG(seed, round)))
	}
}

func compactionCrash(t *testing.T, rng *rand.Rand) {
	const n = 400
	fs := crashdisk.New()
	f := &fixture{t: t, clock: clock.NewFake(epoch), parser: indexParser()}
	f.options = Options{Clock: f.clock, Indexes: f.parser}
	f.engine = openCrashable(t, fs)
	f.open()
	f.fillHalfDead(n)
	f.must(f.engine.Sync())
	var done atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		defer done.Store(true)
		for more := true; more; {
			var err error
			if _, more, err = f.Vacuum(context.Background(), f.tested().ID, 10); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for last := false; !last && !t.Failed(); {
		last = done.Load()
		disk := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 3))})
		afterCompaction(t, disk, n)
	}
	work.Wait()
	f.must(errors.Join(f.Close(), f.engine.Close()))
}

// afterCompaction opens what a crash has left, and vacuums to the end.
func afterCompaction(t *testing.T, disk vfs.FS, n int64) {
	t.Helper()
	f := &fixture{t: t, clock: clock.NewFake(epoch), parser: indexParser()}
	f.options = Options{Clock: f.clock, Indexes: f.parser}
	f.engine = openCrashable(t, disk)
	f.open()
	f.validate(testNS)
	if f.dead(n/2) < 0 || f.vacuumTo(never) || f.dead(n/2) != 0 {
		t.Errorf("%d dead entries are left", f.dead(n/2))
	}
	f.must(errors.Join(f.Close(), f.engine.Close()))
}
