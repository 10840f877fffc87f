package pebblekv_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv/pebblekv"
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	disk := vfs.NewCrashableMem()
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
