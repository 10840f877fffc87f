package ownership

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// uniqueFloor knows of many keys of an index that they are new, without a look at the index: those that are larger than all
// that the index was given, but for the ones given lately, which are listed. Keys that ascend, as ObjectIds and counters do,
// are of that kind even when many clients send them in slightly other orders.
//
// Invariant: each key that was written since uniqueFloor first looked is listed or not above the floor, from before its commit
// can be seen. A transaction that fails leaves its keys listed; that costs a look.
type uniqueFloor struct {
	forgotten atomic.Bool // keys were written that it was not told of

	mu     sync.Mutex // guards all below
	looked bool
	off    bool   // a key was too long to be remembered: nothing is known
	floor  []byte // no key above it is there that is not listed
	seed   maphash.Seed
	// newest and newer list keys by their hashes; what is largest in newer becomes the floor when newest is full.
	newest, newer generation
}

type generation struct {
	hashes  map[uint64]struct{}
	largest []byte
}

// maxGeneration is how many keys a generation lists: many more than are on their way in at once one by one.
const maxGeneration = 512

// maxFloorKey bounds the keys that are remembered, of which each collection has a few.
const maxFloorKey = 1 << 10

// IsNew is Collection's.
func (n *uniqueFloor) IsNew(key []byte, in Index) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.forgotten.Swap(false) {
		n.looked, n.newest, n.newer = false, generation{}, generation{}
	}
	if !n.looked {
		floor, err := in.Largest()
		if err != nil {
			return false, err
		}
		n.looked, n.off = true, len(floor) > maxFloorKey
		if !n.off {
			n.floor, n.seed = floor, maphash.MakeSeed()
		}
	}
	if n.off = n.off || len(key) > maxFloorKey; n.off {
		n.floor, n.newest, n.newer = nil, generation{}, generation{}
		return false, nil
	}
	if bytes.Compare(key, n.floor) <= 0 {
		return false, nil
	}
	hash := maphash.Bytes(n.seed, key)
	if n.isListed(hash) {
		return false, nil
	}
	n.list(hash, key)
	return true, nil
}

func (n *uniqueFloor) isListed(hash uint64) bool { return n.newest.has(hash) || n.newer.has(hash) }

// TakesForNew says whether IsNew would take key for new, without a look, for tests.
func (n *uniqueFloor) TakesForNew(key []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.looked && !n.off && !n.forgotten.Load() && bytes.Compare(key, n.floor) > 0 && !n.isListed(maphash.Bytes(n.seed, key))
}

// forget has it look anew: keys were written elsewhere.
func (n *uniqueFloor) forget() { n.forgotten.Store(true) }

func (g *generation) has(hash uint64) bool {
	_, ok := g.hashes[hash]
	return ok
}

func (n *uniqueFloor) list(hash uint64, key []byte) {
	if len(n.newest.hashes) >= maxGeneration {
		if bytes.Compare(n.newer.largest, n.floor) > 0 {
			n.floor, n.newer.largest = n.newer.largest, n.floor
		}
		n.newest, n.newer = n.newer, n.newest
		clear(n.newest.hashes)
		n.newest.largest = n.newest.largest[:0]
	}
	g := &n.newest
	if g.hashes == nil {
		g.hashes = map[uint64]struct{}{}
	}
	g.hashes[hash] = struct{}{}
	if bytes.Compare(key, g.largest) > 0 {
		g.largest = append(g.largest[:0], key...)
	}
}
