package storage

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Who follows the oplog for the sake of a few collections is told of the commits that are about these, and of no others: a stream on
// a collection where nothing happens costs nothing, however much happens elsewhere. Each commit of entries raises the Last of those
// whom it concerns before its entries count as visible. So whoever reads Visible first and Last then, and finds no more in Last than
// he knows, knows all up to Visible.

// logWatches are those who follow the oplog.
type logWatches struct {
	open atomic.Int64
	// woken counts how often somebody was told.
	woken atomic.Int64
	mu    struct {
		sync.Mutex
		of map[namespace.NS]*logInterest
		// wake are those who wait for the commit that is being told of.
		wake []chan struct{}
	}
}

// logInterest is what several LogWatches of the same namespace share; the lock of logWatches guards it.
type logInterest struct {
	watches int
	last    oplog.Timestamp
	next    chan struct{} // closed by the next commit; nil as long as nobody has asked for it
}

// LogWatch follows the oplog for the sake of one namespace. Close it.
type LogWatch struct {
	store    *Store
	ns       namespace.NS
	interest *logInterest
}

// WatchLog follows what the oplog tells of a collection, of a database where ns has no Coll, of all where it has no DB either.
func (s *Store) WatchLog(ns namespace.NS) *LogWatch {
	w := &s.logWatches
	w.open.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	interest := w.mu.of[ns]
	if interest == nil {
		if w.mu.of == nil {
			w.mu.of = map[namespace.NS]*logInterest{}
		}
		// A commit that is ordered and did not find the interest is among what has to be read.
		interest = &logInterest{last: s.logClock.Last()}
		w.mu.of[ns] = interest
	}
	interest.watches++
	return &LogWatch{s, ns, interest}
}

// Close ends the watch; it may be called again.
func (l *LogWatch) Close() {
	if l.interest == nil {
		return
	}
	w := &l.store.logWatches
	w.mu.Lock()
	if l.interest.watches--; l.interest.watches == 0 {
		delete(w.mu.of, l.ns)
	}
	w.mu.Unlock()
	w.open.Add(-1)
	l.interest = nil
}

// Next is closed by the next commit that has an entry about the namespace. Who takes it before he looks misses nothing.
func (l *LogWatch) Next() <-chan struct{} {
	w := &l.store.logWatches
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.interest.next == nil {
		l.interest.next = make(chan struct{})
	}
	return l.interest.next
}

// Last is the timestamp of an entry behind which none is about the namespace, as far as Visible was before.
func (l *LogWatch) Last() oplog.Timestamp {
	w := &l.store.logWatches
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.interest.last
}

// Visible is the timestamp of the youngest entry that can be read.
func (l *LogWatch) Visible() oplog.Timestamp { return l.store.LastLogged() }

// LogWaits is about how many namespaces somebody waits for an entry, and how often those who wait for one were woken.
func (s *Store) LogWaits() (waiting int, woken int64) {
	w := &s.logWatches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, interest := range w.mu.of {
		if interest.next != nil {
			waiting++
		}
	}
	return waiting, w.woken.Load()
}

// tellWatches notes a commit of entries for those whom it concerns. What it returns is to be closed when the entries count as visible.
func (s *Store) tellWatches(m *meaning.Meaning) (wake []chan struct{}) {
	w := &s.logWatches
	if w.open.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer func() { wake, w.mu.wake = w.mu.wake, nil; w.mu.Unlock() }()
	current := s.current.Load()
	for _, change := range m.Changes {
		c := current.catalog.ByID(change.Collection)
		if c == nil && m.DDL != nil {
			c = m.DDL.Put(change.Collection)
		}
		switch {
		case c == nil: // of which nothing is known
			w.tellAll(m.Timestamp)
			return nil
		case c.NS.DB != catalog.LocalDB:
			w.tell(c.NS, m.Timestamp)
		}
	}
	if m.DDL == nil {
		return nil
	}
	for i := range m.DDL.Events {
		e := &m.DDL.Events[i]
		w.tell(e.NS, m.Timestamp)
		if e.Kind == meaning.CollectionRenamed {
			w.tell(e.To, m.Timestamp)
		}
	}
	return nil
}

// tell wakes those who follow the collection, its database, or all.
func (w *logWatches) tell(ns namespace.NS, at oplog.Timestamp) {
	w.wake(w.mu.of[ns], at)
	if ns.Coll != "" {
		w.wake(w.mu.of[namespace.NS{DB: ns.DB}], at)
	}
	w.wake(w.mu.of[namespace.NS{}], at)
}

func (w *logWatches) tellAll(at oplog.Timestamp) {
	for _, interest := range w.mu.of {
		w.wake(interest, at)
	}
}

func (w *logWatches) wake(interest *logInterest, at oplog.Timestamp) {
	if interest == nil || interest.last >= at {
		return
	}
	if interest.last = at; interest.next != nil {
		w.mu.wake = append(w.mu.wake, interest.next)
		interest.next = nil
		w.woken.Add(1)
	}
}
