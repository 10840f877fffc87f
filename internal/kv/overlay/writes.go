// Package overlay holds the writes of one transaction and lays them over a snapshot, for any engine. It does not know
// how the snapshot reads, how conflicts are found or how a commit becomes durable.
package overlay

import (
	"bytes"
	"slices"

	"github.com/tidwall/btree"

	"github.com/ebbdb/ebb/internal/kv"
)

var _ kv.Writes = (*Writes)(nil)

// Writes are what a transaction has done so far. It is used by one goroutine at a time.
//
// A few writes are kept as a list in order, and many for as long as each comes behind the last: most transactions write no
// more and walk nothing. When they become many otherwise, they go to runs, a list for each table. They go to a tree when they
// are walked, or are of very many tables. Iterators walk the tree itself. The first write while one is open sets the tree aside
// for them and goes on with a copy (which shares all nodes until they are written), so an iterator never sees a write that is
// younger than itself and a transaction that closes its iterators before it writes never copies.
type Writes struct {
	few      []kv.Op
	runs     runs                 // nil as long as all are in few
	tree     *btree.BTreeG[kv.Op] // nil as long as all are in few or in runs
	walkers  int                  // open iterators over tree
	ranges   []kv.Range
	claims   [][]byte
	counters []kv.Count // in order
	keys     []byte     // the chunk from which copies of keys are cut
	size     int
	room     room
}

// room is for what a transaction on one document writes, so that it is one piece of memory.
type room struct {
	few      [firstFew]kv.Op
	claims   [firstFew][]byte
	counters [firstFew]kv.Count
	keys     [firstKeyChunk]byte
}

// What a write takes beside its bytes: the tree's item, about.
const (
	opOverhead      = 64
	rangeOverhead   = 48
	claimOverhead   = 24
	counterOverhead = 48
)

// maxFew bounds the list where it does not grow at its end; its first room is for the record and the entries of one document.
const maxFew, firstFew = 32, 4

const (
	firstKeyChunk = 256
	lastKeyChunk  = 64 << 10
)

func less(a, b kv.Op) bool { return bytes.Compare(a.Key, b.Key) < 0 }

// Set sets value at key; both are copied.
func (w *Writes) Set(key, value []byte) {
	w.put(kv.Op{Key: w.copyKey(key), Value: append(make([]byte, 0, len(value)), value...)})
}

// SetCached is Set for what is likely read by its key soon.
func (w *Writes) SetCached(key, value []byte) {
	w.put(kv.Op{Key: w.copyKey(key), Value: append(make([]byte, 0, len(value)), value...), Cached: true})
}

// Delete removes key.
func (w *Writes) Delete(key []byte) { w.put(kv.Op{Key: w.copyKey(key), Delete: true}) }

// DeleteRange notes the removal of [start, end), which comes before all other writes and which no look-up shows.
func (w *Writes) DeleteRange(start, end []byte) {
	if bytes.Compare(start, end) >= 0 {
		return
	}
	w.ranges = append(w.ranges, kv.Range{Start: w.copyKey(start), End: w.copyKey(end)})
	w.size += len(start) + len(end) + rangeOverhead
}

// Claim notes a claim of key.
func (w *Writes) Claim(key []byte) {
	if w.claims == nil {
		w.claims = w.room.claims[:0]
	}
	w.claims = append(w.claims, w.copyKey(key))
	w.size += len(key) + claimOverhead
}

// Add adds delta to the counter at key.
func (w *Writes) Add(key []byte, delta int64) {
	i, found := w.counter(key)
	if found {
		w.counters[i].Delta += delta
		return
	}
	if w.counters == nil {
		w.counters = w.room.counters[:0]
	}
	w.counters = slices.Insert(w.counters, i, kv.Count{Key: w.copyKey(key), Delta: delta})
	w.size += len(key) + counterOverhead
}

func (w *Writes) counter(key []byte) (place int, found bool) {
	return slices.BinarySearchFunc(w.counters, key, func(c kv.Count, key []byte) int { return bytes.Compare(c.Key, key) })
}

// Added is what was added to the counter at key.
func (w *Writes) Added(key []byte) int64 {
	if i, found := w.counter(key); found {
		return w.counters[i].Delta
	}
	return 0
}

// Size is about how many bytes the writes take in memory.
func (w *Writes) Size() int { return w.size }

// Len is the number of keys set or deleted.
func (w *Writes) Len() int {
	if w.tree == nil {
		return len(w.few) + w.runs.len()
	}
	return w.tree.Len()
}

// Lookup finds the last write of key.
func (w *Writes) Lookup(key []byte) (kv.Op, bool) {
	if w.tree != nil {
		return w.tree.Get(kv.Op{Key: key})
	}
	if w.runs != nil {
		return w.runs.lookup(key)
	}
	i, found := searchOps(w.few, key)
	if !found {
		return kv.Op{}, false
	}
	return w.few[i], true
}

// Wrote is kv.Txn's.
func (w *Writes) Wrote(key []byte) bool {
	if w.Len() == 0 {
		return false
	}
	_, written := w.Lookup(key)
	return written
}

// Each calls f for every written key in order.
func (w *Writes) Each(f func(kv.Op)) {
	if w.tree != nil {
		w.tree.Scan(func(op kv.Op) bool { f(op); return true })
		return
	}
	for _, op := range w.few {
		f(op)
	}
	w.runs.each(f)
}

// Ranges are the ranges deleted, in the order of deleting.
func (w *Writes) Ranges() []kv.Range { return w.ranges }

// Claims are the claimed keys, in the order of claiming.
func (w *Writes) Claims() [][]byte { return w.claims }

// Counters are the sums added, in the order of their keys.
func (w *Writes) Counters() []kv.Count { return w.counters }

// plant puts all into a tree.
func (w *Writes) plant() {
	if w.tree != nil {
		return
	}
	tree := newTree()
	w.Each(func(op kv.Op) { tree.Load(op) })
	w.few, w.runs, w.tree = nil, nil, tree
}

func (w *Writes) put(op kv.Op) {
	old, replaced := w.set(op)
	w.size += len(op.Key) + len(op.Value) + opOverhead
	if replaced {
		w.size -= len(old.Key) + len(old.Value) + opOverhead
	}
}

func (w *Writes) set(op kv.Op) (old kv.Op, replaced bool) {
	if w.tree == nil && w.runs == nil {
		i, found := searchOps(w.few, op.Key)
		switch {
		case found:
			old, w.few[i] = w.few[i], op
			return old, true
		case len(w.few) < maxFew || i == len(w.few):
			if w.few == nil {
				w.few = w.room.few[:0]
			}
			w.few = slices.Insert(w.few, i, op)
			return kv.Op{}, false
		}
		w.part()
	}
	if w.tree == nil {
		if old, replaced, done := w.runs.set(op); done {
			return old, replaced
		}
		w.plant()
	}
	if w.walkers > 0 {
		w.tree, w.walkers = w.tree.Copy(), 0
	}
	return w.tree.Set(op)
}

// part puts the few into runs, or into a tree.
func (w *Writes) part() {
	parts := make(runs, 0, maxRuns)
	for _, op := range w.few {
		if _, _, done := parts.set(op); !done {
			w.plant()
			return
		}
	}
	w.few, w.runs = nil, parts
}

// copyKey cuts the copy from a chunk: keys are many and small. Values are copied one by one, so that one that is
// overwritten again and again is freed again and again.
func (w *Writes) copyKey(key []byte) []byte {
	switch {
	case len(key) <= cap(w.keys)-len(w.keys):
	case w.keys == nil && len(key) <= firstKeyChunk:
		w.keys = w.room.keys[:0]
	default:
		chunk := min(max(2*cap(w.keys), firstKeyChunk), lastKeyChunk)
		w.keys = make([]byte, 0, max(chunk, len(key)))
	}
	start := len(w.keys)
	w.keys = append(w.keys, key...)
	return w.keys[start:len(w.keys):len(w.keys)]
}
