package pebblekv_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/kvtest"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

func open(t *testing.T, dir string, o pebblekv.Options) *pebblekv.Engine {
	t.Helper()
	e, err := pebblekv.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// store opens dir with options, and again with the same ones.
func store(t *testing.T, dir string, o pebblekv.Options) kvtest.Store {
	e := open(t, dir, o)
	return kvtest.Store{Engine: e, Reopen: func(t *testing.T) kv.Engine {
		t.Helper()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, dir, o)
		return e
	}, Another: func(t *testing.T) kv.Engine {
		t.Helper()
		o.FS = vfs.NewMem()
		return open(t, "another", o)
	}, Break: breakable}
}

// breakable is a store, and a function that has all syncs of its log fail from then on.
func breakable(t *testing.T) (kv.Engine, func()) {
	t.Helper()
	var broken atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			if broken.Load() && strings.HasSuffix(op.Path, ".log") {
				return errorfs.ErrInjected
			}
		}
		return nil
	}))
	return open(t, "broken", pebblekv.Options{FS: disk, OnFailure: func(error) {}}), func() { broken.Store(true) }
}

func TestContractInMemory(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kvtest.Store { return store(t, "db", pebblekv.Options{FS: vfs.NewMem()}) })
}

func TestContractOnDisk(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kvtest.Store { return store(t, t.TempDir(), pebblekv.Options{}) })
}

// Tiny memtables make the same checks meet flushed tables, compactions and batches too large for the memtable.
func TestContractWithTinyMemTables(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kvtest.Store {
		return store(t, "db", pebblekv.Options{FS: vfs.NewMem(), MemTableBytes: 16 << 10, CacheBytes: 64 << 10, RowCacheBytes: 64 << 10})
	})
}
