package overlay

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/tidwall/btree"
)

// runs are many writes by what their keys begin with, in order. One who writes to several tables in turns, and to each in
// order, appends to each of several runs; a tree would have to find the place of every write.
type runs []run

// run is the writes whose keys begin alike: in ops, in order, until one comes that belongs far before the last; then all are in
// tree.
type run struct {
	begin uint64
	ops   []kv.Op
	tree  *btree.BTreeG[kv.Op] // or nil
}

const (
	// beginLength is how much of a key tells its run. It is what the keys of one table of Ebb have in common; any other length
	// would be right, too.
	beginLength = 5
	// maxRuns bounds the runs: with more there is one tree.
	maxRuns = 16
)

// beginOf is in the order of the keys, or the same.
func beginOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key) >> (8 * (8 - beginLength))
	}
	var room [8]byte
	copy(room[:beginLength], key)
	return binary.BigEndian.Uint64(room[:]) >> (8 * (8 - beginLength))
}

func newTree() *btree.BTreeG[kv.Op] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// find is where the run of a key is, or would be.
func (r runs) find(begin uint64) (place int, found bool) {
	return slices.BinarySearchFunc(r, begin, func(x run, begin uint64) int { return cmp.Compare(x.begin, begin) })
}

// set is false when there is no room for another run.
func (r *runs) set(op kv.Op) (old kv.Op, replaced, done bool) {
	begin := beginOf(op.Key)
	i, found := r.find(begin)
	if !found {
		if len(*r) == maxRuns {
			return kv.Op{}, false, false
		}
		*r = slices.Insert(*r, i, run{begin: begin})
	}
	old, replaced = (*r)[i].set(op)
	return old, replaced, true
}

func (r *run) set(op kv.Op) (old kv.Op, replaced bool) {
	if r.tree != nil {
		return r.tree.Set(op)
	}
	n := len(r.ops)
	if n == 0 || bytes.Compare(r.ops[n-1].Key, op.Key) < 0 {
		r.ops = append(r.ops, op)
		return kv.Op{}, false
	}
	i, found := searchOps(r.ops, op.Key)
	switch {
	case found:
		old, r.ops[i] = r.ops[i], op
		return old, true
	case n-i <= maxFew:
		r.ops = slices.Insert(r.ops, i, op)
		return kv.Op{}, false
	}
	r.tree = newTree()
	for _, o := range r.ops {
		r.tree.Load(o)
	}
	r.ops = nil
	return r.tree.Set(op)
}

func (r runs) lookup(key []byte) (kv.Op, bool) {
	i, found := r.find(beginOf(key))
	switch {
	case !found:
		return kv.Op{}, false
	case r[i].tree != nil:
		return r[i].tree.Get(kv.Op{Key: key})
	}
	place, found := searchOps(r[i].ops, key)
	if !found {
		return kv.Op{}, false
	}
	return r[i].ops[place], true
}

// from is the first write at or after key.
func (r runs) from(key []byte) (first kv.Op, found bool) {
	i, _ := r.find(beginOf(key))
	for ; i < len(r) && !found; i++ {
		first, found = r[i].from(key)
	}
	return first, found
}

func (r *run) from(key []byte) (first kv.Op, found bool) {
	if r.tree != nil {
		return firstFrom(r.tree, key)
	}
	i, _ := searchOps(r.ops, key)
	if i == len(r.ops) {
		return kv.Op{}, false
	}
	return r.ops[i], true
}

// each calls f for each in order.
func (r runs) each(f func(kv.Op)) {
	for _, x := range r {
		if x.tree != nil {
			x.tree.Scan(func(op kv.Op) bool { f(op); return true })
		}
		for _, op := range x.ops {
			f(op)
		}
	}
}

func (r runs) len() (n int) {
	for _, x := range r {
		if n += len(x.ops); x.tree != nil {
			n += x.tree.Len()
		}
	}
	return n
}

// searchOps is where key is, or would be, among some in order.
func searchOps(ops []kv.Op, key []byte) (place int, found bool) {
	return slices.BinarySearchFunc(ops, key, func(op kv.Op, key []byte) int { return bytes.Compare(op.Key, key) })
}

func firstFrom(tree *btree.BTreeG[kv.Op], key []byte) (first kv.Op, found bool) {
	tree.Ascend(kv.Op{Key: key}, func(op kv.Op) bool {
		first, found = op, true
		return false
	})
	return first, found
}
