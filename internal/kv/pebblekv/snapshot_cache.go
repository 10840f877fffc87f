package pebblekv

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// view is one Pebble snapshot and the committer's sequence before it was taken: it has every commit up to there.
type view struct {
	s    *pebble.Snapshot
	at   uint64
	refs atomic.Int32
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
}

// acquire returns a view of all that is committed. The caller releases it.
func (l *snapshotCache) acquire(db *pebble.DB, sequence *atomic.Uint64) *view {
	now := sequence.Load()
	l.mu.Lock()
	if v := l.view; v != nil && v.at >= now {
		v.refs.Add(1)
		l.mu.Unlock()
		return v
	}
	l.mu.Unlock()
	v := &view{at: now, s: db.NewSnapshot()}
	v.refs.Store(1)
	l.keep(v, sequence)
	return v
}

// keep makes v the view that is shared, unless something was committed meanwhile.
func (l *snapshotCache) keep(v *view, sequence *atomic.Uint64) {
	l.mu.Lock()
	old := l.view
	if sequence.Load() != v.at || old != nil && old.at >= v.at {
		l.mu.Unlock()
		return
	}
	v.refs.Add(1)
	l.view = v
	l.mu.Unlock()
	if old != nil {
		old.release()
	}
}

// forget lets go of the shared view: a commit has become visible that it does not have.
func (l *snapshotCache) forget() {
	l.mu.Lock()
	old := l.view
	l.view = nil
	l.mu.Unlock()
	if old != nil {
		old.release()
	}
}
