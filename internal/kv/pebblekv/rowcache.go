package pebblekv

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/overlay"
)

// rowCache keeps values that were read or written lately, so that a key that is asked for is not searched in every level.
//
// A value is good for every reader that began when or after it was last changed, for as long as no commit has changed its
// key. A shard does not know when each key was changed last; the youngest change of any of its keys stands for all.
//
// The keys of a deleted range are not taken out one by one: the range is listed (ranges.go), and a value of a key within
// counts for nothing if it is older than the range.
//
// What is written is kept as long as that drives out nothing but an older value of its key: much is written that nobody
// reads.
//
// Readers take no lock. One that looks at the list of ranges, then at a shard, may see either as it was at any time since it
// began: what was changed meanwhile it does not see in its view either.
//
// Invariants: a commit takes the keys it writes out, and lists the ranges it deletes, before any of its writes can be seen.
// A value enters by a reader only if no key of its shard was changed, and no range that has its key was deleted, since that
// reader began, so that what it has read is still the youngest. A value's since is no less than the sequence of the
// commit that wrote it, and that of each listed range that has its key and was deleted before it entered. A range leaves
// the list only after all older values of its keys. A key and a value in a chunk never change.
type rowCache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
	views  [cacheShards]atomic.Pointer[cacheView] // of the shards, apart from what writers change
	// ranges is replaced as a whole, by one commit at a time.
	ranges atomic.Pointer[ranges]
	// shrinks counts how often shrinking was asked for since it last ended.
	shrinks    atomic.Int64
	background sync.WaitGroup
	quit       chan struct{} // closed when the store is
	// budget is how many bytes a shard may hold, and chunk how many go at once.
	budget, chunk int
}

const (
	cacheShards = 64
	// cacheChunks is how many chunks a full shard has, about.
	cacheChunks = 8
	// maxCacheChunk bounds a chunk: the first costs that much in a store that keeps little.
	maxCacheChunk = 256 << 10
)

func newRowCache(budget int64) *rowCache {
	h := &rowCache{seed: maphash.MakeSeed(), budget: int(min(budget/cacheShards, maxCacheShard)), quit: make(chan struct{})}
	h.chunk = min(h.budget/cacheChunks, maxCacheChunk)
	pages := newHugePages()
	for i := range h.shards {
		h.shards[i].view, h.shards[i].pages = &h.views[i], pages
		h.views[i].Store(&cacheView{table: newCacheTable(minTableBits)})
	}
	return h
}

func (h *rowCache) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// split is the shard of a hash, and what the hash is there.
func split(hash uint64) (shard int, short uint32) { return int(hash % cacheShards), uint32(hash >> 32) }

// get is the value of key for a reader that began at sequence at; ok is false when the cache does not know it.
func (h *rowCache) get(hash uint64, key []byte, at uint64) (value []byte, ok bool) {
	list := h.listed() // first: one leaves the list after the values that it deletes
	shard, short := split(hash)
	e, chunk := h.views[shard].Load().find(short)
	if e == nil || e.since() > at || !bytes.Equal(e.key(), key) || list.find(key) > e.since() {
		return nil, false
	}
	if e.use() {
		h.shards[shard].ask(e, chunk)
	}
	return e.value(), true
}

// offer hands in what a reader that began at sequence at has read. kept is a copy that stays as it is, if ok.
func (h *rowCache) offer(hash uint64, key, value []byte, at uint64) (kept []byte, ok bool) {
	if !h.takes(key, value) {
		return nil, false
	}
	shard, short := split(hash)
	s := &h.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	since := max(s.changed, h.deleted(key))
	if since > at {
		return nil, false
	}
	return h.put(s, short, key, value, since), true
}

func (h *rowCache) takes(key, value []byte) bool {
	return len(key) <= maxCachedKey && len(value) <= maxCachedValue && sizeOf(key, value) <= h.budget
}

// put adds a value, and lets old ones go where it must.
func (h *rowCache) put(s *cacheShard, hash uint32, key, value []byte, since uint64) (kept []byte) {
	for s.bytes+sizeOf(key, value) > h.budget {
		s.evict(h.chunk)
	}
	return s.add(hash, key, value, since, h.chunk)
}

// change takes key out; the commit numbered sequence is about to write it.
func (h *rowCache) change(key []byte, sequence uint64) {
	shard, short := split(h.hash(key))
	s := &h.shards[shard]
	s.mu.Lock()
	s.changed = sequence
	s.remove(short)
	s.mu.Unlock()
}

// write puts value in the place of what is kept of key, or where there is room; the commit numbered sequence is about to
// write it.
func (h *rowCache) write(key, value []byte, sequence uint64) {
	shard, short := split(h.hash(key))
	s := &h.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = sequence
	takes := h.takes(key, value)
	if takes && s.bytes+sizeOf(key, value) <= h.budget {
		h.put(s, short, key, value, sequence) // without a look at what was there
		return
	}
	if s.remove(short) && takes {
		h.put(s, short, key, value, sequence)
	}
}

// changeRange lists r; the commit numbered sequence is about to delete it. One commit at a time does this.
func (h *rowCache) changeRange(r overlay.Range, sequence uint64) {
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
	h.shrink()
}

// shrink gives the memory back of what no longer counts, beside everybody else: a deleted range may have millions of values.
func (h *rowCache) shrink() {
	if h.shrinks.Add(1) == 1 {
		h.background.Go(h.shrinkAll)
	}
}

// shrunkAtOnce is how many entries are looked at between two rests.
const shrunkAtOnce = 1024

// shrinkAll goes over all shards until nobody has asked for it again meanwhile.
func (h *rowCache) shrinkAll() {
	rest, wall := restUntil(h.quit), clock.Wall()
	begin := wall.Now()
	for asked, looked := int64(0), 0; ; {
		now := h.shrinks.Load()
		if now == asked && h.shrinks.CompareAndSwap(asked, 0) {
			return
		}
		asked = now
		for i := range h.shards {
			for more := true; more; {
				var n int
				n, more = h.shards[i].shrink(h, shrunkAtOnce)
				if looked += n; looked < shrunkAtOnce {
					continue
				}
				rest(restFor(begin))
				select {
				case <-h.quit:
					return
				default:
				}
				begin, looked = wall.Now(), 0
			}
		}
	}
}

// wait waits for what goes on in the background.
func (h *rowCache) wait() { h.background.Wait() }

// stop ends it.
func (h *rowCache) stop() {
	close(h.quit)
	h.wait()
}

func (h *rowCache) listed() ranges {
	if list := h.ranges.Load(); list != nil {
		return *list
	}
	return nil
}

// deleted is the sequence of the listed range that has key; 0 if none has.
func (h *rowCache) deleted(key []byte) uint64 { return h.listed().find(key) }

// settle takes out every value that list makes count for nothing, and lets none in that readers from before sequence bring.
func (h *rowCache) settle(list ranges, sequence uint64) {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.changed = sequence
		s.settle(list)
		s.mu.Unlock()
	}
}
