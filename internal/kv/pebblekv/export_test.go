package pebblekv

import (
	"context"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ebbdb/ebb/internal/kv"
)

// Excise does to a deleted range what the reclaimer does in its time.
func (e *Engine) Excise(start, end []byte) (isEmpty, isRead bool, err error) {
	gone, isRead, err := e.commits.excise(kv.Range{Start: start, End: end})
	return gone[0], isRead, err
}

// RecyclingLogs has files of the log written over on a disk in memory, too, which cannot make them zeros otherwise, and counts them.
func (o Options) RecyclingLogs(count *atomic.Int64) Options {
	o.zeroRange = func(file vfs.File, _ int64) (int64, error) {
		info, err := file.Stat()
		if err != nil {
			return 0, err
		}
		n, err := file.WriteAt(make([]byte, info.Size()), 0)
		if err == nil {
			count.Add(1)
		}
		return int64(n), err
	}
	return o
}

// Flush writes what is in memory to tables.
func (e *Engine) Flush() error { return e.db.Flush() }

// CountSyncs counts the syncs from now on. Nobody else may use the store yet.
func (e *Engine) CountSyncs() *atomic.Int64 {
	n, sync := new(atomic.Int64), e.commits.group.sync
	e.commits.group.sync = func() error { n.Add(1); return sync() }
	return n
}

// LookAtDisk does what room does each second, and says whether a reserve is there.
func (e *Engine) LookAtDisk() (reserved bool) {
	e.room.look()
	e.room.restock()
	e.room.look()
	e.room.mu.Lock()
	defer e.room.mu.Unlock()
	return e.room.mu.reserved
}

// IsStuck says whether commits wait for room.
func (e *Engine) IsStuck() bool { return e.room.isStuck() }

// CompactAll brings everything to the last level.
func (e *Engine) CompactAll(start, end []byte) error {
	return e.db.Compact(context.Background(), start, end, false)
}

// Settle waits until there is no work in the background, but looks so many times at most.
func (e *Engine) Settle(tries int) {
	for range 3 { // one thing leads to another
		passes(func() bool { return isAtWork(e.db.Metrics()) }, tries)
	}
}

// BeforeTable has f asked before the committer opens a table to look into it: what f returns, if anything, it finds instead.
func (e *Engine) BeforeTable(f func(path string) (vfs.File, error)) {
	e.commits.disk = &askingDisk{e.commits.disk, f}
}

type askingDisk struct {
	vfs.FS
	ask func(path string) (vfs.File, error)
}

func (d *askingDisk) Open(path string, o ...vfs.OpenOption) (vfs.File, error) {
	if f, err := d.ask(path); f != nil || err != nil {
		return f, err
	}
	return d.FS.Open(path, o...)
}
