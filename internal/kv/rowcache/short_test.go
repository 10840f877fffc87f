package rowcache

import (
	"fmt"
	"testing"
)

// shortValue and longValue are the values of an index entry and of a record.
var shortValue, longValue = make([]byte, 12), make([]byte, 300)

func entryKey(n int) []byte  { return fmt.Appendf(nil, "entry/%d", n) }
func recordKey(n int) []byte { return fmt.Appendf(nil, "record/%d", n) }

// countKept is how many of n keys are kept, as a look that is not counted as one.
func countKept(c *Cache, n int, key func(int) []byte) (kept int) {
	for i := range n {
		shard, short := split(c.Hash(key(i)))
		if e := c.views[shard].Load().find(short); e != nil && string(e.key()) == string(key(i)) {
			kept++
		}
	}
	return kept
}

// read offers an entry and its record, as who has read both does.
func (c *Cache) read(n int) {
	c.Offer(c.Hash(entryKey(n)), entryKey(n), shortValue, 1)
	c.Offer(c.Hash(recordKey(n)), recordKey(n), longValue, 1)
}

func checkBudget(t *testing.T, c *Cache) {
	t.Helper()
	for i := range c.shards {
		s := &c.shards[i]
		short := 0
		for _, chunk := range s.chunks {
			short += chunk.short
		}
		if s.bytes > c.budget || s.short != short {
			t.Errorf("shard %d holds %d bytes of %d, and counts %d bytes of short values where there are %d", i, s.bytes, c.budget, s.short, short)
		}
	}
}

// Short values outlive longer ones where they are favoured, although nobody asks for them; where not, they go as all do.
func TestCacheFavoursShort(t *testing.T) {
	const budget, pairs = shardCount * 16 << 10, 4000 // entries take a fifth of the cache, and records go over it
	favouring, plain := NewFavouringShort(budget), New(budget)
	for n := range pairs {
		favouring.read(n)
		plain.read(n)
	}
	if kept := countKept(favouring, pairs, entryKey); kept < pairs*99/100 { // two with one hash are one
		t.Errorf("%d of %d short values are kept", kept, pairs)
	}
	if kept := countKept(favouring, pairs, recordKey); kept < pairs/2 {
		t.Errorf("%d long values are kept", kept)
	}
	if kept := countKept(plain, pairs, entryKey); kept > pairs*9/10 {
		t.Errorf("%d short values are kept where they are not favoured", kept)
	}
	checkBudget(t, favouring)
	checkBudget(t, plain)
}

// Short values that nobody asks for take no more than their share, however many come, and those that are asked for stay.
func TestCacheShortShare(t *testing.T) {
	const budget, many = shardCount * 16 << 10, 50_000
	c := NewFavouringShort(budget)
	for n := range many {
		c.read(n)
		if first := entryKey(0); n > 0 {
			if _, ok := c.Get(c.Hash(first), first, 1); !ok {
				t.Fatalf("a short value in use is gone after %d others", n)
			}
		}
	}
	size := sizeOf(entryKey(many), shortValue)
	if kept, most := countKept(c, many, entryKey)*size, budget/shortShare+budget/chunksPerShard; kept > most {
		t.Errorf("short values take %d bytes, more than %d", kept, most)
	}
	checkBudget(t, c)
}

// A short value that is written enters a full cache where short ones are favoured, until they have their share.
func TestCacheWritesShort(t *testing.T) {
	const budget, written = shardCount * 16 << 10, 20_000
	fill := func(c *Cache) (entries, lost int) {
		for n := range written {
			c.Offer(c.Hash(recordKey(n)), recordKey(n), longValue, 1)
		}
		records := countKept(c, written, recordKey)
		for n := range written {
			c.Write(entryKey(n), shortValue, 2)
		}
		checkBudget(t, c)
		return countKept(c, written, entryKey), records - countKept(c, written, recordKey)
	}
	size := sizeOf(entryKey(written), shortValue)
	if entries, lost := fill(New(budget)); entries > budget/chunksPerShard/size || lost > 0 {
		t.Errorf("%d short values were kept where they are not favoured, and %d long ones went", entries, lost)
	}
	entries, lost := fill(NewFavouringShort(budget))
	if room := budget / shortShare / size; entries < room*3/4 || lost*sizeOf(recordKey(written), longValue) > budget/2 {
		t.Errorf("%d short values were kept where there is room for %d, and %d long ones went", entries, room, lost)
	}
}
