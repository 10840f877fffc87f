package pebblekv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/testseed"
)

const excised = 1000 // of three times as many records, in the middle

var exciseRange = kv.Range{Start: recordKey('r', 0, excised), End: recordKey('r', 0, 2*excised)}

// openExcised is a store with records, of which those in the middle have been deleted.
func openExcised(t *testing.T, disk vfs.FS) *pebblekv.Engine {
	t.Helper()
	e := open(t, "db", pebblekv.Options{FS: disk, MemTableBytes: 256 << 10, Clock: clock.NewFake(time.Unix(0, 0))}) // the reclaimer stays away
	value := make([]byte, 1<<10)
	for n := range 3 * excised {
		write(t, e, func(txn kv.Txn) {
			txn.Set(recordKey('r', 0, n), value)
			txn.Add([]byte("count"), 1)
		})
	}
	return e
}

func deleteExcised(t *testing.T, e kv.Engine) {
	t.Helper()
	write(t, e, func(txn kv.Txn) {
		txn.DeleteRange(exciseRange.Start, exciseRange.End)
		txn.Add([]byte("count"), -excised)
	})
}

func write(t *testing.T, e kv.Engine, f func(kv.Txn)) {
	t.Helper()
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	f(txn)
	if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
		t.Fatal(err)
	}
}

func excise(t *testing.T, e *pebblekv.Engine, isEmpty, isRead bool) {
	t.Helper()
	switch empty, read, err := e.Excise(exciseRange.Start, exciseRange.End); {
	case err != nil:
		t.Fatal(err)
	case empty != isEmpty || read != isRead:
		t.Fatalf("empty %v, read %v; want %v, %v", empty, read, isEmpty, isRead)
	}
}

// exciseBehind excises when who reads as of before the deletion has gone, and not sooner.
func exciseBehind(t *testing.T, e *pebblekv.Engine, before kv.Snapshot) {
	t.Helper()
	excise(t, e, false, true)
	if n, _ := countKeys(t, before, []byte{'r', 0}); n != 3*excised {
		t.Fatalf("%d records as of before the deletion", n)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	excise(t, e, true, false)
}

func checkExcised(t *testing.T, e kv.Engine, want int) {
	t.Helper()
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	records, _ := countKeys(t, view, []byte{'r', 0})
	count, err := view.Counter([]byte("count"))
	if err != nil {
		t.Fatal(err)
	}
	if records != int64(want) || count != int64(want) {
		t.Fatalf("%d records, count %d; want %d", records, count, want)
	}
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
}

// A range that is empty goes with its tables, and what lies beside it stays, now and after the store is opened again.
func TestExcise(t *testing.T) {
	disk := vfs.NewMem()
	e := openExcised(t, disk)
	deleteExcised(t, e)
	excise(t, e, true, false)
	checkExcised(t, e, 2*excised)
	write(t, e, func(txn kv.Txn) {
		txn.Set(recordKey('r', 0, excised), nil)
		txn.Add([]byte("count"), 1)
	})
	for range 2 {
		checkExcised(t, e, 2*excised+1)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, "db", pebblekv.Options{FS: disk})
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Who reads as of before the deletion goes on to do so, whatever he opens when.
func TestExciseWaitsForReaders(t *testing.T) {
	e := openExcised(t, vfs.NewMem())
	before, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	deleteExcised(t, e)
	after, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	exciseBehind(t, e, before)
	if n, _ := countKeys(t, after, []byte{'r', 0}); n != 2*excised {
		t.Fatalf("%d records as of after the deletion", n)
	}
	if err := errors.Join(after.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// What was put in a range after its deletion stays, wherever it has come to lie.
func TestExciseLeavesWhatIsNew(t *testing.T) {
	e := openExcised(t, vfs.NewMem())
	deleteExcised(t, e)
	write(t, e, func(txn kv.Txn) {
		txn.Set(recordKey('r', 0, excised+excised/2), nil)
		txn.Add([]byte("count"), 1)
	})
	excise(t, e, false, false)
	checkExcised(t, e, 2*excised+1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// What was put in a range after its deletion, and is gone too by now, stays for those who have seen it.
func TestExciseLeavesWhatOthersSee(t *testing.T) {
	e := openExcised(t, vfs.NewMem())
	deleteExcised(t, e)
	key := recordKey('r', 0, excised+excised/2)
	write(t, e, func(txn kv.Txn) { txn.Set(key, nil) })
	before, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	write(t, e, func(txn kv.Txn) { txn.Delete(key) })
	excise(t, e, false, true)
	if _, err := before.Probe(key); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	excise(t, e, true, false)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// Writers put records in ranges, by commits and by tables, delete the ranges and excise them at the same time: each finds
// what it has put there.
func TestExciseBesideWriters(t *testing.T) {
	const workers, steps, keys = 4, 400, 64
	seed := testseed.Of(t)
	e := open(t, "db", pebblekv.Options{FS: vfs.NewMem(), MemTableBytes: 64 << 10})
	var writing, cutting sync.WaitGroup
	quit := make(chan struct{})
	all := kv.Range{Start: []byte{'w', 0}, End: []byte{'w', workers}}
	gone := 0
	cutting.Go(func() {
		r := rand.New(rand.NewPCG(seed, workers))
		for {
			select {
			case <-quit:
				return
			default:
			}
			w := r.IntN(workers)
			span := kv.Range{Start: []byte{'w', byte(w)}, End: []byte{'w', byte(w + 1)}}
			if r.IntN(4) == 0 {
				span = all
			}
			isEmpty, _, err := e.Excise(span.Start, span.End)
			if err != nil {
				t.Error(err)
				return
			}
			if isEmpty {
				gone++
			}
		}
	})
	for w := range workers {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			want := map[int]bool{}
			for range steps {
				switch n := r.IntN(keys); r.IntN(8) {
				case 0, 1, 2:
					write(t, e, func(txn kv.Txn) { txn.DeleteRange(recordKey('w', w, 0), recordKey('w', w, keys)) })
					clear(want)
				case 3:
					loaded := false
					err := e.Load(context.Background(), func() (key, value []byte, ok bool, err error) {
						ok, loaded = !loaded, true
						return recordKey('w', w, n), make([]byte, r.IntN(2000)), ok, nil
					})
					if err != nil {
						t.Error(err)
					}
					want[n] = true
				case 4:
					write(t, e, func(txn kv.Txn) { txn.Delete(recordKey('w', w, n)) })
					delete(want, n)
				default:
					write(t, e, func(txn kv.Txn) { txn.Set(recordKey('w', w, n), make([]byte, r.IntN(2000))) })
					want[n] = true
				}
				if err := hasRecords(e, w, keys, want); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	close(quit)
	cutting.Wait()
	t.Logf("%d times a range was empty", gone)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func hasRecords(e kv.Engine, w, keys int, want map[int]bool) error {
	view, err := e.Snapshot()
	if err != nil {
		return err
	}
	for n := range keys {
		_, err := view.Probe(recordKey('w', w, n))
		if (err == nil) != want[n] || err != nil && !errors.Is(err, kv.ErrNotFound) {
			return errors.Join(fmt.Errorf("worker %d, key %d, want %v: %w", w, n, want[n], err), view.Close())
		}
	}
	return view.Close()
}

// A range that was deleted by a table which the store has taken over is excised for those who began later only.
func TestExciseAfterReplace(t *testing.T) {
	e := openExcised(t, vfs.NewMem())
	before, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Replace(exciseRange.Start)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Seal(exciseRange.End), r.Commit(context.Background())); err != nil {
		t.Fatal(err)
	}
	after, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	exciseBehind(t, e, before)
	if err := errors.Join(after.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// What is deleted and waits for a reader is told, until it has come back.
func TestDeletedBytes(t *testing.T) {
	e := openExcised(t, vfs.NewMem())
	before, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	waits := func(least, most int64) {
		t.Helper()
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		if s := e.Stats(); s.DeletedBytes < least || s.DeletedBytes > most {
			t.Fatalf("%d bytes wait to come back, not %d to %d", s.DeletedBytes, least, most)
		}
	}
	waits(0, 0)
	deleteExcised(t, e)
	excise(t, e, false, true)
	waits(excised<<3, excised<<10)
	if s := e.Stats(); s.Snapshots == 0 {
		t.Fatal("no snapshot is open")
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	excise(t, e, true, false)
	waits(0, excised<<3)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
