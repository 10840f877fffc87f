// Package logwatch tells those who follow the oplog for the sake of a few collections of the commits that are about these, and of no
// others: a stream on a collection where nothing happens costs nothing, however much happens elsewhere. It does not read the oplog.
//
// Each commit of entries raises the Last of those whom it concerns before its entries count as visible. So whoever reads Visible first
// and Last then, and finds no more in Last than he knows, knows all up to Visible.
package logwatch

import (
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Watches are those who follow the oplog. Use New.
type Watches struct {
	clock *oplog.Clock
	open  atomic.Int64
	// woken counts how often somebody was told.
	woken atomic.Int64
	mu    struct {
		sync.Mutex
		of map[namespace.NS]*interest
		// wake are those who wait for the commit that is being told of.
		wake []chan struct{}
	}
}

// New is for an oplog whose timestamps clock gives out and shows.
func New(clock *oplog.Clock) *Watches {
	w := &Watches{clock: clock}
	w.mu.of = map[namespace.NS]*interest{}
	return w
}

// interest is what several Watches of the same namespace share; the lock of all of them guards it.
type interest struct {
	watches int
	last    oplog.Timestamp
	next    chan struct{} // closed by the next commit; nil as long as nobody has asked for it
}

// Watch follows the oplog for the sake of one namespace. Close it.
type Watch struct {
	all      *Watches
	ns       namespace.NS
	interest *interest
}

// Watch follows what the oplog tells of a collection, of a database where ns has no Coll, of all where it has no DB either.
func (w *Watches) Watch(ns namespace.NS) *Watch {
	w.open.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	shared := w.mu.of[ns]
	if shared == nil {
		// A commit that is ordered and did not find the interest is among what has to be read.
		shared = &interest{last: w.clock.Last()}
		w.mu.of[ns] = shared
	}
	shared.watches++
	return &Watch{w, ns, shared}
}

// Close ends the watch; it may be called again.
func (l *Watch) Close() {
	if l.interest == nil {
		return
	}
	w := l.all
	w.mu.Lock()
	if l.interest.watches--; l.interest.watches == 0 {
		delete(w.mu.of, l.ns)
	}
	w.mu.Unlock()
	w.open.Add(-1)
	l.interest = nil
}

// Next is closed by the next commit that has an entry about the namespace. Who takes it before he looks misses nothing.
func (l *Watch) Next() <-chan struct{} {
	w := l.all
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.interest.next == nil {
		l.interest.next = make(chan struct{})
	}
	return l.interest.next
}

// Last is the timestamp of an entry behind which none is about the namespace, as far as Visible was before.
func (l *Watch) Last() oplog.Timestamp {
	w := l.all
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.interest.last
}

// Visible is the timestamp of the youngest entry that can be read.
func (l *Watch) Visible() oplog.Timestamp { return l.all.clock.Visible() }

// Open is how many follow.
func (w *Watches) Open() int64 { return w.open.Load() }

// Waits is about how many namespaces somebody waits for an entry, and how often those who wait for one were woken.
func (w *Watches) Waits() (waiting int, woken int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, interest := range w.mu.of {
		if interest.next != nil {
			waiting++
		}
	}
	return waiting, w.woken.Load()
}

// Tell notes a commit of entries, made when the catalogue was the current one, for those whom it concerns. What it returns is to be
// closed when the entries count as visible.
func (w *Watches) Tell(m *meaning.Meaning, current *catalog.Catalog) (wake []chan struct{}) {
	if w.open.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer func() { wake, w.mu.wake = w.mu.wake, nil; w.mu.Unlock() }()
	for _, change := range m.Changes {
		c := current.ByID(change.Collection)
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
func (w *Watches) tell(ns namespace.NS, at oplog.Timestamp) {
	w.wake(w.mu.of[ns], at)
	if ns.Coll != "" {
		w.wake(w.mu.of[namespace.NS{DB: ns.DB}], at)
	}
	w.wake(w.mu.of[namespace.NS{}], at)
}

func (w *Watches) tellAll(at oplog.Timestamp) {
	for _, interest := range w.mu.of {
		w.wake(interest, at)
	}
}

// wake raises what was told last, unless that is later: it may be of an entry that was ordered and not told of yet, or never will be, since
// the member that ordered it lost its lead. Who waits is woken nonetheless.
func (w *Watches) wake(of *interest, at oplog.Timestamp) {
	if of == nil {
		return
	}
	if of.last = max(of.last, at); of.next != nil {
		w.mu.wake = append(w.mu.wake, of.next)
		of.next = nil
		w.woken.Add(1)
	}
}
