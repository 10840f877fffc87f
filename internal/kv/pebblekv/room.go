package pebblekv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// room sees to it that the store always has room to let data go, and that a full disk costs no acknowledged write.
//
// What is deleted takes room at first: for the log, for tables without the dead, for the list of tables. So growth ends
// before the disk does. Below a limit of free space no data is added (admit), and deletions go on. The limit cannot help
// when others fill the disk; for that a file is set aside (the reserve), which is given up when a write finds the disk full,
// and made again when there is room.
//
// When that is used up too: a table that does not fit is given up, and what it took comes back; after a rest it is tried
// again. The log and the list of tables must not fail, for nobody knows afterwards what they hold. So their writers wait for
// room. Meanwhile nothing is committed, deletions neither, and who wants to commit is told so at once. Reads go on.
//
// Invariants: an operation that waits changes nothing on disk after the store was closed. headroom is about what was seen at
// the last look, which is no older than roomInterval or lookBytes.
type room struct {
	disk  vfs.FS
	dir   string
	path  string // of the reserve
	clock clock.Clock
	log   *slog.Logger

	known               bool // the disk says how much is free
	limit, reserveBytes int64
	free                atomic.Int64                  // at the last look
	headroom            atomic.Int64                  // how much of it is above the limit; negative: there is no growth
	written             atomic.Int64                  // since then
	waiting             atomic.Int64                  // writers who wait for room
	pause               [mergedTable + 1]atomic.Int64 // before the next table is begun
	stalled             atomic.Bool                   // Pebble lets nobody write, for too much waits to become a table
	refused             atomic.Int64                  // how many tables found no room before the store was open
	isHopeless          atomic.Bool                   // opening was left behind
	hopeless            chan struct{}                 // closed then
	reason              error                         // of that, set before
	poke                chan struct{}                 // holds one: look now
	open                atomic.Bool                   // start was called
	quit                <-chan struct{}               // closed when the store begins to close
	cancel              context.CancelFunc
	done                chan struct{}

	mu struct {
		sync.Mutex
		reserved bool
		refusing bool      // it was said that no growth is taken
		told     time.Time // when it was last said that a table did not fit
	}
	// closing is held, shared, by who writes.
	closing struct {
		sync.RWMutex
		begun, abandoned bool
	}
}

const (
	// reserveFile is set aside in the store's directory.
	reserveFile         = "EBB-RESERVE"
	defaultReserveBytes = 256 << 20
	// defaultMinFreeBytes is more than what waits in memory to become tables, and what those take until the log goes.
	defaultMinFreeBytes = 512 << 20
	// Of a small disk each takes one part in smallDiskShare at most, by default, and in settingShare where it was set.
	smallDiskShare = 16
	settingShare   = 4
	// memTableShare is the part of the disk that a memtable has at most, and minMemTableBytes its least: several of them
	// must fit into the reserve.
	memTableShare    = 128
	minMemTableBytes = 256 << 10

	roomInterval = time.Second
	// lookBytes is how much may be written until somebody looks sooner.
	lookBytes = 32 << 20

	// firstTablePause and longestTablePause are how long no table is begun after one that found no room.
	firstTablePause   = 50 * time.Millisecond
	longestTablePause = 5 * time.Second
	// firstWait and longestWait are the pauses of who waits for room.
	firstWait   = 5 * time.Millisecond
	longestWait = 500 * time.Millisecond
	// closingPatience is how long a store that closes waits for room.
	closingPatience = 5 * time.Second
	// toldEvery is how often at most it is said that tables do not fit.
	toldEvery = time.Minute
	// logShare is the part of the reserve that tables leave to the log and to what lists the tables. Tables that are merged
	// leave twice as much.
	logShare = 4
	// openTries is how often a table is tried before a store that is opened gives up.
	openTries  = 3
	zerosBytes = 1 << 20
)

// openRoom finds out about the disk. What is scarce already is what opening the store may need, so the reserve goes first then.
func openRoom(dir string, o Options, quit <-chan struct{}) (*room, error) {
	r := &room{disk: o.FS, dir: dir, path: o.FS.PathJoin(dir, reserveFile), clock: o.Clock, log: o.Logger, poke: make(chan struct{}, 1), hopeless: make(chan struct{}), quit: quit}
	r.headroom.Store(math.MaxInt64)
	usage, err := r.disk.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the space of %s: %w", dir, err)
	}
	r.known = true
	total := int64(usage.TotalBytes)
	r.limit = share(o.MinFreeBytes, defaultMinFreeBytes, total)
	r.reserveBytes = share(o.ReserveBytes, defaultReserveBytes, total)
	if err := r.findReserve(); err != nil {
		return nil, err
	}
	if int64(usage.AvailBytes) < r.limit {
		r.giveUp()
	}
	r.look()
	return r, nil
}

// share is a setting, or its default, and no more than its share of the disk; negative means none.
func share(setting, usual, total int64) int64 {
	switch {
	case setting < 0:
		return 0
	case setting > 0:
		return min(setting, total/settingShare)
	}
	return min(usual, total/smallDiskShare)
}

// memTable is the size of memtables that suits the disk.
func (r *room) memTable() int64 {
	usage, err := r.disk.GetDiskUsage(r.dir)
	if err != nil {
		return defaultMemTableBytes
	}
	return max(minMemTableBytes, min(defaultMemTableBytes, int64(usage.TotalBytes)/memTableShare))
}

// start looks after the disk from now on.
func (r *room) start() {
	r.done = make(chan struct{})
	r.open.Store(true)
	if !r.known {
		close(r.done)
		r.cancel = func() {}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go r.run(ctx)
}

func (r *room) run(ctx context.Context) {
	defer close(r.done)
	for {
		r.look()
		r.restock()
		timer := r.clock.NewTimer(roomInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-r.poke:
			timer.Stop()
		}
	}
}

// stop ends what start began. Whoever waits for room then never goes on, which it says.
func (r *room) stop() (abandoned bool) {
	r.closing.Lock()
	r.closing.begun = true
	r.closing.abandoned = r.isStuck()
	abandoned = r.closing.abandoned
	r.closing.Unlock()
	r.cancel()
	<-r.done
	return abandoned
}

// look asks the disk how much is free.
func (r *room) look() {
	if !r.known {
		return
	}
	usage, err := r.disk.GetDiskUsage(r.dir)
	if err != nil {
		r.log.Warn("store: the disk does not say how much is free", "err", err)
		return
	}
	r.written.Store(0)
	free := int64(usage.AvailBytes)
	r.free.Store(free)
	r.headroom.Store(free - r.limit)
	r.mu.Lock()
	defer r.mu.Unlock()
	if refusing := free < r.limit; refusing != r.mu.refusing {
		r.mu.refusing = refusing
		if refusing {
			r.log.Error("store: the disk is nearly full; no data is added until there is room, deletions go on", "freeBytes", free, "neededBytes", r.limit)
		} else {
			r.log.Warn("store: the disk has room; data is added again", "freeBytes", free, "neededBytes", r.limit)
		}
	}
}

// wrote notes that so much was written.
func (r *room) wrote(n int) {
	if r.written.Add(int64(n)) >= lookBytes {
		r.written.Store(0)
		r.wake()
	}
}

func (r *room) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// admit says whether so many bytes of data may be added: in the log, and in a table while the log still has them.
func (r *room) admit(n int64) error {
	if r.isStuck() {
		return r.full()
	}
	headroom := r.headroom.Load()
	if headroom >= 2*n {
		return nil
	}
	if headroom >= 0 {
		r.look()
		if r.headroom.Load() >= 2*n {
			return nil
		}
	}
	return &kv.SpaceError{Free: r.free.Load(), Needed: r.limit + 2*n}
}

// admitAny says whether anything may be committed, a deletion too.
func (r *room) admitAny() error {
	if r.isStuck() {
		return r.full()
	}
	return nil
}

// fits says whether a table may go on. What is left when the reserve was given up is not all for tables: the log needs some,
// and what is in memory must become tables before others are merged.
func (r *room) fits(table tableKind) error {
	if table == noTable || !r.known {
		return nil
	}
	left := r.reserveBytes / logShare
	if table == mergedTable {
		left *= 2
	}
	if usage, err := r.disk.GetDiskUsage(r.dir); err != nil || int64(usage.AvailBytes) >= left {
		return nil
	}
	return syscall.ENOSPC
}

// isAmple says whether so much can be set aside without coming near the limit.
func (r *room) isAmple(n int64) bool {
	usage, err := r.disk.GetDiskUsage(r.dir)
	return err != nil || int64(usage.AvailBytes) >= r.limit+2*n
}

// isScarce says whether growth is refused.
func (r *room) isScarce() bool { return r.headroom.Load() < 0 }

func (r *room) full() error { return &kv.SpaceError{Free: 0, Needed: r.limit} }

// giveUp removes the reserve, and says whether that gave room.
func (r *room) giveUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.reserved {
		return false
	}
	r.mu.reserved = false
	if err := r.disk.Remove(r.path); err != nil {
		r.log.Error("store: what is set aside for a full disk cannot be given up", "file", r.path, "err", err)
		return false
	}
	r.log.Warn("store: the disk is full; what was set aside for that is given up", "bytes", r.reserveBytes)
	r.wake()
	return true
}

// findReserve looks whether the reserve is there from the last time, whole.
func (r *room) findReserve() error {
	info, err := r.disk.Stat(r.path)
	if err != nil {
		return nil // it is made when there is room
	}
	if r.reserveBytes == 0 || info.Size() != r.reserveBytes || allocated(info) < r.reserveBytes {
		if err := r.disk.Remove(r.path); err != nil {
			return fmt.Errorf("remove %s: %w", r.path, err)
		}
		return nil
	}
	r.mu.reserved = true
	return nil
}

// restock makes the reserve where it is missing and half as much again would be left above the limit.
func (r *room) restock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.reserved || r.reserveBytes == 0 || r.headroom.Load() < r.reserveBytes+r.reserveBytes/2 {
		return
	}
	if err := r.setAside(); err != nil {
		_ = r.disk.Remove(r.path)
		if !isFull(err) {
			r.log.Warn("store: nothing can be set aside for a full disk", "file", r.path, "bytes", r.reserveBytes, "err", err)
			r.reserveBytes = 0
		}
		return
	}
	r.mu.reserved = true
	r.wake() // to see how much is left
}

// setAside writes the reserve. A disk that cannot set space aside gets zeros.
func (r *room) setAside() error {
	file, err := r.disk.Create(r.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = file.Preallocate(0, r.reserveBytes); !isFull(err) {
		err = r.fillUp(file)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// fillUp gives the reserve its size, and its space where it has none yet.
func (r *room) fillUp(file vfs.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	step := make([]byte, zerosBytes)
	at := max(0, r.reserveBytes-zerosBytes)
	if allocated(info) < r.reserveBytes {
		at = 0
	}
	for ; at < r.reserveBytes && err == nil; at += zerosBytes {
		_, err = file.WriteAt(step[:min(zerosBytes, r.reserveBytes-at)], at)
	}
	return err
}

// explain makes an error of a full disk one that says so in the words of kv.
func (r *room) explain(err error) error {
	if isFull(err) {
		return fmt.Errorf("%w: %w", r.full(), err)
	}
	return err
}

func isFull(err error) bool { return vfs.IsNoSpaceError(err) }

// try does what takes room on disk. When there is none the reserve is given up for it, but not to merge tables; what must not
// fail waits then.
func (r *room) try(kind tableKind, do func() error) error {
	err := r.once(do)
	if !isFull(err) {
		return err
	}
	r.headroom.Store(min(r.headroom.Load(), -1)) // until the next look
	if kind != mergedTable && r.giveUp() {
		if err = r.once(do); !isFull(err) {
			return err
		}
	}
	switch {
	case kind != noTable:
		return err
	case !r.open.Load(): // a store that cannot be opened says so, and goes no further
		r.tooFullToOpen()
	}
	return r.wait(do)
}

// wait does it when there is room.
func (r *room) wait(do func() error) error {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	r.log.Error("store: the disk is full; nothing is committed until there is room")
	begun := clock.Wall().Now() // it is about a real disk
	for pause := firstWait; ; pause = min(2*pause, longestWait) {
		<-clock.Wall().NewTimer(pause).C()
		err := r.once(do)
		switch {
		case !isFull(err):
			r.log.Warn("store: there is room on the disk; commits go on")
			r.wake()
			return err
		case r.isClosing() && clock.Since(clock.Wall(), begun) > closingPatience:
			return err
		}
	}
}

// once does it. When the store was closed although somebody waits it does not return: the disk may be another's by then.
func (r *room) once(do func() error) error {
	r.closing.RLock()
	defer r.closing.RUnlock()
	if r.closing.abandoned {
		r.closing.RUnlock()
		select {}
	}
	return do()
}

func (r *room) isClosing() bool {
	r.closing.RLock()
	defer r.closing.RUnlock()
	return r.closing.begun
}

// opening opens Pebble's store. That tries without end to make tables of what is in the log, so it is left behind where it
// finds no room, or something damaged, and never goes on.
func (r *room) opening(open func() (*pebble.DB, error)) (*pebble.DB, error) {
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		db, err := open()
		done <- opened{db, err}
	}()
	select {
	case o := <-done:
		return o.db, o.err
	case <-r.hopeless:
		return nil, r.reason
	}
}

// refusedOpening counts tables that found no room while the store is opened.
func (r *room) refusedOpening() {
	if !r.open.Load() && r.refused.Add(1) == openTries {
		r.tooFullToOpen()
	}
}

func (r *room) tooFullToOpen() {
	r.look()
	r.giveUpOpening(fmt.Errorf("the disk is full (%d bytes are free), which is too little to open the store: %w", r.free.Load(), syscall.ENOSPC))
}

// damagedOpening ends the opening of a store for something damaged that no table can be made without. It does not return then.
func (r *room) damagedOpening(err error) {
	if !r.open.Load() {
		r.giveUpOpening(reading("make tables of what is in the log", err))
		select {}
	}
}

func (r *room) giveUpOpening(reason error) {
	if r.isHopeless.Swap(true) {
		return
	}
	r.closing.Lock()
	r.closing.abandoned = true
	r.closing.Unlock()
	r.reason = reason
	close(r.hopeless)
}

// isStuck says whether commits wait for room: for the log, or because what is in memory cannot become tables.
func (r *room) isStuck() bool {
	return r.waiting.Load() > 0 || r.stalled.Load() && (r.pause[flushedTable].Load() > 0 || r.pause[mergedTable].Load() > 0)
}
