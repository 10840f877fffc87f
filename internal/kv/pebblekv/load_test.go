package pebblekv_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/testseed"
)

const loadedKeys = 100

// numbered gives the keys of the n-th load.
func numbered(n int) func() (key, value []byte, ok bool, err error) {
	i := 0
	return func() ([]byte, []byte, bool, error) {
		i++
		return recordKey('l', n, i), []byte("loaded"), i <= loadedKeys, nil
	}
}

// TestLoadCrash takes the power away under loads and commits: a load that has returned is whole, any other is whole or
// not there, and nothing is left of it.
func TestLoadCrash(t *testing.T) {
	seed := testseed.Of(t)
	disk := crashdisk.New()
	e := open(t, "db", pebblekv.Options{FS: disk, MemTableBytes: 64 << 10})
	const loads = 60
	var loaded, committed atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for n := range loads {
			if err := e.Load(context.Background(), numbered(n)); err != nil {
				t.Error(err)
				return
			}
			loaded.Store(int64(n + 1))
		}
	})
	work.Go(func() {
		for n := 0; loaded.Load() < loads && commitOnce(t, e, 0, n, &committed); n++ {
		}
	})
	for crash := uint64(0); loaded.Load() < loads && !t.Failed(); crash++ {
		before := int(loaded.Load())
		left := disk.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: int(crash%3) * 40, RNG: rand.New(rand.NewPCG(seed, crash)),
		})
		checkLoads(t, left, before, loads)
	}
	work.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkLoads(t *testing.T, disk vfs.FS, before, most int) {
	t.Helper()
	e := open(t, "db", pebblekv.Options{FS: disk})
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for n := range most {
		got, _ := countKeys(t, view, []byte{'l', byte(n)})
		if got != loadedKeys && (got != 0 || n < before) {
			t.Fatalf("of load %d there are %d keys; %d loads had returned", n, got, before)
		}
	}
	if err := errors.Join(view.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if names, err := disk.List("db/load"); err != nil || len(names) > 0 {
		t.Fatalf("left behind: %v, %v", names, err)
	}
}

// TestReplaceCrash takes the power away under replacements, each of which raises the value that all keys of a range have: they
// agree, and what was committed before, unsynced, is there if they are.
func TestReplaceCrash(t *testing.T) {
	seed := testseed.Of(t)
	disk := crashdisk.New()
	e := open(t, "db", pebblekv.Options{FS: disk, MemTableBytes: 64 << 10})
	const rounds = 40
	var replaced atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for n := range int64(rounds) {
			if err := replaceOnce(e, n+1); err != nil {
				t.Error(err)
				return
			}
			replaced.Store(n + 1)
		}
	})
	for crash := uint64(0); replaced.Load() < rounds && !t.Failed(); crash++ {
		left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(crash%3) * 40, RNG: rand.New(rand.NewPCG(seed, crash))})
		checkReplaced(t, left)
	}
	work.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// replaceOnce notes n in a commit that is not synced, and then writes it everywhere.
func replaceOnce(e *pebblekv.Engine, n int64) error {
	note, err := e.Begin()
	if err != nil {
		return err
	}
	note.Set([]byte("noted"), []byte{byte(n)})
	if err := note.Commit(context.Background(), kv.Buffered); err != nil {
		return err
	}
	r, err := e.Replace([]byte("l"))
	if err != nil {
		return err
	}
	for i := range loadedKeys {
		if err := r.Set(recordKey('l', 0, i), []byte{byte(n)}); err != nil {
			return err
		}
	}
	if err := r.Seal([]byte("m")); err != nil {
		return err
	}
	return r.Commit(context.Background())
}

func checkReplaced(t *testing.T, disk vfs.FS) {
	t.Helper()
	e := open(t, "db", pebblekv.Options{FS: disk})
	view, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	first, err := view.Get(recordKey('l', 0, 0))
	if err == nil {
		for i := range loadedKeys {
			if value, err := view.Get(recordKey('l', 0, i)); err != nil || !bytes.Equal(value, first) {
				t.Fatalf("key %d is %v, %v, and the first is %v", i, value, err, first)
			}
		}
		if noted, err := view.Get([]byte("noted")); err != nil || noted[0] < first[0] {
			t.Fatalf("%v was noted, %v, and %v is there", noted, err, first)
		}
	}
	if err := errors.Join(view.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
}
