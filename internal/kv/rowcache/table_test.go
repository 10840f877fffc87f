package rowcache

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/testseed"
)

// A table does what a map does, while it grows, shrinks, and runs over its end.
func TestTable(t *testing.T) {
	seed := testseed.Of(t)
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, hashes := range []func() uint32{
		rng.Uint32,
		func() uint32 { return rng.Uint32N(200) },                  // all at home in the first slot
		func() uint32 { return math.MaxUint32 - rng.Uint32N(200) }, // or in the last
		func() uint32 { return rng.Uint32N(64) << 26 },             // or in few
	} {
		s := shardOf(t)
		want := map[uint32]place{}
		for step := range 20_000 {
			hash := hashes()
			if filling := step/2000%2 == 0; rng.IntN(8) < 2 == filling {
				_, had := want[hash]
				if s.remove(hash) != had {
					t.Fatalf("step %d: removed %x: %v", step, hash, !had)
				}
				delete(want, hash)
				s.fit()
			} else {
				p := placeOf(rng.Uint32(), rng.IntN(maxPlace)&^(entryAlign-1))
				s.set(hash, p)
				want[hash] = p
			}
			if got := s.find(hash); got != want[hash] {
				t.Fatalf("step %d: %x is at %x, want %x", step, hash, got, want[hash])
			}
			if step%100 == 0 {
				s.mustHave(t, want)
			}
		}
	}
}

// shardOf is an empty shard.
func shardOf(t *testing.T) *shard {
	t.Helper()
	return &New(shardCount << 20).shards[0]
}

func (s *shard) mustHave(t *testing.T, want map[uint32]place) {
	t.Helper()
	for hash, p := range want {
		if got := s.find(hash); got != p {
			t.Fatalf("%x is at %x, want %x", hash, got, p)
		}
	}
	table := s.view.Load().table
	if s.full != len(want) || 4*s.full > 3*len(table.slots) || table.bits() > minTableBits && 8*s.full < len(table.slots) {
		t.Fatalf("%d of %d slots are counted for %d", s.full, len(table.slots), len(want))
	}
}

// A place keeps offset and number apart, the number also when it has run over.
func TestPlace(t *testing.T) {
	for _, first := range []uint32{0, 1, placeMask - 1, placeMask, math.MaxUint32 - 1} {
		for _, chunk := range []int{0, 1, 2, placeMask} {
			for _, offset := range []int{0, entryAlign, maxPlace - entryAlign} {
				p := placeOf(first+uint32(chunk), offset)
				if p == 0 || p.chunk(first) != chunk || p.offset() != offset {
					t.Errorf("chunk %d from %d, offset %d: %d, %d", chunk, first, offset, p.chunk(first), p.offset())
				}
			}
		}
	}
}

// Whoever looks while others come and go finds what stays, or for a moment nothing, and never another's place.
func TestTableIsReadWhileItChanges(t *testing.T) {
	s := shardOf(t)
	const stay = 200
	hash := func(i uint32) uint32 { return i * 0x9E3779B1 }
	for i := range uint32(stay) {
		s.set(hash(i), place(i+1))
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := uint32(0); !done.Load(); i = (i + 1) % stay {
				table := s.view.Load().table
				if p := table.find(hash(i)); p != 0 && p != place(i+1) {
					t.Errorf("%d is at %d", i, p)
				}
			}
		})
	}
	for range 20 {
		for i := range uint32(2000) {
			s.set(hash(stay+i), place(stay+i+1))
		}
		for i := range uint32(2000) {
			s.remove(hash(stay + i))
		}
		s.fit()
	}
	done.Store(true)
	readers.Wait()
	for i := range uint32(stay) {
		if p := s.find(hash(i)); p != place(i+1) {
			t.Errorf("%d is at %d in the end", i, p)
		}
	}
}

// Two keys with one hash are told apart, and the later stays.
func TestCacheCollision(t *testing.T) {
	c := New(1 << 20)
	const hash = 1<<63 | 5
	for _, key := range []string{"one", "two"} {
		if _, ok := c.Offer(hash, []byte(key), []byte("value of "+key), 1); !ok {
			t.Fatalf("%s is not kept", key)
		}
	}
	if value, ok := c.Get(hash, []byte("one"), 1); ok {
		t.Errorf("one has %s", value)
	}
	if value, ok := c.Get(hash, []byte("two"), 1); !ok || string(value) != "value of two" {
		t.Errorf("two has %s, %v", value, ok)
	}
}

// The longest key and the longest value that are kept come back whole; what is longer is not kept.
func TestCacheLongest(t *testing.T) {
	c := New(shardCount << 20)
	for _, size := range []struct {
		key, value int
		want       bool
	}{{maxKey, maxValue, true}, {maxKey + 1, 0, false}, {0, maxValue + 1, false}, {0, 0, true}} {
		key, value := make([]byte, size.key), make([]byte, size.value)
		for i := range value {
			value[i] = byte(i)
		}
		c.Write(key, value, 1)
		for range 2 { // the second finds it used
			got, kept := c.Get(c.Hash(key), key, 1)
			if kept != size.want || kept && string(got) != string(value) {
				t.Errorf("a key of %d bytes and a value of %d: %d, %v", size.key, size.value, len(got), kept)
			}
		}
	}
}

// What expires leaves a small table behind.
func TestTableShrinks(t *testing.T) {
	s := shardOf(t)
	for i := range uint32(5000) {
		s.set(i<<19, 1)
	}
	before := len(s.view.Load().table.slots)
	for i := range uint32(4990) {
		s.remove(i << 19)
	}
	s.fit()
	if after := len(s.view.Load().table.slots); before < 5000 || after > 128 {
		t.Errorf("%d slots, then %d", before, after)
	}
}
