package rowcache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/deleted"
	"github.com/ebbdb/ebb/internal/testseed"
)

// A value from within a deleted range is kept if who brings it has seen the deletion, and then for those who have.
func TestCacheOfferWithinARange(t *testing.T) {
	c := New(1 << 20)
	key := []byte("key")
	c.ChangeRange(kv.Range{Start: []byte("a"), End: []byte("z")}, 5)
	for _, step := range []struct {
		offered, read uint64
		want          bool
	}{{4, 9, false}, {5, 4, false}, {5, 5, true}} {
		c.Offer(c.Hash(key), key, []byte("value"), step.offered)
		if _, kept := c.Get(c.Hash(key), key, step.read); kept != step.want {
			t.Errorf("offered at %d, read at %d: kept %v", step.offered, step.read, kept)
		}
	}
}

// More ranges than are listed leave nothing behind that they have deleted, and all else kept.
func TestCacheManyRanges(t *testing.T) {
	c := New(1 << 30)
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d/key", i) }
	const keys = 40 * deleted.MaxRanges
	for i := range keys {
		c.Offer(c.Hash(key(i)), key(i), []byte{'v'}, 1)
	}
	for sequence := range uint64(3*deleted.MaxRanges + deleted.MaxRanges/2) {
		first := 10 * int(sequence)
		c.ChangeRange(kv.Range{Start: key(first), End: key(first + 3)}, sequence+2)
		c.Offer(c.Hash(key(first+1)), key(first+1), []byte{'v'}, 1) // by an old reader
		if n := len(c.listed()); n > deleted.MaxRanges {
			t.Fatalf("%d ranges are listed", n)
		}
	}
	for i := range keys {
		_, kept := c.Get(c.Hash(key(i)), key(i), 1<<20)
		if deleted := i%10 < 3 && i < 35*deleted.MaxRanges; kept == deleted {
			t.Fatalf("key %d: kept %v, deleted %v", i, kept, deleted)
		}
	}
}

// What ends piece by piece fills the list only at first, and nothing beside it is forgotten for it.
func TestCacheGrowingRange(t *testing.T) {
	c := New(1 << 20)
	for sequence := range uint64(5 * deleted.MaxRanges) {
		start, end := fmt.Appendf(nil, "swept/%06d", 10*sequence), fmt.Appendf(nil, "swept/%06d", 10*sequence+5)
		c.ChangeRange(kv.Range{Start: start, End: end}, sequence+2)
		if n := len(c.listed()); n == 0 || n > deleted.MaxRanges {
			t.Fatalf("%d ranges are listed", n)
		}
	}
	for name, want := range map[string]bool{"swept/000000": false, "swept/010002": false, "swept/999999": true, "other": true} {
		key := []byte(name)
		c.Offer(c.Hash(key), key, []byte{'v'}, 1)
		if _, kept := c.Get(c.Hash(key), key, 1); kept != want {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}

// What is kept stays within its budget, and what is used stays longer.
func TestCacheBudget(t *testing.T) {
	c := New(shardCount * 4096)
	for i := range 10_000 {
		key := fmt.Appendf(nil, "key/%d", i)
		c.Offer(c.Hash(key), key, make([]byte, 100), 1)
		if first := []byte("key/0"); i > 0 {
			if _, ok := c.Get(c.Hash(first), first, 1); !ok {
				t.Fatalf("a value in use is gone after %d others", i)
			}
		}
	}
	for i := range c.shards {
		if n := c.shards[i].bytes; n > c.budget {
			t.Errorf("shard %d holds %d bytes, more than %d", i, n, c.budget)
		}
	}
}

// What is written enters where there is room or an older value of its key, and drives nothing else out.
func TestCacheWrite(t *testing.T) {
	c := New(shardCount * 4096)
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%d", i) }
	kept := func(i int, at uint64) bool { _, ok := c.Get(c.Hash(key(i)), key(i), at); return ok }
	c.Write(key(0), make([]byte, 100), 7)
	if !kept(0, 7) || kept(0, 6) {
		t.Error("what was written at 7 is for those who began then, and not before")
	}
	for i := range 10_000 {
		c.Offer(c.Hash(key(i)), key(i), make([]byte, 100), 9)
	}
	var there []int
	for i := range 10_000 {
		if kept(i, 9) {
			there = append(there, i)
		}
	}
	for i := range 10_000 {
		c.Write(key(20_000+i), make([]byte, 100), 10)
	}
	for _, i := range there {
		if !kept(i, 10) {
			t.Fatalf("what was written drove out %d", i)
		}
	}
	written := there[len(there)-1]
	c.Write(key(written), make([]byte, 200), 11)
	if value, ok := c.Get(c.Hash(key(written)), key(written), 11); !ok || len(value) != 200 {
		t.Errorf("a value in the place of an older one: %d bytes, %v", len(value), ok)
	}
	c.Write(key(written), make([]byte, maxValue+1), 12)
	if kept(written, 12) {
		t.Error("the older value of what is too large is still kept")
	}
}

// What a reader was given stays as it is, whatever comes after it.
func TestCacheValuesStay(t *testing.T) {
	c := New(shardCount * 1024)
	type given struct{ value, was []byte }
	var all []given
	for i := range 5000 {
		key, value := fmt.Appendf(nil, "key/%d", i%300), binary.BigEndian.AppendUint64(nil, uint64(i))
		if i%2 == 0 {
			c.Write(key, value, uint64(i))
		} else if kept, ok := c.Offer(c.Hash(key), key, value, uint64(i)); ok {
			all = append(all, given{kept, value})
		}
		if got, ok := c.Get(c.Hash(key), key, uint64(i)); ok {
			all = append(all, given{got, value})
		}
	}
	for _, g := range all {
		_ = append(g.value, "and more that was appended"...)
	}
	for _, g := range all {
		if string(g.value) != string(g.was) {
			t.Fatalf("a value that was %x is %x", g.was, g.value)
		}
	}
	if len(all) < 5000 {
		t.Errorf("only %d values were kept", len(all))
	}
}

// What was taken out does not come back when its chunk goes.
func TestCacheChangeStays(t *testing.T) {
	c := New(shardCount * 1024)
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%d", i) }
	const first = 1000
	for i := range first {
		c.Offer(c.Hash(key(i)), key(i), []byte{'v'}, 1)
		c.Get(c.Hash(key(i)), key(i), 1)
		c.Change(key(i), 2)
	}
	for i := first; i < 20*first; i++ {
		c.Offer(c.Hash(key(i)), key(i), []byte{'v'}, 2)
	}
	for i := range first {
		if _, kept := c.Get(c.Hash(key(i)), key(i), 2); kept {
			t.Fatalf("%d is kept", i)
		}
	}
}

// What is written and expires in turn takes the memory of what is there, not of all there has been.
func TestCacheShrinks(t *testing.T) {
	const each, live = 4000, 3
	c := New(1 << 30)
	c.chunk = 4096
	record := func(i int) []byte { return fmt.Appendf(nil, "record/%08d", i) }
	id := func(i int) []byte { return fmt.Appendf(nil, "id/%08d", i) }
	size := 0
	for wave := range 20 {
		sequence := uint64(2*wave + 1)
		for i := wave * each; i < (wave+1)*each; i++ {
			c.Write(record(i), make([]byte, 100), sequence)
			c.Write(id(i), record(i), sequence)
			size += sizeOf(record(i), make([]byte, 100)) + sizeOf(id(i), record(i))
		}
		if wave < live {
			continue
		}
		gone := wave - live
		for i := gone * each; i < (gone+1)*each; i++ {
			c.Change(id(i), sequence+1)
		}
		c.ChangeRange(kv.Range{Start: record(gone * each), End: record((gone + 1) * each)}, sequence+1)
	}
	c.wait()
	bytes := 0
	for i := range c.shards {
		bytes += c.shards[i].bytes
	}
	if most := size / 20 * (live + 1) * 6 / 5; bytes > most {
		t.Errorf("%d bytes are kept of %d, want at most %d", bytes, size, most)
	}
	for i := range 20 * each {
		_, kept := c.Get(c.Hash(record(i)), record(i), 100)
		if want := i >= (20-live)*each; kept != want {
			t.Fatalf("%d: kept %v, want %v", i, kept, want)
		}
	}
}

// A chunk is looked through in steps, of so many entries each, and goes when all of it was; one that counts ends that.
func TestCacheShrinksInSteps(t *testing.T) {
	const entries, step = 20_000, 7
	c := New(1 << 30)
	c.chunk = 2048
	var keys [][]byte // of which no two share a hash in a shard: one would take the other's place
	type place struct {
		shard int
		short uint32
	}
	taken := map[place]bool{}
	for i := 0; len(keys) < entries; i++ {
		k := fmt.Appendf(nil, "record/%08d", i)
		var p place
		if p.shard, p.short = split(c.Hash(k)); !taken[p] {
			taken[p] = true
			keys = append(keys, k)
		}
	}
	key := func(i int) []byte { return keys[i] }
	for i := range entries {
		c.Write(key(i), make([]byte, 20), 1)
	}
	list := c.listed().With(kv.Range{Start: key(0), End: key(entries / 2)}, 2)
	c.ranges.Store(&list)
	looked := 0
	for i := range c.shards {
		for more := true; more; {
			var n int
			n, more = c.shards[i].shrink(c, step)
			if looked += n; n > step {
				t.Fatalf("%d entries were looked at", n)
			}
		}
	}
	kept := 0
	for i := range c.shards {
		kept += c.shards[i].full
	}
	// What lies before the first that counts in its chunk stays in the table.
	if most := entries/2 + shardCount*c.chunk/entryLength(key(0), make([]byte, 20)); looked != entries/2 || kept < entries/2 || kept > most {
		t.Errorf("%d entries were looked at, and %d are kept", looked, kept)
	}
	for i := range entries {
		if _, kept := c.Get(c.Hash(key(i)), key(i), 100); kept != (i >= entries/2) {
			t.Fatalf("%d: kept %v", i, kept)
		}
	}
}

// What is stale stands for nothing, however the table changes: values come and go, are asked for, and expire in waves, while the
// numbers of chunks begin anew.
func TestCacheStale(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := New(shardCount << 16)
	c.chunk = 1 << 10
	start := uint32(placeMask - 40)
	for i := range c.shards {
		c.shards[i].publish(start, c.shards[i].view.Load().table)
	}
	key := func(wave, i int) []byte { return fmt.Appendf(nil, "record/%03d/%05d", wave, i) }
	const waves, each = 60, 2000
	want := map[string]uint64{} // the sequence with which a key was written last
	sequence := uint64(1)
	for wave := range waves {
		for i := range each {
			c.Write(key(wave, i), binary.BigEndian.AppendUint64(nil, sequence), sequence)
			want[string(key(wave, i))] = sequence
			if n := rng.IntN(each); n%4 == 0 { // one of a wave before, which may have expired
				old := key(max(0, wave-rng.IntN(4)), n)
				c.Write(old, binary.BigEndian.AppendUint64(nil, sequence), sequence)
				want[string(old)] = sequence
			} else if n%7 == 0 {
				c.Change(key(wave, n), sequence)
				delete(want, string(key(wave, n)))
			}
		}
		sequence++
		c.ChangeRange(kv.Range{Start: key(max(0, wave-3), 0), End: key(wave, rng.IntN(each))}, sequence)
		switch rng.IntN(4) {
		case 0, 1:
			c.wait()
		case 2:
			c.forget(c.listed(), sequence)
		}
		sequence++
		for n := wave - 4; n <= wave; n++ {
			for i := range each {
				k := key(max(0, n), i)
				value, kept := c.Get(c.Hash(k), k, sequence)
				if kept && (want[string(k)] == 0 || binary.BigEndian.Uint64(value) != want[string(k)] || c.deleted(k) > want[string(k)]) {
					t.Fatalf("seed %d: wave %d: %s is %x, want what was written at %d", seed, wave, k, value, want[string(k)])
				}
			}
		}
	}
	c.wait()
	for i := range c.shards {
		s := &c.shards[i]
		if s.view.Load().first == start {
			t.Errorf("nothing of shard %d went", i)
		}
		if n := s.full - s.view.Load().table.count(func(place) bool { return true }); n != 0 {
			t.Errorf("seed %d: shard %d counts %d slots too many", seed, i, n)
		}
		if stale := s.view.Load().table.count(func(p place) bool { return p.chunk(s.view.Load().first) >= len(s.chunks) }); stale > s.stale {
			t.Errorf("seed %d: shard %d has %d stale slots, and counts %d", seed, i, stale, s.stale)
		}
	}
}

// A chunk does not get a number that stale slots have.
func TestCacheStaleNumbers(t *testing.T) {
	c := New(shardCount << 20)
	c.chunk = 256
	s := &c.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	key := func(i int) []byte { return fmt.Appendf(nil, "record/%05d", i) }
	short := func(i int) uint32 { return uint32(i) * 0x9e3779b9 }
	value := make([]byte, 100)
	const stale = 200
	for i := range stale {
		s.add(short(i), key(i), value, 1, c.chunk)
	}
	for len(s.chunks) > 1 {
		s.passed = 2 // as many as there are in a chunk
		s.popStale()
	}
	for i := stale; s.view.Load().first < 2*placeMask; i++ {
		s.add(short(i), key(i), value, 1, c.chunk)
		if len(s.chunks) > 3 {
			s.evict(c.chunk)
		}
		for n := 0; s.view.Load().first&placeMask < stale && n < stale-2; n++ {
			if e := s.view.Load().find(short(n)); e != nil {
				t.Fatalf("%d: under the stale hash %d lies %q", i, n, e)
			}
		}
	}
}

// A store that is closed does not wait until all memory is given back.
func TestCacheStops(t *testing.T) {
	const entries = 8 * shrunkAtOnce
	c := New(1 << 30)
	c.chunk = 2048
	for i := range entries {
		c.Write(fmt.Appendf(nil, "record/%08d", i), make([]byte, 20), 1)
	}
	close(c.quit)
	c.ChangeRange(kv.Range{Start: []byte("record/"), End: []byte("record0")}, 2)
	c.wait()
	kept := 0
	for i := range c.shards {
		kept += c.shards[i].full
	}
	if kept < entries-2*shrunkAtOnce {
		t.Errorf("%d of %d were taken out", entries-kept, entries)
	}
}

// Many keys at once are answered as each by itself.
func TestCacheGetMany(t *testing.T) {
	c := New(1 << 20)
	r := rand.New(rand.NewPCG(testseed.Of(t), 0))
	key := func(i int) []byte { return fmt.Appendf(nil, "key/%d", i) }
	for i := range 300 {
		c.Write(key(i), fmt.Appendf(nil, "value %d", i), uint64(i))
	}
	c.ChangeRange(kv.Range{Start: []byte("key/20"), End: []byte("key/21")}, 1000)
	if n := c.Bytes(); n < 300*10 || n > 1<<20 {
		t.Errorf("300 values are %d bytes", n)
	}
	known := 0
	for range 200 {
		keys := make([][]byte, r.IntN(3*manyAtOnce))
		for i := range keys {
			keys[i] = key(r.IntN(400))
		}
		at := uint64(r.IntN(1200))
		values := make([][]byte, len(keys))
		c.GetMany(keys, values, at)
		for i := range keys {
			want, ok := c.Get(c.Hash(keys[i]), keys[i], at)
			if (values[i] != nil) != ok || string(values[i]) != string(want) {
				t.Fatalf("%s at %d: %q, and %q, %v by itself", keys[i], at, values[i], want, ok)
			}
			if ok {
				known++
			}
		}
	}
	if known == 0 {
		t.Error("nothing was known")
	}
}
