package storage

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// A store with an oplog can be read as of a time before. The engine keeps no versions by time, but a snapshot that is held keeps what it
// sees. So each time that somebody is told what he has read as of, the snapshot is held for a while, by that time (Remember). Whoever
// asks for the time finds it (Recall), and so does who asks for one between the same two entries of the oplog: nothing happened there.
// All other times are too old.
//
// What is held costs room: of what is overwritten or deleted meanwhile the engine keeps what a snapshot sees. So one is held no longer
// than the window says, whoever uses it, and there are no more than maxPasts.

// maxPasts is how many states of before are held at most. Past it the one goes that nobody has used for longest.
const maxPasts = 1000

const (
	// DefaultPastWindow is for how long one is held unless somebody says otherwise, in milliseconds.
	DefaultPastWindow = 300_000
	// minPastWindow is for how long it is held at least: a read must be able to begin.
	minPastWindow = 1000
)

// Past is a state of the store: what was committed up to a time, and the catalogue then. What had expired by then is hidden.
type Past struct {
	at                 oplog.Timestamp
	now                int64 // by which what has expired is hidden
	hidesUpTo          int64
	version            *version
	hiding             expiryclock.State
	swept, relocations uint64
	taken              int64  // when the snapshot was, in milliseconds since the epoch
	commits            uint64 // how many there had been, or more: a number that LastCommit has not reached again

	// pasts.mu guards these.
	snapshot kv.Snapshot // nil when it is held no more
	used     uint64
}

// At is its cluster time.
func (p *Past) At() oplog.Timestamp { return p.at }

// Catalog is the catalogue as it was.
func (p *Past) Catalog() *catalog.Catalog { return p.version.catalog }

// tooOld refuses a time whose state cannot be had.
func tooOld(t oplog.Timestamp) error {
	return mongoerr.New(mongoerr.SnapshotTooOld, "Read timestamp Timestamp(%d, %d) is older than the oldest available timestamp.", t.Seconds(), t.Counter())
}

// pasts are those that are held.
type pasts struct {
	mu     sync.Mutex
	byTime []*Past
	uses   uint64
	window int64 // for how long, in milliseconds
}

// find is the place of a time, and whether one is held there. The caller holds mu.
func (p *pasts) find(t oplog.Timestamp) (i int, found bool) {
	return slices.BinarySearchFunc(p.byTime, t, func(p *Past, t oplog.Timestamp) int {
		switch {
		case p.at < t:
			return -1
		case p.at > t:
			return 1
		}
		return 0
	})
}

// isOver says whether one has been held for so long as is allowed.
func (p *pasts) isOver(one *Past, now int64) bool { return now-one.taken > p.window }

// use notes that one was asked for. The caller holds mu.
func (p *pasts) use(one *Past) *Past {
	p.uses++
	one.used = p.uses
	return one
}

// exact is the one at a time; nil when there is none.
func (p *pasts) exact(t oplog.Timestamp, now int64) *Past {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.find(t); ok && !p.isOver(p.byTime[i], now) {
		return p.use(p.byTime[i])
	}
	return nil
}

// newest is the one with the highest time; nil when there is none.
func (p *pasts) newest() *Past {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byTime) == 0 {
		return nil
	}
	return p.use(p.byTime[len(p.byTime)-1])
}

// within is what one at a time from from on, before until, has; its snapshot is its own. nil when there is none.
func (p *pasts) within(from, until oplog.Timestamp, now int64) *Past {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, _ := p.find(from); i < len(p.byTime) && p.byTime[i].at < until; i++ {
		if one := p.byTime[i]; !p.isOver(one, now) {
			same := *p.use(one)
			same.snapshot = one.snapshot.Share()
			return &same
		}
	}
	return nil
}

// hold adds one, or lets go of it where there is one at its time: then that is the one.
func (p *pasts) hold(one *Past) *Past {
	p.mu.Lock()
	var gone []kv.Snapshot
	i, found := p.find(one.at)
	if found {
		gone = append(gone, one.snapshot)
		one = p.byTime[i]
	} else {
		p.byTime = slices.Insert(p.byTime, i, one)
	}
	p.use(one)
	for len(p.byTime) > maxPasts {
		oldest := 0
		for i, o := range p.byTime {
			if o.used < p.byTime[oldest].used {
				oldest = i
			}
		}
		gone = append(gone, p.letGo(oldest))
	}
	p.mu.Unlock()
	closeAll(gone)
	return one
}

// letGo removes the one with an index. The caller holds mu, and closes the snapshot without it.
func (p *pasts) letGo(i int) kv.Snapshot {
	s := p.byTime[i].snapshot
	p.byTime[i].snapshot = nil
	p.byTime = slices.Delete(p.byTime, i, i+1)
	return s
}

// share is a snapshot of one, if that is held still; it may be at any time, but for those that began.
func (p *pasts) share(one *Past, now int64) (kv.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.snapshot == nil || p.isOver(one, now) {
		return nil, tooOld(one.at)
	}
	p.use(one)
	return one.snapshot.Share(), nil
}

// forget lets go of those that have been held for longer than the window.
func (p *pasts) forget(now, window int64) {
	p.mu.Lock()
	p.window = max(window, minPastWindow)
	var gone []kv.Snapshot
	for i := len(p.byTime) - 1; i >= 0; i-- {
		if p.isOver(p.byTime[i], now) {
			gone = append(gone, p.letGo(i))
		}
	}
	p.mu.Unlock()
	closeAll(gone)
}

// forgetAll lets go of all.
func (p *pasts) forgetAll() {
	p.mu.Lock()
	var gone []kv.Snapshot
	for len(p.byTime) > 0 {
		gone = append(gone, p.letGo(len(p.byTime)-1))
	}
	p.mu.Unlock()
	closeAll(gone)
}

// closeAll gives snapshots back that were only read.
func closeAll(snapshots []kv.Snapshot) {
	for _, s := range snapshots {
		_ = s.Close()
	}
}

// ForgetPasts lets go of what has been held of before for longer than window, in milliseconds, which counts from now on.
func (s *Store) ForgetPasts(window int64) { s.pasts.forget(s.Now(), window) }

// TrimPasts is ForgetPasts for who looks now and then. Where the disk is full it lets go of all, so that what is deleted gives its place back.
func (s *Store) TrimPasts(window int64) {
	s.ForgetPasts(window)
	if mongoerr.Is(s.Room(), mongoerr.OutOfDiskSpace) {
		s.pasts.forgetAll()
	}
}

// Pasts is how many states of before are held.
func (s *Store) Pasts() int {
	s.pasts.mu.Lock()
	defer s.pasts.mu.Unlock()
	return len(s.pasts.byTime)
}

// Remember holds the present state of the store, in which what has expired by now is hidden, in milliseconds since the epoch. Its time is behind all that
// anybody knows of, and before all that is still to come.
func (s *Store) Remember(now int64) (*Past, error) {
	commits := s.LastCommit()
	if p := s.pasts.newest(); p != nil && p.now == now && p.commits == commits && !s.pasts.overAt(p, now) {
		return p, nil
	}
	p := &Past{now: now, commits: commits}
	if err := s.still(p, func() { p.at = s.logClock.Tell(now) }); err != nil {
		return nil, err
	}
	return s.pasts.hold(p), nil
}

// still has p be the present state. look is called while nobody commits.
func (s *Store) still(p *Past, look func()) (err error) {
	p.taken, p.hidesUpTo = s.Now(), s.options.HidesUpTo()
	p.snapshot, err = s.engine.Still(func() {
		p.version, p.swept, p.relocations, p.hiding = s.current.Load(), s.sweeps.Load(), s.relocations.Load(), s.expiryClock.State()
		look()
	})
	return err
}

// Recall is the state as of a time that is not after ClusterTime. now is the asking operation's, in milliseconds since the epoch.
func (s *Store) Recall(ctx context.Context, t oplog.Timestamp, now int64) (*Past, error) {
	for {
		if p := s.pasts.exact(t, s.Now()); p != nil {
			return p, nil
		}
		hides := (int64(t.Seconds())+1)*1000 - 1 // what had expired when that second was over
		if s.pasts.outside(hides, s.Now()) {
			return nil, tooOld(t)
		}
		from, until, err := s.stretch(ctx, t)
		switch {
		case err != nil:
			return nil, err
		case until != 0:
			p := s.pasts.within(from, until, s.Now())
			if p == nil {
				return nil, tooOld(t)
			}
			p.at, p.now, p.commits = t, min(hides, now), 0
			return s.pasts.hold(p), nil
		}
		p, passed := &Past{at: t, now: min(hides, now)}, false
		if err := s.still(p, func() { passed = s.logClock.Last() > t }); err != nil {
			return nil, err
		}
		if !passed {
			return s.pasts.hold(p), nil
		}
		_ = p.snapshot.Close() // something was committed meanwhile, which the oplog has now
	}
}

// overAt is isOver for who does not hold mu.
func (p *pasts) overAt(one *Past, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return one.snapshot == nil || p.isOver(one, now)
}

// outside says whether a time, in milliseconds since the epoch, is before the window.
func (p *pasts) outside(t, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t < now-p.window
}

// stretch is the time around t in which nothing was committed: from is that of the last entry up to t, and until that of the first behind it, 0 where
// there is none yet. Where the oplog does not reach back to t they are the same.
func (s *Store) stretch(ctx context.Context, t oplog.Timestamp) (from, until oplog.Timestamp, err error) {
	view, err := s.View(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.OplogNS)
	if !ok {
		return t, t, nil
	}
	next := layout.SequenceID(uint64(t) + 1)
	if from, err = r.firstEntry(RecordScan{High: next, Reverse: true}); err != nil || from == 0 {
		return t, t, err
	}
	until, err = r.firstEntry(RecordScan{Low: next})
	return from, until, err
}

// firstEntry is the timestamp of the first entry that a scan of the oplog finds, 0 when it finds none.
func (r *Reader) firstEntry(scan RecordScan) (oplog.Timestamp, error) {
	c, err := r.Scan(scan)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if !c.Next() {
		return 0, c.Err()
	}
	return oplog.Timestamp(binary.BigEndian.Uint64(c.Record().ID)), nil
}

// ViewPast is ViewAt for who reads the state p.
func (s *Store) ViewPast(ctx context.Context, p *Past, now int64) (*View, error) {
	snapshot, err := s.pasts.share(p, s.Now())
	if err != nil {
		return nil, err
	}
	v := s.newView(ctx, p.version, snapshot, snapshot, now, p.hiding)
	v.past, v.swept, v.relocations = p, p.swept, p.relocations
	return v, nil
}

// beginIn is BeginAt for a transaction that reads the state p, or the present where that is nil.
func (s *Store) beginIn(ctx context.Context, now int64, p *Past) (*Txn, error) {
	if p == nil {
		return s.BeginAt(ctx, now)
	}
	snapshot, err := s.pasts.share(p, s.Now())
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	t, err := s.engine.BeginAt(snapshot)
	if err != nil {
		return nil, err
	}
	txn := s.newTxn(ctx, p.version, t, now, p.hiding, p.swept)
	txn.view.past, txn.view.relocations = p, p.relocations
	return txn, nil
}
