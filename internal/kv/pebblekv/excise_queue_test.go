package pebblekv

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// heldDisk makes no tables before release is closed, when it is not nil.
type heldDisk struct {
	vfs.FS
	release chan struct{}
}

func (d *heldDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.release != nil && strings.HasSuffix(name, ".sst") {
		<-d.release
	}
	return d.FS.Create(name, category)
}

func apply(e *Engine, f func(kv.Txn)) {
	txn, err := e.Begin()
	must(err)
	f(txn)
	must(txn.Commit(context.Background(), kv.Buffered))
}

// Many ranges that are in memory yet are excised one after the other, and nobody who commits waits until all of it is flushed.
func TestExciseBesideCommits(t *testing.T) {
	disk := &heldDisk{FS: vfs.NewMem()}
	e, err := Open("db", Options{FS: disk})
	must(err)
	defer func() { must(e.Close()) }()
	var list []kv.Range
	for i := range byte(2 * memTablesStopWrites) {
		r := kv.Range{Start: []byte{'r', i}, End: []byte{'r', i + 1}}
		list = append(list, r)
		apply(e, func(txn kv.Txn) { txn.Set(append(bytes.Clone(r.Start), 1), []byte("value")) })
		apply(e, func(txn kv.Txn) { txn.DeleteRange(r.Start, r.End) })
	}
	disk.release = make(chan struct{})
	type result struct {
		gone   []bool
		isRead bool
		err    error
	}
	excised, committed := make(chan result), make(chan struct{})
	go func() {
		gone, isRead, err := e.commits.excise(list...)
		excised <- result{gone, isRead, err}
	}()
	for !e.commits.isFlushing() {
		time.Sleep(time.Millisecond)
	}
	go func() {
		apply(e, func(txn kv.Txn) { txn.Set([]byte("other"), []byte("value")) })
		close(committed)
	}()
	<-committed
	close(disk.release)
	r := <-excised
	if r.err != nil || r.isRead {
		t.Errorf("read %v, %v", r.isRead, r.err)
	}
	for i, gone := range r.gone {
		if !gone {
			t.Errorf("range %d is left", i)
		}
	}
}

// Somebody who sees a key that is deleted while excise looks at what is left goes on seeing it.
func TestExciseBesideReaders(t *testing.T) {
	e, err := Open("db", Options{FS: vfs.NewMem()})
	must(err)
	defer func() { must(e.Close()) }()
	watched := func() bool {
		e.commits.mu.Lock()
		defer e.commits.mu.Unlock()
		return e.commits.mu.watch != nil
	}
	slow, quick := kv.Range{Start: []byte{'a'}, End: []byte{'b'}}, kv.Range{Start: []byte{'b'}, End: []byte{'c'}}
	key := []byte{'b', 1}
	for range 3 {
		// There is so much dead in the first range that to look there takes a while.
		apply(e, func(txn kv.Txn) {
			for i := range 100_000 {
				txn.Set(binary.BigEndian.AppendUint32([]byte{'a'}, uint32(i)), nil)
			}
		})
		apply(e, func(txn kv.Txn) { txn.DeleteRange(slow.Start, slow.End) })
		apply(e, func(txn kv.Txn) { txn.Set(key, []byte("value")) })
		done := make(chan error, 1)
		go func() {
			_, _, err := e.commits.excise(slow, quick)
			done <- err
		}()
		for !watched() && len(done) == 0 {
			runtime.Gosched()
		}
		reader, err := e.Snapshot()
		must(err)
		apply(e, func(txn kv.Txn) { txn.Delete(key) })
		must(<-done)
		if value, err := reader.Get(key); err != nil || string(value) != "value" {
			t.Fatalf("%q, %v", value, err)
		}
		must(reader.Close())
	}
}
