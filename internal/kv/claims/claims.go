// Package claims remembers which commit claimed a key last, for an engine that orders all commits itself. It does not know what a key is, nor
// who is open: the engine tells what nobody would ask for any more.
package claims

import "hash/maphash"

// Claims remembers, by hash of the key, which commit claimed a key last, for as long as an open transaction could ask.
// Two keys with one hash make a conflict too many; the seed is random, so nobody can aim at that.
type Claims struct {
	seed  maphash.Seed
	last  map[uint64]uint64 // hash → sequence
	order []claimed         // all of them, oldest first
	floor uint64            // claims up to this sequence may have been forgotten
}

type claimed struct{ hash, sequence uint64 }

// maxClaims bounds the table (about 60 bytes each). Past it the oldest quarter is forgotten, and the transactions that
// began before those claims fail when they claim anything.
const maxClaims = 1 << 20

// New remembers nothing.
func New() *Claims {
	return &Claims{seed: maphash.MakeSeed(), last: map[uint64]uint64{}}
}

func (c *Claims) hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) }

// Conflict says whether one of keys was claimed after begin.
func (c *Claims) Conflict(begin uint64, keys [][]byte) bool {
	if len(keys) == 0 {
		return false
	}
	if begin < c.floor {
		return true
	}
	for _, key := range keys {
		if c.last[c.hash(key)] > begin {
			return true
		}
	}
	return false
}

// Record notes what the commit numbered sequence has claimed.
func (c *Claims) Record(sequence uint64, keys [][]byte) {
	for _, key := range keys {
		h := c.hash(key)
		if c.last[h] == sequence {
			continue // claimed twice by one transaction
		}
		c.last[h] = sequence
		c.order = append(c.order, claimed{h, sequence})
	}
	if len(c.order) > maxClaims {
		c.floor = c.order[len(c.order)/4].sequence
		c.Forget(c.floor)
	}
}

// Forget drops what was claimed at or before sequence.
func (c *Claims) Forget(sequence uint64) {
	n := 0
	for n < len(c.order) && c.order[n].sequence <= sequence {
		if e := c.order[n]; c.last[e.hash] == e.sequence {
			delete(c.last, e.hash)
		}
		n++
	}
	if n > 0 { // of which only who began before all that are open would ask
		c.floor = max(c.floor, c.order[n-1].sequence)
	}
	if n < len(c.order) {
		c.order = c.order[n:]
		return
	}
	if c.order = c.order[:0]; n > maxClaims/4 {
		c.order, c.last = nil, map[uint64]uint64{} // neither shrinks by itself
	}
}

// Raise has who began before sequence fail when they claim anything.
func (c *Claims) Raise(sequence uint64) { c.floor = max(c.floor, sequence) }
