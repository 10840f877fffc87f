// Package pebblekv is the embedded engine: kv over Pebble, on disk or in memory. It knows nothing of what the keys mean.
//
// # Commit
//
// All writes pass the committer, one at a time: it checks the claims, turns added counters into their new absolute
// values, and applies one Pebble batch, which makes it visible. That happens under one mutex; waiting for the disk does
// not, so that commits that arrive while a sync runs share the next one (groupCommit). Where the store takes over tables, the
// Commit's number is in one of them, and others wait until that is done, without the mutex (takeOver).
//
// A transaction reads the committer's sequence before it takes its snapshot, and one that begins blind takes none before it
// reads. A commit that lands between the two is in the snapshot and still counts as after it: a conflict too many, never one
// too few.
//
// Invariants: the committer's sequence moves only after its batch is visible; the claim table holds every claim younger
// than the oldest open transaction, or its floor is above that transaction; a cached counter equals the visible one.
//
// # Reading
//
// Readers between two commits share one Pebble snapshot (snapshotCache) and its iterators (spares), and values read by key are kept
// for the next reader (rowcache). All go by the committer's sequence.
//
// # Space
//
// The log's files are about as large as what they hold and go with their memtable (logDisk, cleaner). A deleted range's
// space comes back within about ten seconds, whether more is written or not (reclaimer), and mostly unread (excise). Files go
// one after the other, with rests (pacedDisk). There is always room for that, on a full disk too (room).
package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/rowcache"
)

// Engine is a kv.Engine over one Pebble store.
type Engine struct {
	db        *pebble.DB
	cache     *pebble.Cache
	lock      *storeLock
	options   Options
	failure   *failure
	room      *room
	commits   *committer
	open      openTxns
	syncer    *syncer
	forgotten *syncer // of Unsynced commits
	reclaim   *reclaimer
	spares    *spareKeeper
	closed    atomic.Bool
	closing   chan struct{} // closed when Close begins
	inMemory  bool
	volatile  bool   // nobody can open it again
	notes     *notes // nil: of a store that nobody can open again
	held      *keepDisk
	logs      *logRecycler
	found     int             // tables that there were
	tables    *pebble.Options // of the tables that Load writes
	loadDir   string
	loads     loads
	copies    *checkpoints
}

var _ kv.Engine = (*Engine)(nil)

// Open opens the store in dir, or makes one there when dir is empty or missing. The directory belongs to the store alone. A store
// that is damaged is refused, and nothing of it is changed.
func Open(dir string, o Options) (*Engine, error) {
	o = o.withDefaults()
	version, err := checkFormat(o.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("pebblekv: open: %w", err)
	}
	lock, err := lockStore(dir, o.FS)
	if err != nil {
		return nil, fmt.Errorf("pebblekv: open: %s is in use by another Ebb: %w", dir, err)
	}
	e, err := openLocked(dir, o, version, lock)
	if err != nil {
		return nil, fmt.Errorf("pebblekv: open: %w", errors.Join(err, lock.Close()))
	}
	return e, nil
}

func openLocked(dir string, o Options, version int, lock *storeLock) (*Engine, error) {
	if _, onDisk := o.FS.(privateDisk); onDisk {
		if err := narrow(dir, o.Logger); err != nil {
			return nil, err
		}
	}
	report, err := examine(dir, o)
	if err != nil {
		return nil, err
	}
	if version != currentFormat {
		if err := raiseFormat(o.FS, dir); err != nil {
			return nil, err
		}
	}
	e := &Engine{lock: lock, options: o, failure: &failure{log: o.Logger, hook: o.OnFailure}, closing: make(chan struct{}),
		loadDir: o.FS.PathJoin(dir, loadDir), volatile: o.volatile, found: report.FoundTables}
	_, e.inMemory = o.FS.(*vfs.MemFS)
	if e.room, err = openRoom(dir, o, e.closing); err != nil {
		return nil, err
	}
	setDefault(&o.MemTableBytes, defaultMemTableBytes)
	o.MemTableBytes = min(o.MemTableBytes, e.room.memTable())
	e.options = o
	if !e.volatile {
		if e.notes, err = openNotes(o.FS, dir, report.Note); err != nil {
			return nil, err
		}
	}
	e.cache = pebble.NewCache(o.CacheBytes)
	e.tables = o.pebble(e.cache, lock.Lock, e.failure, e.room)
	e.copies = &checkpoints{disk: o.FS, dir: o.FS.PathJoin(dir, checkpointDir)}
	e.tables.FS = checkpointDisk{e.disk(dir, o.FS), e.copies}
	if err = checkOptions(o.FS, dir, e.tables); err == nil {
		e.db, err = e.room.opening(func() (*pebble.DB, error) { return openPebble(dir, e.tables) })
	}
	if err == nil {
		err = errors.Join(clearLoads(o.FS, e.loadDir), e.copies.clear(), e.logs.clear())
	}
	var number uint64
	var millis int64
	if err == nil {
		number, millis, err = readNumber(e.db, o.CommitKey)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), e.abandon())
	}
	if !o.HoldRemovals {
		e.LetRemove()
	}
	e.start(dir, number, millis)
	return e, nil
}

// disk is what Pebble takes for the disk.
func (e *Engine) disk(dir string, disk vfs.FS) vfs.FS {
	e.logs = &logRecycler{disk: disk, path: disk.PathJoin(dir, logSpareFile), most: e.options.MemTableBytes + 2*logStep, zero: e.options.zeroRange, isHeld: func() bool { return e.held.isFrozen() },
		isScarce: e.room.isScarce}
	disk = spoiltDisk{logDisk{tableDisk{&roomDisk{disk, e.room}}, e.logs}, e.failure}
	if e.notes != nil {
		disk = notedDisk{disk, e.notes}
	}
	e.held = &keepDisk{FS: pacedDisk{disk, e.room.restForRemoval}, dir: disk.PathDir(disk.PathJoin(dir, "file")), closing: e.closing, isSpoilt: e.failure.spoilt.HasFile} // Pebble joins names as PathJoin does
	return e.held
}

// abandon closes what was opened of an engine that cannot be.
func (e *Engine) abandon() (err error) {
	if e.room.isHopeless.Load() {
		return errors.Join(e.notes.close(), e.lock.release()) // Pebble still has all of it, and changes nothing on disk any more
	}
	if e.db != nil {
		err = e.db.Close()
	}
	e.cache.Unref()
	return errors.Join(err, e.notes.close())
}

func (e *Engine) start(dir string, number uint64, millis int64) {
	e.commits = newCommitter(e.db, e.options.FS, dir, e.failure, &e.open, rowcache.New(e.options.RowCacheBytes))
	e.commits.commitKey = e.options.CommitKey
	e.commits.number.Store(number)
	e.commits.mu.time, e.commits.mu.shown = millis, millis
	e.syncer = startSyncer(e.commits, e.options.Clock, bufferedSyncInterval, false)
	e.forgotten = startSyncer(e.commits, e.options.Clock, unsyncedSyncInterval, true)
	e.reclaim = startReclaimer(e.commits, dir, e.options, !e.volatile)
	e.spares = startSpareKeeper(&e.commits.snapshots, clock.Wall(), e.closing)
	e.room.start()
}

// LetRemove lets the store remove files that it no longer needs. With Options.HoldRemovals whoever opened it calls that when what
// was read of it has proved sound.
func (e *Engine) LetRemove() { e.held.letGo() }

// OpenMemory makes an empty store in memory.
func OpenMemory(o Options) (*Engine, error) {
	o.FS, o.volatile = vfs.NewMem(), true
	return Open("ebb", o)
}

// Capabilities is kv.Engine's: all there are, but that a member of a replica set takes no tables, and smaller transactions.
func (e *Engine) Capabilities() kv.Capabilities {
	isMember, most := e.commits.member.Load(), e.options.MaxTxnBytes
	if isMember {
		most = min(most, MaxReplicatedBytes)
	}
	return kv.Capabilities{Counters: true, RangeDeletes: true, RangeRewrites: true, Tables: !isMember, LocalSync: true, SoleWriter: true, Checkpoints: true,
		MaxTxnBytes: most}
}

// Snapshot is kv.Engine's.
func (e *Engine) Snapshot() (kv.Snapshot, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	return &snapshot{e.commits.snapshots.acquire(e.db, &e.commits.sequence), e.commits.rows}, nil
}

// Begin is kv.Engine's.
func (e *Engine) Begin() (kv.Txn, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	t := &txn{engine: e}
	e.open.add(t, &e.commits.sequence)
	t.look()
	return t, nil
}

// Still is kv.Engine's.
func (e *Engine) Still(ctx context.Context, look func()) (kv.Snapshot, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	c := e.commits
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitTables()
	if err := c.mu.line.awaitEmpty(ctx, c); err != nil {
		return nil, err
	}
	look()
	return &snapshot{c.snapshots.acquire(e.db, &c.sequence), c.rows}, nil
}

// BeginAt is kv.Engine's.
func (e *Engine) BeginAt(at kv.Snapshot) (kv.Txn, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	s, ok := at.(*snapshot)
	if !ok || s.view == nil {
		return nil, errSnapshotClosed
	}
	t := &txn{engine: e, snapshot: *s.share()}
	t.View.Snapshot = &t.snapshot
	e.open.addAt(t, s.view.at)
	return t, nil
}

// BeginBlind is kv.Engine's.
func (e *Engine) BeginBlind() (kv.Txn, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if err := e.failure.sound(); err != nil {
		return nil, err
	}
	t := &txn{engine: e}
	e.open.add(t, &e.commits.sequence)
	t.View.Snapshot = (*blind)(t)
	return t, nil
}

// DeleteRange is kv.Engine's. It is on stable storage when it returns.
func (e *Engine) DeleteRange(start, end []byte) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if string(start) >= string(end) {
		return nil
	}
	if err := e.room.admitAny(); err != nil {
		return err
	}
	w := &kv.WriteList{Deleted: []kv.Range{{Start: bytes.Clone(start), End: bytes.Clone(end)}}}
	c := &kv.Commit{Writes: w}
	t := &pending{Commit: c, begin: e.commits.sequence.Load(), batch: e.batch(c)}
	if err := e.commit(context.Background(), t, kv.Synced); err != nil {
		return fmt.Errorf("pebblekv: delete range: %w", err)
	}
	return nil
}

// Observe is kv.Engine's.
func (e *Engine) Observe(o kv.Observer) { e.commits.observe(o) }

// Last is kv.Engine's.
func (e *Engine) Last() (number uint64, millis int64) { return e.commits.last() }

// Room is kv.Engine's.
func (e *Engine) Room(bytes int) error {
	if err := e.failure.sound(); err != nil {
		return err
	}
	return e.room.admit(int64(bytes))
}

// Compact is kv.Engine's.
func (e *Engine) Compact(ctx context.Context, start, end []byte) error {
	if e.closed.Load() {
		return kv.ErrClosed
	}
	if string(start) >= string(end) {
		return nil
	}
	if err := e.db.Compact(ctx, start, end, false); err != nil && ctx.Err() == nil {
		return reading("compact", err)
	}
	return context.Cause(ctx)
}

// SizeOf is kv.Engine's. What is not yet in a table counts nothing.
func (e *Engine) SizeOf(start, end []byte) (int64, error) {
	if e.closed.Load() {
		return 0, kv.ErrClosed
	}
	if string(start) >= string(end) {
		return 0, nil
	}
	n, err := e.db.EstimateDiskUsage(start, end)
	if err != nil {
		return 0, reading("size of range", err)
	}
	return int64(n), nil
}

// Sync is kv.Engine's.
func (e *Engine) Sync() error {
	switch {
	case e.closed.Load():
		return undetermined(kv.ErrClosed)
	case e.volatile:
		return undetermined(e.failure.get())
	}
	return undetermined(e.commits.sync())
}

// AwaitDurable is kv.Engine's. A store that ends with the process has nothing to wait for, and in a member of a replica set what is visible is
// durable by its log.
func (e *Engine) AwaitDurable(number uint64) error {
	switch {
	case e.closed.Load():
		return undetermined(kv.ErrClosed)
	case e.commits.member.Load():
		return undetermined(e.failure.get())
	case number <= e.commits.synced.Load():
		return nil
	}
	return e.Sync()
}

// Stats is kv.Engine's.
func (e *Engine) Stats() kv.Stats {
	s := kv.Stats{Engine: "pebble", Stalled: e.options.Watch.Stalled(), Stalls: e.options.Watch.Stalls()}
	if text := e.failure.damage.Load(); text != nil {
		s.Damage = *text
	}
	if e.inMemory {
		s.Engine = "pebble in memory"
	}
	if e.closed.Load() {
		return s
	}
	m := e.db.Metrics()
	s.DiskBytes = int64(m.DiskSpaceUsage())
	s.MemTableBytes = int64(m.MemTable.Size)
	s.CacheBytes = m.BlockCache.Size
	s.RowCacheBytes = e.commits.rows.Bytes()
	s.CacheLimitBytes, s.RowCacheLimitBytes = e.options.CacheBytes, e.options.RowCacheBytes
	s.MemTableLimitBytes = memTablesStopWrites * e.options.MemTableBytes
	s.DeletedBytes = e.reclaim.garbage()
	s.Snapshots = int64(m.Snapshots.Count)
	s.TablesFound = int64(e.found)
	s.Compactions = m.Compact.Count
	s.Flushes = m.Flush.Count
	s.Detail = m.String()
	return s
}

// Close is kv.Engine's. Snapshots, transactions and iterators must be closed before; those that are not are an error.
func (e *Engine) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return kv.ErrClosed
	}
	close(e.closing)
	if e.failure.stuck.Load() {
		e.reclaim.cancel() // nobody can be waited for
		return e.failure.get()
	}
	if e.room.stop() {
		return errors.New("pebblekv: close: the disk is full: what is not acknowledged is lost") // its writers never go on
	}
	e.reclaim.stop()
	e.spares.wait()
	err := errors.Join(e.syncer.stop(), e.forgotten.stop())
	e.commits.group.stop()
	e.commits.snapshots.forget()
	e.commits.rows.Close()
	if e.commits.isStuck() {
		return errors.Join(err, e.failure.get()) // Pebble's locks are held for good; its files close with the process
	}
	err = errors.Join(err, e.db.Close())
	e.held.wait()
	err = errors.Join(err, e.notes.close(), e.lock.Close())
	e.cache.Unref()
	if err != nil {
		return fmt.Errorf("pebblekv: close: %w", err)
	}
	return nil
}
