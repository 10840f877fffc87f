// Package rowcache keeps values of an ordered store by their keys, for the next who reads them. It does not know the store: who
// commits tells it what is written and deleted, and who reads hands in what it has found.
package rowcache

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/deleted"
	"github.com/ebbdb/ebb/internal/throttle"
)

// Cache keeps values that were read or written lately, so that a key that is asked for is not searched in every level.
//
// Time is the sequence of commits: the one who commits numbers them, and a reader sees all up to the number at which it began.
//
// A value is good for every reader that began when or after it was last changed, for as long as no commit has changed its
// key. A shard does not know when each key was changed last; the youngest change of any of its keys stands for all.
//
// The keys of a deleted range are not taken out one by one: the range is listed, and a value of a key within
// counts for nothing if it is older than the range.
//
// What is written is kept as long as that drives out nothing but an older value of its key: much is written that nobody
// reads.
//
// A cache that favours short values (NewFavouringShort) has them outlive longer ones. Where a look into the store costs the same
// however long the value is, a byte spares more looks the shorter its value: the entry of an index that leads to a record
// takes a tenth or less of what that takes. So a short value stays although nobody has asked for it lately, and enters when it
// is written although longer ones go for it, as long as short ones take no more than a share of the cache (shortShare); those that are
// asked for may take more.
//
// Readers take no lock. One that looks at the list of ranges, then at a shard, may see either as it was at any time since it
// began: what was changed meanwhile it does not see in its view either.
//
// Invariants: a commit takes the keys it writes out, and lists the ranges it deletes, before any of its writes can be seen.
// A value enters by a reader only if no key of its shard was changed, and no range that has its key was deleted, since that
// reader began, so that what it has read is still the youngest. A value's since is no less than the sequence of the
// commit that wrote it, and that of each listed range that has its key and was deleted before it entered. A range leaves
// the list only after all older values of its keys. A key and a value in a chunk never change.
type Cache struct {
	seed   maphash.Seed
	shards [shardCount]shard
	views  [shardCount]atomic.Pointer[view] // of the shards, apart from what writers change
	// ranges is replaced as a whole, by one commit at a time.
	ranges atomic.Pointer[deleted.Ranges]
	// shrinks counts how often shrinking was asked for since it last ended.
	shrinks    atomic.Int64
	background sync.WaitGroup
	quit       chan struct{} // closed when the store is
	// budget is how many bytes a shard may hold, and chunk how many go at once.
	budget, chunk int
}

const (
	shardCount = 64
	// chunksPerShard is how many chunks a full shard has, about.
	chunksPerShard = 8
	// maxChunk bounds a chunk: the first costs that much in a store that keeps little.
	maxChunk = 256 << 10
	// maxShort is how long a short value is: that of an index entry, which has a record's id, but no record, which has a document.
	maxShort = 32
	// shortShare is the share of a cache, one in so many, up to which short values are favoured.
	shortShare = 4
)

// New is an empty cache that holds so many bytes at most. Close it.
func New(budget int64) *Cache {
	c := &Cache{seed: maphash.MakeSeed(), budget: int(min(budget/shardCount, maxShard)), quit: make(chan struct{})}
	c.chunk = min(c.budget/chunksPerShard, maxChunk)
	for i := range c.shards {
		c.shards[i].view = &c.views[i]
		c.views[i].Store(&view{table: newTable(minTableBits)})
	}
	return c
}

// NewFavouringShort is New for a store in which a look costs the same however long the value is: short values outlive longer ones.
func NewFavouringShort(budget int64) *Cache {
	c := New(budget)
	for i := range c.shards {
		c.shards[i].favoured = c.budget / shortShare
	}
	return c
}

// Bytes is about how much the cache holds.
func (c *Cache) Bytes() (sum int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		sum += int64(s.bytes)
		s.mu.Unlock()
	}
	return sum
}

// Hash is what Get and Offer look a key up by; it is computed once for both.
func (c *Cache) Hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

// split is the shard of a hash, and what the hash is there.
func split(hash uint64) (shard int, short uint32) { return int(hash % shardCount), uint32(hash >> 32) }

// Get is the value of key for a reader that began at sequence at; ok is false when the cache does not know it.
func (c *Cache) Get(hash uint64, key []byte, at uint64) (value []byte, ok bool) {
	list := c.listed() // first: one leaves the list after the values that it deletes
	shard, short := split(hash)
	e := c.views[shard].Load().find(short)
	if e == nil || e.since() > at || !bytes.Equal(e.key(), key) || list.Find(key) > e.since() {
		return nil, false
	}
	e.use()
	return e.value(), true
}

// manyAtOnce is how many keys are on their way at once: as many as a processor has misses under way, about.
const manyAtOnce = 16

// GetMany is Get for keys that belong together: values[i] stays nil where the cache does not know keys[i].
//
// A look-up waits for memory twice or three times, for a slot of the table, for the entry there and for its value, each of which
// tells where the next one is. So it goes in steps for several keys at once, and they wait together.
func (c *Cache) GetMany(keys, values [][]byte, at uint64) {
	for len(keys) > 0 {
		n := min(len(keys), manyAtOnce)
		c.getMany(keys[:n], values[:n], at)
		keys, values = keys[n:], values[n:]
	}
}

func (c *Cache) getMany(keys, values [][]byte, at uint64) {
	var views [manyAtOnce]*view
	var places [manyAtOnce]place
	var entries [manyAtOnce]entry
	list := c.listed() // as in Get
	for i, key := range keys {
		shard, short := split(c.Hash(key))
		views[i] = c.views[shard].Load()
		places[i] = views[i].table.find(short)
	}
	for i := range keys {
		if places[i] != 0 {
			entries[i] = views[i].entry(places[i])
		}
	}
	for i, key := range keys {
		if e := entries[i]; e != nil && e.since() <= at && bytes.Equal(e.key(), key) && list.Find(key) <= e.since() {
			e.use()
			values[i] = e.value()
		}
	}
}

// Offer hands in what a reader that began at sequence at has read. kept is a copy that stays as it is, if ok.
func (c *Cache) Offer(hash uint64, key, value []byte, at uint64) (kept []byte, ok bool) {
	if !c.takes(key, value) {
		return nil, false
	}
	shard, short := split(hash)
	s := &c.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	since := max(s.changed, c.deleted(key))
	if since > at {
		return nil, false
	}
	return c.put(s, short, key, value, since), true
}

func (c *Cache) takes(key, value []byte) bool {
	return len(key) <= maxKey && len(value) <= maxValue && sizeOf(key, value) <= c.budget
}

// put adds a value, and lets old ones go where it must.
func (c *Cache) put(s *shard, hash uint32, key, value []byte, since uint64) (kept []byte) {
	for s.bytes+sizeOf(key, value) > c.budget {
		s.evict(c.chunk)
	}
	return s.add(hash, key, value, since, c.chunk)
}

// Change takes key out; the commit numbered sequence is about to write it.
func (c *Cache) Change(key []byte, sequence uint64) {
	shard, short := split(c.Hash(key))
	s := &c.shards[shard]
	s.mu.Lock()
	s.changed = sequence
	s.remove(short)
	s.mu.Unlock()
}

// Write puts value in the place of what is kept of key, or where there is room; the commit numbered sequence is about to
// write it.
func (c *Cache) Write(key, value []byte, sequence uint64) {
	shard, short := split(c.Hash(key))
	s := &c.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = sequence
	takes := c.takes(key, value)
	if takes && (s.bytes+sizeOf(key, value) <= c.budget || s.favours(value)) {
		c.put(s, short, key, value, sequence) // without a look at what was there
		return
	}
	if s.remove(short) && takes {
		c.put(s, short, key, value, sequence)
	}
}

// ChangeRange lists r; the commit numbered sequence is about to delete it. One commit at a time does this.
func (c *Cache) ChangeRange(r kv.Range, sequence uint64) {
	list := c.listed().With(r, sequence)
	full := len(list) > deleted.MaxRanges
	if full {
		list = list.Closed()
	}
	c.ranges.Store(&list)
	if full && len(list) > deleted.MaxRanges/2 { // else it would be full again soon
		c.forget(list, sequence)
		c.ranges.Store(nil)
	}
	c.shrink()
}

// shrink gives the memory back of what no longer counts, beside everybody else: a deleted range may have millions of values.
func (c *Cache) shrink() {
	if c.shrinks.Add(1) == 1 {
		c.background.Go(c.shrinkAll)
	}
}

// shrunkAtOnce is how many entries are looked at between two rests.
const shrunkAtOnce = 1024

// shrinkRest is how long shrinkAll rests after each step: nobody waits for it, and others hardly notice.
var shrinkRest = throttle.Rest{Factor: 20, Longest: 20 * time.Millisecond}

// shrinkAll goes over all shards until nobody has asked for it again meanwhile.
func (c *Cache) shrinkAll() {
	pace := throttle.New(shrinkRest)
	for asked, looked := int64(0), 0; ; {
		now := c.shrinks.Load()
		if now == asked && c.shrinks.CompareAndSwap(asked, 0) {
			return
		}
		asked = now
		for i := range c.shards {
			for more := true; more; {
				var n int
				n, more = c.shards[i].shrink(c, shrunkAtOnce)
				if looked += n; looked < shrunkAtOnce {
					continue
				}
				if !pace.Step(c.quit) {
					return
				}
				looked = 0
			}
		}
	}
}

// wait waits for what goes on in the background.
func (c *Cache) wait() { c.background.Wait() }

// Close ends what goes on in the background, and lets go of all that was kept, whoever has the cache still. It must not be used any more.
func (c *Cache) Close() {
	close(c.quit)
	c.wait()
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.chunks = nil
		c.views[i].Store(&view{table: newTable(minTableBits)})
		s.mu.Unlock()
	}
}

func (c *Cache) listed() deleted.Ranges {
	if list := c.ranges.Load(); list != nil {
		return *list
	}
	return nil
}

// deleted is the sequence of the listed range that has key; 0 if none has.
func (c *Cache) deleted(key []byte) uint64 { return c.listed().Find(key) }

// forget takes out every value that list makes count for nothing, and lets none in that readers from before sequence bring.
func (c *Cache) forget(list deleted.Ranges, sequence uint64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.changed = sequence
		s.forget(list)
		s.mu.Unlock()
	}
}
