package rowcache

import "sync/atomic"

// table says where values are, by the hashes of their keys; of two keys with one hash the later stays. It is an open
// table with linear probing. A slot has hash and place in one word, so that a look-up costs one line of memory as a rule and
// never looks at what lies at a place; 0 is an empty slot. One goroutine at a time changes a table, while any may look: they
// find what was there before or after, or nothing.
//
// The home of a hash is in its highest bits, and thus a larger table has them all in the same order: to fill it goes through
// both from front to back.
type table struct {
	slots []uint64
	shift uint8 // how many bits of a hash do not count for its home
}

// place is a chunk's number, in its lowest bits, and an offset there; 0 is none.
type place uint32

const (
	placeBits    = 18                    // of a place are the offset's
	placeMask    = 1<<(32-placeBits) - 1 // of a chunk's number, what a place has
	maxPlace     = (1<<placeBits - 1) * entryAlign
	minTableBits = 4 // of the slots' number, in the smallest table
)

func placeOf(chunk uint32, offset int) place {
	return place(chunk<<placeBits | uint32(offset/entryAlign+1))
}

// chunk is how many chunks come between the one numbered first and the place's.
func (p place) chunk(first uint32) int { return int((uint32(p)>>placeBits - first) & placeMask) }
func (p place) offset() int            { return (int(p&(1<<placeBits-1)) - 1) * entryAlign }

func newTable(bits int) table {
	return table{slots: make([]uint64, 1<<bits), shift: uint8(32 - bits)}
}

func (t *table) bits() int { return 32 - int(t.shift) }

func (t *table) home(hash uint32) int { return int(hash >> t.shift) }

func (t *table) next(i int) int { return (i + 1) & (len(t.slots) - 1) }

// find is the place under hash, or 0.
func (t *table) find(hash uint32) place {
	for i := t.home(hash); ; i = t.next(i) {
		slot := atomic.LoadUint64(&t.slots[i])
		if slot == 0 || uint32(slot>>32) == hash {
			return place(slot)
		}
	}
}

// set puts p under hash, and says whether there was nothing. One slot is always empty, which the caller sees to.
func (t *table) set(hash uint32, p place) (added bool) {
	i := t.slotOf(hash)
	added = t.slots[i] == 0
	atomic.StoreUint64(&t.slots[i], uint64(hash)<<32|uint64(p))
	return added
}

// slotOf is the slot that has hash, or the empty one where it belongs.
func (t *table) slotOf(hash uint32) int {
	i := t.home(hash)
	for t.slots[i] != 0 && uint32(t.slots[i]>>32) != hash {
		i = t.next(i)
	}
	return i
}

// remove takes hash out, and says whether it was there. What comes behind moves up, no further than to its home.
func (t *table) remove(hash uint32) bool {
	hole := t.slotOf(hash)
	if t.slots[hole] == 0 {
		return false
	}
	for i := t.next(hole); t.slots[i] != 0; i = t.next(i) {
		if t.distance(t.home(uint32(t.slots[i]>>32)), i) >= t.distance(hole, i) {
			atomic.StoreUint64(&t.slots[hole], t.slots[i])
			hole = i
		}
	}
	atomic.StoreUint64(&t.slots[hole], 0)
	return true
}

// distance is how many steps lead from one slot to another.
func (t *table) distance(from, to int) int { return (to - from) & (len(t.slots) - 1) }

// resized is a table of another size that has the same.
func (t *table) resized(bits int) table {
	return t.without(func(place) bool { return false }, bits)
}

// without is a table of a size of its own that has the same, but for some places.
func (t *table) without(goes func(place) bool, bits int) table {
	other := newTable(bits)
	for _, slot := range t.slots {
		if slot != 0 && !goes(place(slot)) {
			other.set(uint32(slot>>32), place(slot))
		}
	}
	return other
}

// count is how many of the places are such.
func (t *table) count(is func(place) bool) (n int) {
	for _, slot := range t.slots {
		if slot != 0 && is(place(slot)) {
			n++
		}
	}
	return n
}
