package rowcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// keptKey is the key of a record or of an index entry; the two lie as far apart as they do in a store.
func keptKey(n int) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 14), 4, 0, 0, 0, 9, byte(n&1)), uint64(n))
}

// BenchmarkCache looks values up in random order, and writes them anew, among so many that are kept: of two entries one is a
// record, and one an entry of an index.
func BenchmarkCache(b *testing.B) {
	for _, kept := range []int{200_000, 2_000_000} {
		c := New(4 << 30)
		for n := range kept {
			c.Write(keptKey(n), make([]byte, 12+n&1*288), 1)
		}
		get := func(rng *rand.Rand) {
			key := keptKey(rng.IntN(kept))
			if value, ok := c.Get(c.Hash(key), key, 1); ok && value[0] != 0 {
				b.Errorf("%x is %x", key, value)
			} else if !ok && !twins(c, key) {
				b.Errorf("%x is not kept", key)
			}
		}
		b.Run(fmt.Sprint("get of ", kept), func(b *testing.B) {
			b.ReportAllocs()
			rng := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				get(rng)
			}
		})
		b.Run(fmt.Sprint("parallel get of ", kept), func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
				for p.Next() {
					get(rng)
				}
			})
		})
		b.Run(fmt.Sprint("write to ", kept), func(b *testing.B) {
			b.ReportAllocs()
			value := make([]byte, 156)
			for n := kept; b.Loop(); n++ {
				c.Write(keptKey(n), value, 1)
			}
		})
	}
}

// twins says whether another key is kept under the hash of key: of two the later stays.
func twins(c *Cache, key []byte) bool {
	shard, short := split(c.Hash(key))
	e := c.views[shard].Load().find(short)
	return e != nil && !bytes.Equal(e.key(), key)
}
