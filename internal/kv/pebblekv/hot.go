package pebblekv

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// hot keeps values that were read lately, so that a key that many ask for is not searched in every level each time.
//
// A value is good for every reader that began when or after it was last changed, for as long as no commit has changed its
// key. A shard does not know when each key was changed last; the youngest change of any of its keys stands for all.
//
// Invariants: a commit takes the keys it writes out before any of its writes can be seen. A value enters only if no key of
// its shard was changed since the reader that brings it began, so that what it has read is still the youngest. A value's
// since is no less than the sequence of the commit that wrote it.
type hot struct {
	seed   maphash.Seed
	shards [hotShards]hotShard
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
	if s.changed > at {
		return
	}
	s.drop(hash)
	for s.bytes+size > h.budget {
		s.evict()
	}
	s.put(hotValue{both: both, key: key, hash: hash, since: s.changed})
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

// changeAll empties all; the commit numbered sequence is about to write keys that nobody has listed.
func (h *hot) changeAll(sequence uint64) {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.changed = sequence
		s.byHash, s.slots, s.free, s.hand, s.bytes = nil, nil, nil, 0, 0
		s.mu.Unlock()
	}
}
