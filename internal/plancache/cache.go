package plancache

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
)

const (
	// MaxEntries is how many plans a collection's cache holds.
	MaxEntries = 5000
	// maxDebugBytes is how large the entries' descriptions of a collection may be together. Entries beyond do without.
	maxDebugBytes = 16 << 20
	// evictionRatio is how many times its works an active entry's plan may take before it counts as wrong.
	evictionRatio = 10
	// growth is by what an inactive entry's works grow when a race has needed more.
	growth = 2
)

// Won is the outcome of a race.
type Won struct {
	// Solution is the planner's own, from which it makes the plan again with other constants.
	Solution any
	// Works is what the winner took in the race.
	Works int64
	// FilterSet says that an index filter held for it.
	FilterSet bool
	// Description is for people only.
	Description
}

// Description is what $planCacheStats tells of an entry besides its figures.
type Description struct {
	// Query is {query, sort, projection} and, where there is one, collation, of the operation that raced.
	Query bson.Doc
	// Plan is the winner as explain prints it; Stats are the racers' stages with their counters, and Scores what they got,
	// the winner first.
	Plan   bson.Doc
	Stats  []bson.Doc
	Scores []float64
}

func (d Description) bytes() int {
	n := len(d.Query) + len(d.Plan) + 8*len(d.Scores)
	for _, s := range d.Stats {
		n += len(s)
	}
	return n
}

// Entry is a remembered plan. It is not changed: a change makes another one.
type Entry struct {
	Key
	Won
	Active bool
	// Created is in milliseconds since the epoch.
	Created int64

	definition *catalog.Collection
}

// MaxWorks is after how many works without a batch the plan is to be given up.
func (e *Entry) MaxWorks() int64 { return evictionRatio * max(e.Works, 1) }

// entryBytes is roughly what an entry takes besides its description and solution.
const entryBytes = 512

// Bytes is roughly the entry's size.
func (e *Entry) Bytes() int64 { return int64(entryBytes + e.bytes()) }

// Described says whether the entry has kept its description.
func (e *Entry) Described() bool { return e.Query != nil }

// Cache is what is remembered of one collection.
type Cache struct {
	filtered atomic.Int32 // number of index filters, to be asked without the lock
	mu       struct {
		sync.Mutex                            // guards all below
		entries    map[[16]byte]*list.Element // of *Entry
		used       list.List                  // the last used first
		debugBytes int
		filters    []Filter
	}
}

// Get is the entry of k as it was put under this definition of the collection, active or not; nil when there is none.
func (c *Cache) Get(k Key, definition *catalog.Collection) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.mu.entries[k.whole.id]
	if at == nil || at.Value.(*Entry).definition != definition {
		return nil
	}
	c.mu.used.MoveToFront(at)
	return at.Value.(*Entry)
}

// Put tells of a race. now is in milliseconds since the epoch.
func (c *Cache) Put(k Key, definition *catalog.Collection, w Won, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &Entry{Key: k, Won: w, Created: now, definition: definition}
	if at := c.mu.entries[k.whole.id]; at != nil {
		if old := at.Value.(*Entry); old.definition == definition {
			next = old.after(next)
		}
	}
	c.put(next)
}

// after is the entry that follows e when a race has given next.
func (e *Entry) after(next *Entry) *Entry {
	switch {
	case next.Works <= e.Works && !e.Active || next.Works < e.Works:
		next.Active = true
		return next
	case e.Active:
		return e
	}
	grown := *e
	grown.Works = max(e.Works*growth, e.Works+1)
	return &grown
}

// Deactivate has the plan of k raced for again; e is the entry whose plan took too long.
func (c *Cache) Deactivate(e *Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.mu.entries[e.whole.id]; at != nil && at.Value.(*Entry) == e {
		idle := *e
		idle.Active = false
		at.Value = &idle
	}
}

// put replaces or adds an entry. The caller holds the lock.
func (c *Cache) put(e *Entry) {
	c.remove(c.mu.entries[e.whole.id])
	if e.bytes() > maxDebugBytes-c.mu.debugBytes {
		bare := *e
		bare.Description = Description{Plan: e.Plan}
		e = &bare
	}
	if c.mu.entries == nil {
		c.mu.entries = map[[16]byte]*list.Element{}
	}
	c.mu.debugBytes += e.bytes()
	c.mu.entries[e.whole.id] = c.mu.used.PushFront(e)
	for c.mu.used.Len() > MaxEntries {
		c.remove(c.mu.used.Back())
	}
}

// remove takes an entry out, when there is one. The caller holds the lock.
func (c *Cache) remove(at *list.Element) {
	if at == nil {
		return
	}
	e := c.mu.used.Remove(at).(*Entry)
	c.mu.debugBytes -= e.bytes()
	delete(c.mu.entries, e.whole.id)
}

// Entries are all entries, the last used first.
func (c *Cache) Entries() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Entry, 0, c.mu.used.Len())
	for at := c.mu.used.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*Entry))
	}
	return all
}

// Clear forgets all plans; the index filters stay.
func (c *Cache) Clear() { c.removeIf(func(*Entry) bool { return true }) }

// ClearShape forgets the plans of the operations that a command calls s.
func (c *Cache) ClearShape(s Shape) { c.removeIf(func(e *Entry) bool { return e.Command == s }) }

func (c *Cache) removeIf(match func(*Entry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := c.mu.used.Front(); at != nil; {
		next := at.Next()
		if match(at.Value.(*Entry)) {
			c.remove(at)
		}
		at = next
	}
}
