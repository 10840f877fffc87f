package pebblekv

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// hot keeps values that were read lately, so that a key that many ask for is not searched in every level each time.
//
// A value is good for every reader that began when or after it was last changed, for as long as no commit has changed its
// key. A shard does not know when each key was changed last; the youngest change of any of its keys stands for all.
//
// The keys of a deleted range are not taken out one by one: the range is listed (ranges.go), and a value of a key within
// counts for nothing if it is older than the range.
//
// Invariants: a commit takes the keys it writes out, and lists the ranges it deletes, before any of its writes can be seen.
// A value enters only if no key of its shard was changed, and no range that has its key was deleted, since the reader that
// brings it began, so that what it has read is still the youngest. A value's since is no less than the sequence of the
// commit that wrote it, and that of each listed range that has its key and was deleted before it entered. A range leaves
// the list only after all older values of its keys.
type hot struct {
	seed   maphash.Seed
	shards [hotShards]hotShard
	// ranges is replaced as a whole, by one commit at a time.
	ranges atomic.Pointer[ranges]
	// budget is how many bytes a shard may hold.
	budget int
}

const (
	hotShards = 64
	// hotOverhead is about what an entry takes beside key and value.
	hotOverhead = 120
	// maxHotValue is the largest value kept: a few large ones must not drive out all others.
	maxHotValue = 16 << 10
)

type hotShard struct {
	mu sync.Mutex // guards all below
	// changed is the sequence of the youngest commit that wrote, or is about to write, a key of this shard.
	changed uint64
	byHash  map[uint64]int32 // the slot of each key; of two keys with one hash the later stays
	slots   []hotValue
	free    []int32
	hand    int
	bytes   int
}

// hotValue is one slot, free when both is nil.
type hotValue struct {
	both  []byte // key and value
	key   int    // the length of the key
	hash  uint64
	since uint64
	used  bool
}

func newHot(budget int64) *hot {
	return &hot{seed: maphash.MakeSeed(), budget: int(budget / hotShards)}
}

func (h *hot) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

func (h *hot) shard(hash uint64) *hotShard { return &h.shards[hash%hotShards] }

// get is the value of key for a reader that began at sequence at; ok is false when hot does not know it.
func (h *hot) get(hash uint64, key []byte, at uint64) (value []byte, ok bool) {
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byHash[hash]
	if !ok {
		return nil, false
	}
	v := &s.slots[i]
	if v.since > at || !bytes.Equal(v.both[:v.key], key) {
		return nil, false
	}
	if h.deleted(key) > v.since {
		s.drop(hash)
		return nil, false
	}
	v.used = true
	return v.both[v.key:], true
}

// offer hands in what a reader that began at sequence at has read: both is the key, of the given length, and its value.
func (h *hot) offer(hash uint64, both []byte, key int, at uint64) {
	size := len(both) + hotOverhead
	if len(both)-key > maxHotValue || size > h.budget {
		return
	}
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	since := max(s.changed, h.deleted(both[:key]))
	if since > at {
		return
	}
	s.drop(hash)
	for s.bytes+size > h.budget {
		s.evict()
	}
	s.put(hotValue{both: both, key: key, hash: hash, since: since})
}

func (s *hotShard) put(v hotValue) {
	if s.byHash == nil {
		s.byHash = map[uint64]int32{}
	}
	s.bytes += len(v.both) + hotOverhead
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[i], s.byHash[v.hash] = v, i
		return
	}
	s.byHash[v.hash] = int32(len(s.slots))
	s.slots = append(s.slots, v)
}

func (s *hotShard) drop(hash uint64) {
	i, ok := s.byHash[hash]
	if !ok {
		return
	}
	delete(s.byHash, hash)
	s.bytes -= len(s.slots[i].both) + hotOverhead
	s.slots[i] = hotValue{}
	s.free = append(s.free, i)
}

// evict lets the next value go that was not used since the hand passed it. The shard must hold one.
func (s *hotShard) evict() {
	for {
		if s.hand++; s.hand >= len(s.slots) {
			s.hand = 0
		}
		switch v := &s.slots[s.hand]; {
		case v.both == nil:
		case v.used:
			v.used = false
		default:
			s.drop(v.hash)
			return
		}
	}
}

// change takes key out; the commit numbered sequence is about to write it.
func (h *hot) change(key []byte, sequence uint64) {
	hash := h.hash(key)
	s := h.shard(hash)
	s.mu.Lock()
	s.changed = sequence
	if len(s.byHash) > 0 {
		s.drop(hash)
	}
	s.mu.Unlock()
}

// changeRange lists r; the commit numbered sequence is about to delete it. One commit at a time does this.
func (h *hot) changeRange(r overlay.Range, sequence uint64) {
	list := h.listed().with(r, sequence)
	full := len(list) > maxRanges
	if full {
		list = list.closed()
	}
	h.ranges.Store(&list)
	if full && len(list) > maxRanges/2 { // else it would be full again soon
		h.settle(list, sequence)
		h.ranges.Store(nil)
	}
}

func (h *hot) listed() ranges {
	if list := h.ranges.Load(); list != nil {
		return *list
	}
	return nil
}

// deleted is the sequence of the listed range that has key; 0 if none has.
func (h *hot) deleted(key []byte) uint64 { return h.listed().find(key) }

// settle takes out every value that list makes count for nothing, and lets none in that readers from before sequence bring.
func (h *hot) settle(list ranges, sequence uint64) {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.changed = sequence
		for _, v := range s.slots {
			if v.both != nil && list.find(v.both[:v.key]) > v.since {
				s.drop(v.hash)
			}
		}
		s.mu.Unlock()
	}
}
