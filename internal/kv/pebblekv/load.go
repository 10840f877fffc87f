package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

const (
	// loadDir is where tables are written before the store takes them over. What a crash leaves there is removed by Open.
	loadDir = "load"
	// loadedTableBytes is about how much one of them holds.
	loadedTableBytes = 64 << 20
	// loadedLevel is the level whose form they have: that is where most come to lie.
	loadedLevel = 6
)

// loads numbers the tables that are being written.
type loads struct{ next atomic.Uint64 }

// clearLoads leaves the directory where it is: a full disk may have no room for it again.
func clearLoads(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return disk.MkdirAll(dir, privateFolder)
	}
	for _, name := range names {
		err = errors.Join(err, disk.RemoveAll(disk.PathJoin(dir, name)))
	}
	if err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	return nil
}

// Load is kv.Engine's. The tables go around the log and the memtable, and all of them become visible with one edit of the
// store's manifest.
func (e *Engine) Load(ctx context.Context, next func() (key, value []byte, ok bool, err error)) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	return e.load(ctx, next, nil)
}

// load is Load of pairs that make up an ordered Commit, or nil for one that is to be ordered.
func (e *Engine) load(ctx context.Context, next func() (key, value []byte, ok bool, err error), ordered *kv.Commit) error {
	if e.commits.member.Load() {
		return errNoTables
	}
	l := &load{engine: e, next: next}
	defer l.clean()
	if err := l.write(); err != nil {
		return e.room.explain(err)
	}
	c := ordered
	switch {
	case ordered == nil && len(l.paths) == 0:
		return nil
	case ordered == nil:
		c = &kv.Commit{Writes: &kv.WriteList{}, Table: e.tableOf(kv.Range{Start: l.first, End: after(l.last)}, false)}
	}
	if err := e.takeOver(ctx, l.paths, c, ordered != nil, nil); err != nil {
		return fmt.Errorf("pebblekv: load: %w", err)
	}
	e.commits.snapshots.forget()
	return nil
}

// load is one Load under way.
type load struct {
	engine      *Engine
	next        func() (key, value []byte, ok bool, err error)
	paths       []string
	table       *sstable.Writer
	size        int
	first, last []byte
}

// write fills tables until there is no more.
func (l *load) write() error {
	for {
		key, value, ok, err := l.next()
		if err != nil || !ok {
			return errors.Join(err, l.finish())
		}
		if err := l.set(key, value); err != nil {
			return errors.Join(fmt.Errorf("pebblekv: load: %w", err), l.finish())
		}
	}
}

func (l *load) set(key, value []byte) error {
	if l.size >= loadedTableBytes {
		if err := l.finish(); err != nil {
			return err
		}
	}
	if l.table == nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	if l.first == nil {
		l.first = bytes.Clone(key)
	}
	l.last = append(l.last[:0], key...)
	l.size += len(key) + len(value)
	return l.table.Set(key, value)
}

func (l *load) begin() (err error) {
	l.size = 0
	l.table, err = l.engine.newTable(&l.paths)
	return err
}

// newTable begins a table that the store is to take over, and adds its path to paths.
func (e *Engine) newTable(paths *[]string) (*sstable.Writer, error) {
	path := e.options.FS.PathJoin(e.loadDir, fmt.Sprintf("%d.sst", e.loads.next.Add(1)))
	file, err := e.options.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	*paths = append(*paths, path)
	file = vfs.NewSyncingFile(file, vfs.SyncingFileOptions{BytesPerSync: bytesPerSync}) // or the last sync would hold up all others
	return sstable.NewWriter(objstorageprovider.NewFileWritable(file), e.tables.MakeWriterOptions(loadedLevel, e.db.TableFormat())), nil
}

// finish closes the table, which syncs it.
func (l *load) finish() error {
	if l.table == nil {
		return nil
	}
	err := l.table.Close()
	l.table = nil
	if err != nil {
		return fmt.Errorf("pebblekv: load: %w", err)
	}
	return nil
}

func (l *load) clean() { l.engine.removeTables(l.paths) }

// removeTables removes the names that the store has not removed itself.
func (e *Engine) removeTables(paths []string) {
	for _, path := range paths {
		_ = e.options.FS.Remove(path)
	}
}
