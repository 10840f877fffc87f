package pebblekv

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/testseed"
)

// tableWrites is a disk that counts the writes to tables, and their bytes.
type tableWrites struct {
	vfs.FS
	writes, bytes *atomic.Int64
}

func (d tableWrites) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	if err == nil && isTable(name) {
		file = tableWritesFile{file, d}
	}
	return file, err
}

type tableWritesFile struct {
	vfs.File
	disk tableWrites
}

func (f tableWritesFile) Write(p []byte) (int, error) {
	f.disk.writes.Add(1)
	f.disk.bytes.Add(int64(len(p)))
	return f.File.Write(p)
}

// A table goes to the disk in large pieces, and whole.
func TestTablesAreWrittenInLargePieces(t *testing.T) {
	var writes, bytes atomic.Int64
	disk := vfs.NewMem()
	e, err := Open("db", Options{FS: tableWrites{disk, &writes, &bytes}})
	if err != nil {
		t.Fatal(err)
	}
	const keys, size = 4096, 1 << 10
	values := rand.New(rand.NewPCG(testseed.Of(t), 0))
	txn, err := e.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(values.Uint32()) // which no compression makes less of
		}
		txn.Set(benchKey(i), value)
	}
	if err := txn.Commit(context.Background(), kv.Synced); err != nil {
		t.Fatal(err)
	}
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	const most = 2 * keys * size / tableBufferBytes // it is flushed by the way too, for the disk to begin
	if w, b := writes.Load(), bytes.Load(); b < keys*size || w > most {
		t.Errorf("%d writes of %d bytes, want at most %d of at least %d", w, b, most, keys*size)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open("db", Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range keys {
		if value, err := s.Get(benchKey(i)); err != nil || len(value) != size {
			t.Fatalf("key %d: %d bytes, %v", i, len(value), err)
		}
	}
}
