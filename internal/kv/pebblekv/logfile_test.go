package pebblekv

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// setAside is a disk that adds up what is set aside for files of the log.
type setAside struct {
	vfs.FS
	bytes *int64
}

func (d setAside) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	if strings.HasSuffix(name, ".log") {
		file = setAsideFile{file, d.bytes}
	}
	return file, err
}

type setAsideFile struct {
	vfs.File
	bytes *int64
}

func (f setAsideFile) Preallocate(offset, length int64) error {
	*f.bytes += length
	return f.File.Preallocate(offset, length)
}

// A file of the log is little larger than what was written, and goes with its memtable.
func TestLogTakesLittle(t *testing.T) {
	var bytes int64
	dir := t.TempDir()
	e, err := Open(dir, Options{FS: setAside{vfs.Default, &bytes}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const rounds, written = 6, 5 << 20
	for range rounds {
		txn, err := e.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for i := range written >> 10 {
			txn.Set(benchKey(i), make([]byte, 1<<10))
		}
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			t.Fatal(err)
		}
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if most := int64(rounds * (written + 2*logStep)); bytes < rounds*written || bytes > most {
		t.Errorf("%d bytes were set aside, want %d and at most %d", bytes, rounds*written, most)
	}
	if m := e.db.Metrics(); m.WAL.ObsoleteFiles > 0 || m.WAL.Files > 2 {
		t.Errorf("the log has %d files, and %d to be written over", m.WAL.Files, m.WAL.ObsoleteFiles)
	}
}
