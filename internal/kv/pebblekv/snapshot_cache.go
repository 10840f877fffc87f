package pebblekv

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// view is one Pebble snapshot and the committer's sequence before it was taken: it has every commit up to there.
type view struct {
	s      *pebble.Snapshot
	at     uint64
	refs   atomic.Int32
	spares spares
}

// release gives one reference back; the last one closes the snapshot.
func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		must(v.s.Close())
	}
}

// snapshotCache shares one Pebble snapshot among readers for as long as nothing is committed: making and closing one takes
// Pebble's own mutex, and looks for compactions. It is let go of at the next commit, because an open snapshot keeps
// what is deleted later from being reclaimed.
type snapshotCache struct {
	mu   sync.Mutex // guards view; it is never held while Pebble's mutex is asked for
	view *view      // nil, or one reference
	// spared is told when the view that is shared keeps an iterator, while it kept none.
	spared chan struct{}
}

// maxAcquireTries bounds how often acquire takes another snapshot because something was committed meanwhile.
const maxAcquireTries = 100

// acquire returns a view of all that is committed. The caller releases it.
//
// A snapshot that is taken while a commit is applied may have it, or not. Two that are taken then may differ, and who reads twice
// must not get the older one second: so all who come before the commit counts get the same one, the first that is shared.
func (l *snapshotCache) acquire(db *pebble.DB, sequence *atomic.Uint64) *view {
	for try := 1; ; try++ {
		now := sequence.Load()
		if v := l.shared(now); v != nil {
			return v
		}
		v := &view{at: now, s: db.NewSnapshot()}
		v.refs.Store(1)
		if l.keep(v, sequence) || try == maxAcquireTries {
			return v
		}
		v.release()
	}
}

// shared is the view that is shared, if it has all up to now; nil otherwise.
func (l *snapshotCache) shared(now uint64) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.view
	if v == nil || v.at < now {
		return nil
	}
	v.refs.Add(1)
	return v
}

// keep makes v the view that is shared. It does not where one is that is as new, or something was committed meanwhile.
func (l *snapshotCache) keep(v *view, sequence *atomic.Uint64) bool {
	l.mu.Lock()
	old := l.view
	if sequence.Load() != v.at || old != nil && old.at >= v.at {
		l.mu.Unlock()
		return false
	}
	v.refs.Add(1)
	v.spares.begin(l.spared)
	l.view = v
	l.mu.Unlock()
	l.letGo(old)
	return true
}

// forget lets go of the shared view: a commit has become visible that it does not have.
func (l *snapshotCache) forget() {
	l.mu.Lock()
	old := l.view
	l.view = nil
	l.mu.Unlock()
	l.letGo(old)
}

// letGo ends the sharing of a view; nil is none.
func (l *snapshotCache) letGo(v *view) {
	if v != nil {
		v.spares.end()
		v.release()
	}
}

// closeSpares closes the iterators that the shared view keeps.
func (l *snapshotCache) closeSpares() {
	l.mu.Lock()
	v := l.view
	if v != nil {
		v.refs.Add(1)
	}
	l.mu.Unlock()
	if v != nil {
		closeSpares(v.spares.drain(false))
		v.release()
	}
}
