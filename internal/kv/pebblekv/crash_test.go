package pebblekv_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestCrash takes the machine's power away again and again under concurrent commits: what a Synced commit acknowledged is
// there afterwards, and every commit is there with both its records, the ranges it deletes and its count, or not at all.
func TestCrash(t *testing.T) {
	const workers, crashes = 6, 12
	seed := testseed.Of(t)
	disk := vfs.NewCrashableMem()
	var recycled atomic.Int64
	e := open(t, "db", pebblekv.Options{FS: disk, MemTableBytes: 64 << 10}.RecyclingLogs(&recycled))
	var acknowledged [workers]atomic.Int64 // synced commits of each worker
	quit := make(chan struct{})
	var wg sync.WaitGroup
	paces := make(chan struct{}) // worker 0 has gone on a bit
	for w := range workers {
		wg.Go(func() {
			for n := 0; commitOnce(t, e, w, n, &acknowledged[w]); n++ {
				if w == 0 && n%30 == 29 {
					select {
					case paces <- struct{}{}:
					case <-quit:
					}
				}
				select {
				case <-quit:
					return
				default:
				}
			}
		})
	}
	for crash := range uint64(crashes) {
		<-paces
		var promised [workers]int64
		for w := range promised {
			promised[w] = acknowledged[w].Load()
		}
		left := disk.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: int(crash%3) * 40, RNG: rand.New(rand.NewPCG(seed, crash)),
		})
		checkAfterCrash(t, left, promised[:])
	}
	close(quit)
	wg.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if recycled.Load() == 0 {
		t.Error("no file of the log was written over")
	}
}

func recordKey(kind byte, worker, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind, byte(worker)}, uint32(n))
}

// keptRecords is how many records a worker leaves when it deletes what is older, which each deleteEvery-th commit does and one
// of each durability in turn. The space is won back at once.
const keptRecords, deleteEvery = 25, 9

// commitOnce commits two records and a count. Of four commits the first is Buffered, and acknowledged by the next, and the third
// Unsynced, and acknowledged when it is told to be durable.
func commitOnce(t *testing.T, e *pebblekv.Engine, worker, n int, acknowledged *atomic.Int64) bool {
	txn, err := e.Begin()
	if err != nil {
		t.Error(err)
		return false
	}
	txn.Set(recordKey('a', worker, n), make([]byte, 100+n%700))
	txn.Set(recordKey('b', worker, n), nil)
	txn.Add([]byte{'n', byte(worker)}, 1)
	if oldest := n + 1 - keptRecords; oldest > 0 && n%deleteEvery == deleteEvery-1 {
		for _, kind := range []byte("ab") {
			txn.DeleteRange(recordKey(kind, worker, 0), recordKey(kind, worker, oldest))
		}
		txn.Add([]byte{'n', byte(worker)}, -int64(oldest-max(0, oldest-deleteEvery)))
	}
	d := [4]kv.Durability{kv.Buffered, kv.Synced, kv.Unsynced, kv.Synced}[n%4]
	if err := txn.Commit(context.Background(), d); err != nil {
		t.Error(err)
		return false
	}
	if oldest := n + 1 - keptRecords; oldest > 0 && n%deleteEvery == deleteEvery-1 {
		for _, kind := range []byte("ab") {
			if _, _, err := e.Excise(recordKey(kind, worker, 0), recordKey(kind, worker, oldest)); err != nil {
				t.Error(err)
			}
		}
	}
	durable := func(err error) {
		if err != nil {
			t.Error(err)
			return
		}
		raise(acknowledged, int64(n+1))
	}
	switch d {
	case kv.Synced:
		durable(nil)
	case kv.Unsynced:
		durable(e.AwaitDurable(kv.AllCommits))
	}
	return true
}

func raise(to *atomic.Int64, n int64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}

func checkAfterCrash(t *testing.T, disk vfs.FS, promised []int64) {
	t.Helper()
	e := open(t, "db", pebblekv.Options{FS: disk})
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for w, want := range promised {
		count, err := view.Counter([]byte{'n', byte(w)})
		if err != nil {
			t.Fatal(err)
		}
		a, last := countKeys(t, view, []byte{'a', byte(w)})
		b, _ := countKeys(t, view, []byte{'b', byte(w)})
		if a != b || a != count || last+1 < want {
			t.Fatalf("worker %d: %d and %d records up to %d, count %d, acknowledged %d", w, a, b, last, count, want)
		}
	}
	if err := errors.Join(view.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// countKeys is how many records there are, and the number of the last; -1 if there are none.
func countKeys(t *testing.T, r kv.Reader, prefix []byte) (n, last int64) {
	t.Helper()
	upper := append([]byte(nil), prefix...)
	upper[len(upper)-1]++
	it, err := r.NewIter(kv.IterOptions{Lower: prefix, Upper: upper})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	last = -1
	for ok := it.First(); ok; ok = it.Next() {
		n++
		last = int64(binary.BigEndian.Uint32(it.Key()[len(prefix):]))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return n, last
}

// TestBufferedSync turns the clock: a Buffered commit is durable after the interval, and not before.
func TestBufferedSync(t *testing.T) {
	disk := vfs.NewCrashableMem()
	fake := clock.NewFake(time.Unix(0, 0))
	e := open(t, "db", pebblekv.Options{FS: disk, Clock: fake})
	defer e.Close()
	set(t, e, "a", kv.Buffered)
	if survives(t, disk, "a") {
		t.Fatal("the commit was synced before its time")
	}
	for !survives(t, disk, "a") {
		fake.Advance(100 * time.Millisecond) // the timer may not be set yet at the first turn
	}
}

// TestForgottenSync turns the clock: an Unsynced commit that nobody asks the sync of is durable in the end, too.
func TestForgottenSync(t *testing.T) {
	disk := vfs.NewCrashableMem()
	fake := clock.NewFake(time.Unix(0, 0))
	e := open(t, "db", pebblekv.Options{FS: disk, Clock: fake})
	defer e.Close()
	for _, key := range []string{"a", "b"} {
		set(t, e, key, kv.Unsynced)
		if survives(t, disk, key) {
			t.Fatal("the commit was synced before its time")
		}
		for !survives(t, disk, key) {
			fake.Advance(time.Second) // the timer may not be set yet at the first turn
		}
	}
}

// TestUnforgottenSync: Unsynced commits whose sync was asked for cost no other.
func TestUnforgottenSync(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	e := open(t, "db", pebblekv.Options{FS: vfs.NewCrashableMem(), Clock: fake})
	defer e.Close()
	syncs := e.CountSyncs()
	for asked := range int64(4) {
		set(t, e, "a", kv.Unsynced)
		for waits := false; !waits; { // for the next time to come: the last has nothing left to do
			runtime.Gosched()
			waits = fake.Waiting() > 0
			if n := syncs.Load(); n != asked {
				t.Fatalf("%d syncs, and %d were asked for", n, asked)
			}
		}
		if err := e.AwaitDurable(kv.AllCommits); err != nil {
			t.Fatal(err)
		}
		fake.Advance(time.Second)
	}
}

// An Unsynced commit is durable when AwaitDurable has said so, and not before.
func TestAwaitDurable(t *testing.T) {
	disk := vfs.NewCrashableMem()
	e := open(t, "db", pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))})
	set(t, e, "a", kv.Unsynced)
	if survives(t, disk, "a") {
		t.Fatal("the commit was synced before anybody asked")
	}
	if err := e.AwaitDurable(kv.AllCommits); err != nil {
		t.Fatal(err)
	}
	if !survives(t, disk, "a") {
		t.Fatal("what is told to be durable is not")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.AwaitDurable(kv.AllCommits); !errors.Is(err, kv.ErrClosed) || !errors.Is(err, kv.ErrUndetermined) {
		t.Fatalf("closed: %v", err)
	}
}

// What ends with the process is never waited for.
func TestAwaitDurableInMemory(t *testing.T) {
	e, err := pebblekv.OpenMemory(pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set(t, e, "a", kv.Unsynced)
	syncs := e.CountSyncs()
	if err := e.AwaitDurable(kv.AllCommits); err != nil || syncs.Load() > 0 {
		t.Error(err, syncs.Load())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.AwaitDurable(kv.AllCommits); !errors.Is(err, kv.ErrClosed) {
		t.Fatalf("closed: %v", err)
	}
}

func TestCloseSyncsBuffered(t *testing.T) {
	disk := vfs.NewCrashableMem()
	e := open(t, "db", pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))})
	set(t, e, "a", kv.Buffered)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if !survives(t, disk, "a") {
		t.Fatal("Close lost a Buffered commit")
	}
}

func set(t *testing.T, e kv.Engine, key string, d kv.Durability) {
	t.Helper()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	txn.Set([]byte(key), nil)
	if err := txn.Commit(context.Background(), d); err != nil {
		t.Fatal(err)
	}
}

func survives(t *testing.T, disk *vfs.MemFS, key string) bool {
	t.Helper()
	e := open(t, "db", pebblekv.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	defer e.Close()
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	_, err = view.Get([]byte(key))
	return err == nil
}

// TestManifestFailure breaks the manifest's writes, which a goroutine of Pebble's does: the hook hears of it, and neither does the
// process end nor Close wait.
func TestManifestFailure(t *testing.T) {
	heard := make(chan error, 1)
	var on atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST-") {
			return errorfs.ErrInjected
		}
		return nil
	}))
	e := open(t, "db", pebblekv.Options{FS: disk, OnFailure: func(err error) { heard <- err }})
	set(t, e, "before", kv.Synced)
	on.Store(true)
	go e.Flush() // never returns
	if err := <-heard; !strings.Contains(err.Error(), errorfs.ErrInjected.Error()) {
		t.Fatalf("the hook was told %v", err)
	}
	if err := e.Close(); err == nil {
		t.Fatal("closing a failed store says that all is well")
	}
}

// TestDiskFailure breaks the log's syncs or writes: the commit under way is undetermined, the hook hears of it once, no
// later write is taken and reads go on.
func TestDiskFailure(t *testing.T) {
	for _, broken := range []errorfs.OpKind{errorfs.OpFileSyncData, errorfs.OpFileWrite} {
		t.Run(fmt.Sprint(broken), func(t *testing.T) {
			heard := make(chan error, 10)
			var on atomic.Bool
			disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				sync := op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncTo
				wanted := op.Kind == broken || broken == errorfs.OpFileSyncData && sync
				if on.Load() && wanted && strings.HasSuffix(op.Path, ".log") {
					return errorfs.ErrInjected
				}
				return nil
			}))
			e := open(t, "db", pebblekv.Options{FS: disk, OnFailure: func(err error) { heard <- err }})
			set(t, e, "before", kv.Synced)
			on.Store(true)
			txn, err := e.Begin()
			if err != nil {
				t.Fatal(err)
			}
			txn.Set([]byte("during"), nil)
			if err := txn.Commit(context.Background(), kv.Synced); !errors.Is(err, kv.ErrUndetermined) {
				t.Fatalf("commit: %v, want %v", err, kv.ErrUndetermined)
			}
			if err := <-heard; !errors.Is(err, errorfs.ErrInjected) {
				t.Fatalf("the hook was told %v", err)
			}
			for _, d := range []kv.Durability{kv.Synced, kv.Buffered} {
				txn, err = e.Begin()
				if err != nil {
					t.Fatal(err)
				}
				txn.Set([]byte("after"), nil)
				if err := txn.Commit(context.Background(), d); err == nil || errors.Is(err, kv.ErrUndetermined) {
					t.Fatalf("a failed store took a commit: %v", err)
				}
			}
			if e.Sync() == nil || e.DeleteRange([]byte("a"), []byte("z")) == nil {
				t.Fatal("a failed store took a write")
			}
			if err := e.AwaitDurable(kv.AllCommits); !errors.Is(err, kv.ErrUndetermined) {
				t.Fatalf("after a sync of a failed store: %v", err)
			}
			view, err := e.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := view.Get([]byte("before")); err != nil {
				t.Fatal(err)
			}
			if _, err := view.Get([]byte("after")); !errors.Is(err, kv.ErrNotFound) {
				t.Fatalf("get: %v", err)
			}
			view.Close()
			if len(heard) > 0 {
				t.Fatal("the hook was called again")
			}
			if e.Close() == nil {
				t.Fatal("closing a failed store says that all is well")
			}
		})
	}
}
