package pebblekv

import (
	"bytes"
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

// A file of the log is little larger than what was written, and goes with its memtable, or is the one spare.
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
	least := int64(rounds * written)
	if canRecycle(t) {
		least = written // for the first file
	}
	if most := int64(rounds * (written + 2*logStep)); bytes < least || bytes > most {
		t.Errorf("%d bytes were set aside, want %d and at most %d", bytes, least, most)
	}
	if m := e.db.Metrics(); m.WAL.ObsoleteFiles > 0 || m.WAL.Files > 2 {
		t.Errorf("the log has %d files, and %d to be written over", m.WAL.Files, m.WAL.ObsoleteFiles)
	}
}

// Zeros are written ahead of small commits, not of large ones, and what comes after them is there after a restart.
func TestLogIsZeroedAhead(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(i, bytes int) {
		t.Helper()
		txn, err := e.Begin()
		if err != nil {
			t.Fatal(err)
		}
		txn.Set(benchKey(i), make([]byte, bytes))
		if err := txn.Commit(context.Background(), kv.Synced); err != nil {
			t.Fatal(err)
		}
	}
	const rounds, each = 400, 2 << 10
	for i := range rounds {
		write(i, each)
		if i%50 == 0 {
			write(rounds+i, 2*smallRound)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range rounds {
		if value, err := s.Get(benchKey(i)); err != nil || len(value) != each {
			t.Fatalf("%d: %d bytes, %v", i, len(value), err)
		}
	}
}

// counting is a file that counts the writes at an offset.
type counting struct {
	vfs.File
	zeros int
}

func (f *counting) WriteAt(p []byte, at int64) (int, error) {
	f.zeros++
	return f.File.WriteAt(p, at)
}

func TestZeroing(t *testing.T) {
	file, err := vfs.Default.Create(t.TempDir()+"/log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := &counting{File: file}
	f := &logFile{File: c}
	round := func(bytes int) {
		t.Helper()
		if _, err := f.Write(ones(bytes)); err != nil {
			t.Fatal(err)
		}
		if err := f.SyncData(); err != nil {
			t.Fatal(err)
		}
	}
	large, small := 4*smallRound, 1000
	for range 10 {
		round(large)
	}
	if c.zeros > 0 {
		t.Errorf("zeros were written ahead of large commits %d times", c.zeros)
	}
	const rounds = 1000
	for range rounds {
		round(small)
	}
	if most := rounds*small/zeroStep + 1; c.zeros == 0 || c.zeros > most {
		t.Errorf("zeros were written ahead of small commits %d times, want 1 to %d", c.zeros, most)
	}
	content := make([]byte, 10*large+rounds*small+zeroStep)
	n, _ := file.ReadAt(content, 0)
	for i, b := range content[:n] {
		if want := i < 10*large+rounds*small; (b == 1) != want {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
}

func ones(n int) []byte { return bytes.Repeat([]byte{1}, n) }
