package pebblekv

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// hot keeps values that were read or written lately, so that a key that is asked for is not searched in every level.
//
// A value is good for every reader that began when or after it was last changed, for as long as no commit has changed its
// key. A shard does not know when each key was changed last; the youngest change of any of its keys stands for all.
//
// The keys of a deleted range are not taken out one by one: the range is listed (ranges.go), and a value of a key within
// counts for nothing if it is older than the range.
//
// A shard is a log: values are added to its youngest chunk, and the oldest chunk goes when there is no room; of its values
// those that were asked for stay once more, up to half of them. What is written is kept as long as that drives out nothing
// but an older value of its key: much is written that nobody reads. The collector sees a few large pieces of memory without
// pointers.
//
// Invariants: a commit takes the keys it writes out, and lists the ranges it deletes, before any of its writes can be seen.
// A value enters by a reader only if no key of its shard was changed, and no range that has its key was deleted, since that
// reader began, so that what it has read is still the youngest. A value's since is no less than the sequence of the
// commit that wrote it, and that of each listed range that has its key and was deleted before it entered. A range leaves
// the list only after all older values of its keys. A key and a value in a chunk never change.
type hot struct {
	seed   maphash.Seed
	shards [hotShards]hotShard
	// ranges is replaced as a whole, by one commit at a time.
	ranges atomic.Pointer[ranges]
	// budget is how many bytes a shard may hold, and chunk how many go at once.
	budget, chunk int
}

const (
	hotShards = 64
	// hotHeader comes before key and value: 8 bytes hash, 8 since, 4 the key's length, 4 the value's, and 1 that is not 0 when
	// the value was asked for.
	hotHeader = 25
	// hotOverhead is about what an entry takes beside key and value.
	hotOverhead = hotHeader + 40
	// hotChunks is how many chunks a full shard has, about.
	hotChunks = 8
	// maxHotChunk bounds a chunk: the first costs that much in a store that keeps little.
	maxHotChunk = 256 << 10
	// maxHotValue is the largest value kept: a few large ones must not drive out all others.
	maxHotValue = 16 << 10
)

type hotShard struct {
	mu sync.Mutex // guards all below
	// changed is the sequence of the youngest commit that wrote, or is about to write, a key of this shard.
	changed uint64
	places  map[uint64]place // where each key is, by its hash; of two keys with one hash the later stays
	chunks  []hotChunk       // from old to young
	first   uint32           // the number of chunks[0]
	dead    int              // up to where chunks[0] is known to hold nothing that counts
	bytes   int
}

type hotChunk struct {
	data  []byte
	bytes int // with what the entries take elsewhere
}

// place is a chunk's number and an offset in it.
type place uint64

func (p place) chunk() uint32 { return uint32(p >> 32) }

// hotEntry is one value as it lies in a chunk.
type hotEntry []byte

func (e hotEntry) used() bool    { return e[hotHeader-1] != 0 }
func (e hotEntry) use()          { e[hotHeader-1] = 1 }
func (e hotEntry) hash() uint64  { return binary.LittleEndian.Uint64(e) }
func (e hotEntry) since() uint64 { return binary.LittleEndian.Uint64(e[8:]) }
func (e hotEntry) key() []byte   { return e[hotHeader:][:binary.LittleEndian.Uint32(e[16:])] }

func (e hotEntry) value() []byte {
	start := hotHeader + binary.LittleEndian.Uint32(e[16:])
	end := start + binary.LittleEndian.Uint32(e[20:])
	return e[start:end:end]
}

func (e hotEntry) length() int { return hotHeader + len(e.key()) + len(e.value()) }

func newHot(budget int64) *hot {
	h := &hot{seed: maphash.MakeSeed(), budget: int(budget / hotShards)}
	h.chunk = min(h.budget/hotChunks, maxHotChunk)
	return h
}

func (h *hot) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

func (h *hot) shard(hash uint64) *hotShard { return &h.shards[hash%hotShards] }

// get is the value of key for a reader that began at sequence at; ok is false when hot does not know it.
func (h *hot) get(hash uint64, key []byte, at uint64) (value []byte, ok bool) {
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	where, ok := s.places[hash]
	if !ok {
		return nil, false
	}
	e := s.entry(where)
	since := e.since()
	if since > at || !bytes.Equal(e.key(), key) {
		return nil, false
	}
	if h.deleted(key) > since {
		delete(s.places, hash)
		return nil, false
	}
	e.use()
	return e.value(), true
}

// offer hands in what a reader that began at sequence at has read. kept is a copy that stays as it is, if ok.
func (h *hot) offer(hash uint64, key, value []byte, at uint64) (kept []byte, ok bool) {
	if !h.takes(key, value) {
		return nil, false
	}
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	since := max(s.changed, h.deleted(key))
	if since > at {
		return nil, false
	}
	return h.put(s, hash, key, value, since), true
}

func (h *hot) takes(key, value []byte) bool {
	return len(value) <= maxHotValue && sizeOf(key, value) <= h.budget
}

// put adds a value, and lets old ones go where it must.
func (h *hot) put(s *hotShard, hash uint64, key, value []byte, since uint64) (kept []byte) {
	for s.bytes+sizeOf(key, value) > h.budget {
		s.evict(h.chunk)
	}
	return s.add(hash, key, value, since, h.chunk)
}

// sizeOf is about what an entry takes.
func sizeOf(key, value []byte) int { return len(key) + len(value) + hotOverhead }

// add adds a value; a new chunk is of the given size, or as large as it must be.
func (s *hotShard) add(hash uint64, key, value []byte, since uint64, chunk int) (kept []byte) {
	c := s.youngest(hotHeader+len(key)+len(value), chunk)
	start := len(c.data)
	c.data = binary.LittleEndian.AppendUint64(c.data, hash)
	c.data = binary.LittleEndian.AppendUint64(c.data, since)
	c.data = binary.LittleEndian.AppendUint32(c.data, uint32(len(key)))
	c.data = binary.LittleEndian.AppendUint32(c.data, uint32(len(value)))
	c.data = append(append(append(c.data, 0), key...), value...)
	c.bytes += sizeOf(key, value)
	s.bytes += sizeOf(key, value)
	if s.places == nil {
		s.places = map[uint64]place{}
	}
	s.places[hash] = place(s.first+uint32(len(s.chunks)-1))<<32 | place(start)
	return hotEntry(c.data[start:]).value()
}

// youngest is a chunk with room for so many bytes.
func (s *hotShard) youngest(n, size int) *hotChunk {
	last := len(s.chunks) - 1
	if last < 0 || cap(s.chunks[last].data)-len(s.chunks[last].data) < n {
		s.chunks = append(s.chunks, hotChunk{data: make([]byte, 0, max(n, size))})
		last++
	}
	return &s.chunks[last]
}

func (s *hotShard) entry(p place) hotEntry {
	return s.chunks[p.chunk()-s.first].data[uint32(p):]
}

// evict lets the oldest chunk go, but for what stays once more. The shard must have one.
func (s *hotShard) evict(chunk int) {
	oldest, number := s.pop()
	stays := oldest.bytes / 2
	for start := 0; start < len(oldest.data); {
		e := hotEntry(oldest.data[start:])
		if p, ok := s.places[e.hash()]; ok && p == place(number)<<32|place(start) {
			if size := sizeOf(e.key(), e.value()); e.used() && size <= stays {
				stays -= size
				s.add(e.hash(), e.key(), e.value(), e.since(), chunk)
			} else {
				delete(s.places, e.hash())
			}
		}
		start += e.length()
	}
}

// pop takes the oldest chunk out, and leaves its places.
func (s *hotShard) pop() (oldest hotChunk, number uint32) {
	oldest, number = s.chunks[0], s.first
	s.chunks[0] = hotChunk{}
	s.chunks = s.chunks[1:]
	s.first++
	s.dead = 0
	s.bytes -= oldest.bytes
	return oldest, number
}

// shrink gives the memory of the oldest chunks back in which nothing counts any more. What expires together was written
// together, as a rule.
func (s *hotShard) shrink(list ranges) {
	for len(s.chunks) > 1 {
		for data := s.chunks[0].data; s.dead < len(data); {
			e := hotEntry(data[s.dead:])
			if p, ok := s.places[e.hash()]; ok && p == place(s.first)<<32|place(s.dead) {
				if list.find(e.key()) <= e.since() {
					return
				}
				delete(s.places, e.hash())
			}
			s.dead += e.length()
		}
		s.pop()
	}
}

// change takes key out; the commit numbered sequence is about to write it.
func (h *hot) change(key []byte, sequence uint64) {
	hash := h.hash(key)
	s := h.shard(hash)
	s.mu.Lock()
	s.changed = sequence
	if len(s.places) > 0 {
		delete(s.places, hash)
	}
	s.mu.Unlock()
}

// write puts value in the place of what is kept of key, or where there is room; the commit numbered sequence is about to
// write it.
func (h *hot) write(key, value []byte, sequence uint64) {
	hash := h.hash(key)
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = sequence
	takes := h.takes(key, value)
	if takes && s.bytes+sizeOf(key, value) <= h.budget {
		h.put(s, hash, key, value, sequence) // without a look at what was there
		return
	}
	_, had := s.places[hash]
	delete(s.places, hash)
	if had && takes {
		h.put(s, hash, key, value, sequence)
	}
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
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.shrink(list)
		s.mu.Unlock()
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
		for hash, p := range s.places {
			if e := s.entry(p); list.find(e.key()) > e.since() {
				delete(s.places, hash)
			}
		}
		s.mu.Unlock()
	}
}
