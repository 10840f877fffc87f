// Package overlay holds the writes of one transaction and lays them over a snapshot, for any engine. It does not know
// how the snapshot reads, how conflicts are found or how a commit becomes durable.
package overlay

import (
	"bytes"

	"github.com/tidwall/btree"
)

// Op is one write: Value was set at Key, or Key was deleted.
type Op struct {
	Key, Value []byte
	Delete     bool
}

// Range is all keys from Start up to, and without, End.
type Range struct{ Start, End []byte }

// Contains says whether key lies in r.
func (r Range) Contains(key []byte) bool {
	return bytes.Compare(r.Start, key) <= 0 && bytes.Compare(key, r.End) < 0
}

// Writes are what a transaction has done so far. It is used by one goroutine at a time.
//
// Iterators walk the tree itself. The first write while one is open sets the tree aside for them and goes on with a copy
// (which shares all nodes until they are written), so an iterator never sees a write that is younger than itself and a
// transaction that closes its iterators before it writes never copies.
type Writes struct {
	tree     *btree.BTreeG[Op]
	walkers  int // open iterators over tree
	ranges   []Range
	claims   [][]byte
	counters map[string]int64
	keys     []byte // the chunk from which copies of keys are cut
	size     int
}

// What a write takes beside its bytes: the tree's item, about.
const (
	opOverhead      = 64
	rangeOverhead   = 48
	claimOverhead   = 24
	counterOverhead = 48
)

const (
	firstKeyChunk = 512
	lastKeyChunk  = 64 << 10
)

func less(a, b Op) bool { return bytes.Compare(a.Key, b.Key) < 0 }

// Set sets value at key; both are copied.
func (w *Writes) Set(key, value []byte) {
	w.put(Op{Key: w.copyKey(key), Value: append(make([]byte, 0, len(value)), value...)})
}

// Delete removes key.
func (w *Writes) Delete(key []byte) { w.put(Op{Key: w.copyKey(key), Delete: true}) }

// DeleteRange notes the removal of [start, end), which comes before all other writes and which no look-up shows.
func (w *Writes) DeleteRange(start, end []byte) {
	if bytes.Compare(start, end) >= 0 {
		return
	}
	w.ranges = append(w.ranges, Range{w.copyKey(start), w.copyKey(end)})
	w.size += len(start) + len(end) + rangeOverhead
}

// Claim notes a claim of key.
func (w *Writes) Claim(key []byte) {
	w.claims = append(w.claims, w.copyKey(key))
	w.size += len(key) + claimOverhead
}

// Add adds delta to the counter at key.
func (w *Writes) Add(key []byte, delta int64) {
	if w.counters == nil {
		w.counters = map[string]int64{}
	}
	before := len(w.counters)
	w.counters[string(key)] += delta
	if len(w.counters) > before {
		w.size += len(key) + counterOverhead
	}
}

// Size is about how many bytes the writes take in memory.
func (w *Writes) Size() int { return w.size }

// Len is the number of keys set or deleted.
func (w *Writes) Len() int {
	if w.tree == nil {
		return 0
	}
	return w.tree.Len()
}

// Lookup finds the last write of key.
func (w *Writes) Lookup(key []byte) (Op, bool) {
	if w.tree == nil {
		return Op{}, false
	}
	return w.tree.Get(Op{Key: key})
}

// Each calls f for every written key in order.
func (w *Writes) Each(f func(Op)) {
	if w.tree == nil {
		return
	}
	w.tree.Scan(func(op Op) bool { f(op); return true })
}

// Ranges are the ranges deleted, in the order of deleting.
func (w *Writes) Ranges() []Range { return w.ranges }

// Claims are the claimed keys, in the order of claiming.
func (w *Writes) Claims() [][]byte { return w.claims }

// Counters are the sums added, by counter key.
func (w *Writes) Counters() map[string]int64 { return w.counters }

func (w *Writes) put(op Op) {
	switch {
	case w.tree == nil:
		w.tree = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	case w.walkers > 0:
		w.tree, w.walkers = w.tree.Copy(), 0
	}
	old, replaced := w.tree.Set(op)
	w.size += len(op.Key) + len(op.Value) + opOverhead
	if replaced {
		w.size -= len(old.Key) + len(old.Value) + opOverhead
	}
}

// copyKey cuts the copy from a chunk: keys are many and small. Values are copied one by one, so that one that is
// overwritten again and again is freed again and again.
func (w *Writes) copyKey(key []byte) []byte {
	if len(key) > cap(w.keys)-len(w.keys) {
		chunk := min(max(2*cap(w.keys), firstKeyChunk), lastKeyChunk)
		w.keys = make([]byte, 0, max(chunk, len(key)))
	}
	start := len(w.keys)
	w.keys = append(w.keys, key...)
	return w.keys[start:len(w.keys):len(w.keys)]
}
