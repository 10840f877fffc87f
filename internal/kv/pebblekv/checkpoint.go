package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// A checkpoint is a folder that is a store: links to the tables, which never change, and copies of the list of tables and of the logs.
//
// Pebble takes note of the list and of which logs there are at one moment, and copies the logs later, with what was written to them
// since. What changed the list since is missing then: tables that were taken over, and what was excised. So nobody commits, and
// nobody changes the list as a whole, from before that moment until after it, for which we wait without the committer's mutex, as for tables
// that are taken over. The moment is when Pebble makes the folder. An empty record marks its place in the log, and what the copies hold from
// there on is cut off. So there are all commits up to the last before the moment and no other.
//
// What Pebble does there goes around what watches over the disk of the store itself: its notes go by the names of files, and what is set
// aside for a full disk is not for copies.

const (
	// checkpointDir is where they are. What a crash leaves there is removed by Open.
	checkpointDir = "checkpoints"
	// flushPatience is how long a checkpoint waits for what is in memory to become tables. Without that it has more of the logs.
	flushPatience = 30 * time.Second
)

// checkpoints are those of one store.
type checkpoints struct {
	disk vfs.FS
	dir  string
	next atomic.Uint64

	one sync.Mutex // taken one at a time

	mu struct {
		sync.Mutex
		moment func() // called when the folder of the one that is being taken is made; or nil
	}
}

// clear removes what others have left.
func (c *checkpoints) clear() error {
	if err := c.disk.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("clear %s: %w", c.dir, err)
	}
	return nil
}

// at has f called when the next folder is made, and before that not again.
func (c *checkpoints) at(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.moment = f
}

func (c *checkpoints) made() {
	c.mu.Lock()
	f := c.mu.moment
	c.mu.moment = nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

// holds says whether a path lies among them.
func (c *checkpoints) holds(path string) bool { return strings.HasPrefix(path, c.dir) }

// checkpointDisk is the store's disk, and for checkpoints the plain one.
type checkpointDisk struct {
	vfs.FS
	copies *checkpoints
}

// errNoLinks is of a disk on which a checkpoint would be a copy of everything.
var errNoLinks = errors.New("the disk of the store cannot give a file a second name (a hard link), which a checkpoint needs")

func (d checkpointDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	switch {
	case !d.copies.holds(name):
		return d.FS.Create(name, category)
	case isTable(name):
		return nil, errNoLinks
	}
	return d.copies.disk.Create(name, category)
}

func (d checkpointDisk) Link(from, name string) error {
	if d.copies.holds(name) {
		return d.copies.disk.Link(from, name)
	}
	return d.FS.Link(from, name)
}

func (d checkpointDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	if d.copies.holds(name) {
		return d.copies.disk.Open(name, o...)
	}
	return d.FS.Open(name, o...)
}

func (d checkpointDisk) OpenDir(name string) (vfs.File, error) {
	if d.copies.holds(name) {
		return d.copies.disk.OpenDir(name)
	}
	return d.FS.OpenDir(name)
}

func (d checkpointDisk) Remove(name string) error {
	if d.copies.holds(name) {
		return d.copies.disk.Remove(name)
	}
	return d.FS.Remove(name)
}

func (d checkpointDisk) RemoveAll(name string) error {
	if d.copies.holds(name) {
		return d.copies.disk.RemoveAll(name)
	}
	return d.FS.RemoveAll(name)
}

func (d checkpointDisk) Rename(from, name string) error {
	if d.copies.holds(name) {
		return d.copies.disk.Rename(from, name)
	}
	return d.FS.Rename(from, name)
}

func (d checkpointDisk) MkdirAll(name string, perm fs.FileMode) error {
	if !d.copies.holds(name) {
		return d.FS.MkdirAll(name, perm)
	}
	d.copies.made()
	return d.copies.disk.MkdirAll(name, perm)
}

func (d checkpointDisk) Unwrap() vfs.FS { return d.FS }

// checkpoint is a kv.Checkpoint.
type checkpoint struct {
	disk   vfs.FS
	dir    string
	number uint64
	millis int64
	files  []kv.CheckpointFile
	sizes  map[string]int64
}

// Checkpoint is kv.Engine's.
func (e *Engine) Checkpoint(ctx context.Context) (kv.Checkpoint, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	c, err := e.checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("pebblekv: checkpoint: %w", err)
	}
	return c, nil
}

func (e *Engine) checkpoint(ctx context.Context) (c *checkpoint, err error) {
	e.copies.one.Lock()
	defer e.copies.one.Unlock()
	if err := e.failure.sound(); err != nil {
		return nil, err
	}
	if e.room.isScarce() {
		return nil, e.room.full()
	}
	if err := e.flush(ctx); err != nil {
		return nil, err
	}
	if err := e.commits.sync(); err != nil { // most of what the log has to sync, before anybody waits for it
		return nil, err
	}
	disk := e.copies.disk
	c = &checkpoint{disk: disk, dir: disk.PathJoin(e.copies.dir, strconv.FormatUint(e.copies.next.Add(1), 10)), sizes: map[string]int64{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(c.dir))
			c = nil
		}
	}()
	next, err := e.commits.take(c, e.copies)
	if err != nil {
		return nil, err
	}
	if err := cutCopies(disk, c.dir, next); err != nil {
		return nil, err
	}
	return c, c.finish()
}

// flush makes tables of what is in memory, if that does not take too long.
func (e *Engine) flush(ctx context.Context) error {
	done, err := e.db.AsyncFlush()
	if err != nil {
		return err
	}
	late := clock.Wall().NewTimer(flushPatience) // it is about a real disk
	defer late.Stop()
	select {
	case <-done:
	case <-late.C():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// take has Pebble take a checkpoint. All that was committed before it has sequence numbers below next.
func (c *committer) take(to *checkpoint, copies *checkpoints) (next uint64, err error) {
	c.tables.Lock()
	held := true
	release := func() {
		if held {
			held = false
			c.endTables()
			c.tables.Unlock()
		}
	}
	defer release()
	if next, err = c.beginCheckpoint(to); err != nil {
		return 0, err
	}
	copies.at(release) // on this goroutine
	defer copies.at(nil)
	return next, c.copyStore(to.dir)
}

// beginCheckpoint marks the place in the log, and has all others wait from now on.
func (c *committer) beginCheckpoint(to *checkpoint) (next uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failure.writable(); err != nil {
		return 0, err
	}
	b := c.emptyRecord("checkpoint")
	if err := c.apply(b); err != nil {
		return 0, err
	}
	next = uint64(b.SeqNum())
	closeBatch(b)
	to.number, to.millis = c.number.Load(), c.mu.shown
	c.mu.tables = true
	return next, nil
}

// copyStore has Pebble copy the store. It panics when it cannot write its log, as commits do then.
func (c *committer) copyStore(dir string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.stick()
			c.failure.set(fmt.Errorf("checkpoint: %v", r))
			err = c.failure.get()
		}
	}()
	return c.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// cutCopies cuts off what the copies of the logs hold from the moment on, adds what belongs to a store of ours beside Pebble's files, and
// looks whether the whole is sound.
func cutCopies(disk vfs.FS, dir string, next uint64) error {
	numbers, err := logNumbers(disk, dir)
	if err != nil {
		return err
	}
	over := false
	for _, number := range numbers {
		end, err := inspect.FindLogEnd(disk, dir, number, next)
		switch {
		case err != nil:
			return err
		case over && end.Records > 0:
			return fmt.Errorf("the log before %06d.log was not copied whole", number)
		case over:
			err = disk.Remove(disk.PathJoin(dir, fmt.Sprintf("%06d.log", number)))
		case !end.Whole:
			over = true
			err = shorten(disk, dir, fmt.Sprintf("%06d.log", number), end.End)
		}
		if err != nil {
			return err
		}
	}
	if err := writeFormat(disk, disk.PathJoin(dir, formatFile)); err != nil {
		return fmt.Errorf("write %s: %w", formatFile, err)
	}
	report, err := inspect.Look(disk, dir)
	if err != nil {
		return err
	}
	if err := report.Err(dir); err != nil {
		return err
	}
	return writeNote(disk, dir, noteOf(report))
}

// noteOf notes that all there is was on stable storage.
func noteOf(r *inspect.Report) []inspect.Slot {
	slots := make([]inspect.Slot, inspect.NoteSlots)
	if kind, number := kindOf(r.Manifest); kind != inspect.Free {
		slots[0] = inspect.Slot{Kind: kind, Number: number, Synced: r.Edits.Whole}
	}
	for i, l := range r.Logs[:min(len(r.Logs), len(slots)-1)] {
		slots[1+i] = inspect.Slot{Kind: inspect.Log, Number: l.Number, Synced: l.Scan.Whole}
	}
	return slots
}

func logNumbers(disk vfs.FS, dir string) (numbers []uint64, err error) {
	names, err := disk.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		if kind, number := kindOf(disk.PathBase(name)); kind == inspect.Log {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// shorten puts the beginning of a file in its place.
func shorten(disk vfs.FS, dir, name string, size int64) error {
	path := disk.PathJoin(dir, name)
	from, err := disk.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := disk.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(from, size))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return disk.Rename(path+tempSuffix, path)
}

// finish lists the files.
func (c *checkpoint) finish() error {
	names, err := c.disk.List(c.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", c.dir, err)
	}
	slices.Sort(names)
	for _, name := range names {
		info, err := c.disk.Stat(c.disk.PathJoin(c.dir, name))
		if err != nil {
			return err
		}
		c.files = append(c.files, kv.CheckpointFile{Name: name, Bytes: info.Size(), Table: isTable(name)})
		c.sizes[name] = info.Size()
	}
	return syncDir(c.disk, c.dir)
}

func (c *checkpoint) Last() (number uint64, millis int64) { return c.number, c.millis }

func (c *checkpoint) Files() []kv.CheckpointFile { return c.files }

func (c *checkpoint) ReadAt(name string, b []byte, offset int64) (int, error) {
	if _, ok := c.sizes[name]; !ok {
		return 0, fmt.Errorf("pebblekv: the checkpoint has no file %q: %w", name, fs.ErrNotExist)
	}
	file, err := c.disk.Open(c.disk.PathJoin(c.dir, name))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return file.ReadAt(b, offset)
}

func (c *checkpoint) Check(ctx context.Context, name string) error {
	number, ok := strings.CutSuffix(name, ".sst")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || c.sizes[name] == 0 {
		return nil
	}
	if err := inspect.CheckTable(c.disk, c.dir, n); err != nil {
		return kv.Damaged(fmt.Errorf("the table %s is damaged: %w", name, err))
	}
	return context.Cause(ctx)
}

func (c *checkpoint) Remove() error { return c.disk.RemoveAll(c.dir) }
