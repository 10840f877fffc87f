// Package past holds states of a store as they were, each by the time that somebody was told to have read as of. It keeps what a state is made
// of without looking at it, and lets go of its snapshot: when it has been held for so long as the window says, whoever uses it, and, of more
// than MaxHeld, of the one that nobody has used for longest. What is held costs room: of what is overwritten or deleted meanwhile the engine
// keeps what a snapshot sees.
package past

import (
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// MaxHeld is how many states of before are held at most. Past it the one goes that nobody has used for longest.
const MaxHeld = 1000

const (
	// DefaultWindow is for how long one is held unless somebody says otherwise, in milliseconds.
	DefaultWindow = 300_000
	// MinWindow is for how long it is held at least: a read must be able to begin.
	MinWindow = 1000
)

// Past is a state of the store: what was committed up to a time. S is what the store has of it beside the snapshot.
type Past[S any] struct {
	State    S
	at       oplog.Timestamp
	taken    int64       // when the snapshot was, in milliseconds since the epoch
	snapshot kv.Snapshot // nil when it is held no more; the pool's lock guards it, and used
	used     uint64
}

// New is a state as of a cluster time, which a snapshot sees that was taken at a time in milliseconds since the epoch.
func New[S any](at oplog.Timestamp, taken int64, snapshot kv.Snapshot, state S) *Past[S] {
	return &Past[S]{State: state, at: at, taken: taken, snapshot: snapshot}
}

// At is its cluster time.
func (p *Past[S]) At() oplog.Timestamp { return p.at }

// TooOld refuses a time whose state cannot be had.
func TooOld(t oplog.Timestamp) error {
	return mongoerr.New(mongoerr.SnapshotTooOld, "Read timestamp Timestamp(%d, %d) is older than the oldest available timestamp.", t.Seconds(), t.Counter())
}

// Pool are those that are held. Use NewPool.
type Pool[S any] struct {
	mu     sync.Mutex
	byTime []*Past[S]
	uses   uint64
	window int64 // for how long, in milliseconds
}

// find is the place of a time, and whether one is held there. The caller holds mu.
func (p *Pool[S]) find(t oplog.Timestamp) (i int, found bool) {
	return slices.BinarySearchFunc(p.byTime, t, func(p *Past[S], t oplog.Timestamp) int {
		switch {
		case p.at < t:
			return -1
		case p.at > t:
			return 1
		}
		return 0
	})
}

// NewPool holds none yet.
func NewPool[S any]() *Pool[S] { return &Pool[S]{window: DefaultWindow} }

// isOver says whether one has been held for so long as is allowed.
func (p *Pool[S]) isOver(one *Past[S], now int64) bool { return now-one.taken > p.window }

// use notes that one was asked for. The caller holds mu.
func (p *Pool[S]) use(one *Past[S]) *Past[S] {
	p.uses++
	one.used = p.uses
	return one
}

// Exact is the one at a time; nil when there is none.
func (p *Pool[S]) Exact(t oplog.Timestamp, now int64) *Past[S] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i, ok := p.find(t); ok && !p.isOver(p.byTime[i], now) {
		return p.use(p.byTime[i])
	}
	return nil
}

// Newest is the one with the highest time; nil when there is none, or it may be held no longer.
func (p *Pool[S]) Newest(now int64) *Past[S] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byTime) == 0 || p.isOver(p.byTime[len(p.byTime)-1], now) {
		return nil
	}
	return p.use(p.byTime[len(p.byTime)-1])
}

// Within is, as of the time t, what one at a time from from on, before until, has; its snapshot is its own, which Hold takes. nil when there
// is none.
func (p *Pool[S]) Within(t, from, until oplog.Timestamp, now int64) *Past[S] {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, _ := p.find(from); i < len(p.byTime) && p.byTime[i].at < until; i++ {
		if one := p.byTime[i]; !p.isOver(one, now) {
			same := *p.use(one)
			same.at, same.snapshot = t, one.snapshot.Share()
			return &same
		}
	}
	return nil
}

// Hold adds one, or lets go of it where there is one at its time: then that is the one.
func (p *Pool[S]) Hold(one *Past[S]) *Past[S] {
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
	for len(p.byTime) > MaxHeld {
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
func (p *Pool[S]) letGo(i int) kv.Snapshot {
	s := p.byTime[i].snapshot
	p.byTime[i].snapshot = nil
	p.byTime = slices.Delete(p.byTime, i, i+1)
	return s
}

// Share is a snapshot of one, for who reads it; SnapshotTooOld when it is held no more.
func (p *Pool[S]) Share(one *Past[S], now int64) (kv.Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.snapshot == nil || p.isOver(one, now) {
		return nil, TooOld(one.at)
	}
	p.use(one)
	return one.snapshot.Share(), nil
}

// Forget lets go of those that have been held for longer than the window.
func (p *Pool[S]) Forget(now, window int64) {
	p.mu.Lock()
	p.window = max(window, MinWindow)
	var gone []kv.Snapshot
	for i := len(p.byTime) - 1; i >= 0; i-- {
		if p.isOver(p.byTime[i], now) {
			gone = append(gone, p.letGo(i))
		}
	}
	p.mu.Unlock()
	closeAll(gone)
}

// ForgetAll lets go of all.
func (p *Pool[S]) ForgetAll() {
	p.mu.Lock()
	var gone []kv.Snapshot
	for len(p.byTime) > 0 {
		gone = append(gone, p.letGo(len(p.byTime)-1))
	}
	p.mu.Unlock()
	closeAll(gone)
}

// IsBefore says whether a time, in milliseconds since the epoch, is before the window.
func (p *Pool[S]) IsBefore(t, now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return t < now-p.window
}

// Len is how many are held.
func (p *Pool[S]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byTime)
}

// closeAll gives snapshots back that were only read.
func closeAll(snapshots []kv.Snapshot) {
	for _, s := range snapshots {
		_ = s.Close()
	}
}
