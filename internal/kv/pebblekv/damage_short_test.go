package pebblekv_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
)

// shortDisk gives nothing of its tables behind the first bytes once it is short, but an error.
type shortDisk struct {
	vfs.FS
	short atomic.Bool
	why   error
}

const shortBytes = 10_000

func (d *shortDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := d.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return &shortFile{file, d}, nil
}

type shortFile struct {
	vfs.File
	disk *shortDisk
}

func (f *shortFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.disk.short.Load() && offset+int64(len(p)) > shortBytes {
		return 0, f.disk.why
	}
	return f.File.ReadAt(p, offset)
}

// TestShortTable: a table that was cut off while the store is open, or that the disk does not give any more, is told as damaged, and no more
// writes are taken.
func TestShortTable(t *testing.T) {
	for _, why := range []error{io.EOF, syscall.EIO} {
		t.Run(why.Error(), func(t *testing.T) {
			sound, want := numberedStore(t, "k", func(*pebblekv.Engine, content) {})
			disk := &shortDisk{FS: sound.disk(t), why: why}
			e := open(t, "db", pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0))})
			disk.short.Store(true)
			corrupt, err := serves(e, want)
			if err != nil || corrupt == nil || !strings.Contains(corrupt.Error(), largest(sound)) {
				t.Errorf("%v, %v; want words of %s", corrupt, err, largest(sound))
			}
			checkReadOnly(t, e)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLargeDamagedBlock: one wrong bit in the block of a large document is found at once. A search for it would run into the time limit of the package.
func TestLargeDamagedBlock(t *testing.T) {
	disk, want := vfs.NewMem(), content{}
	o := pebblekv.Options{FS: disk, Clock: clock.NewFake(time.Unix(0, 0)), Compression: pebblekv.CompressNothing}
	e := open(t, "db", o)
	put(t, e, want, func(txn kv.Txn) {
		want["large"] = strings.Repeat("0123456789abcdef", 2<<20)
		txn.Set([]byte("large"), []byte(want["large"]))
	})
	if err := errors.Join(e.Flush(), e.Close()); err != nil {
		t.Fatal(err)
	}
	sound := readFiles(t, disk, "db")
	b := bytes.Clone(sound[largest(sound)])
	b[len(b)/2] ^= 4
	o.FS = sound.with(largest(sound), b).disk(t)
	e = open(t, "db", o)
	if !checkServes(t, e, want, "with a wrong bit") {
		t.Error("nothing is damaged")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
