package column

import "math/bits"

// wide is an integer of 128 bits.
type wide struct{ lo, hi uint64 }

func (w wide) plus(x wide) wide {
	lo, carry := bits.Add64(w.lo, x.lo, 0)
	hi, _ := bits.Add64(w.hi, x.hi, carry)
	return wide{lo, hi}
}

func (w wide) left(n uint) wide {
	if n >= 64 {
		return wide{0, w.lo << (n - 64)}
	}
	return wide{w.lo << n, w.hi<<n | w.lo>>(64-n)}
}

// signed undoes that the sign is the lowest bit.
func (w wide) signed() wide {
	sign := -(w.lo & 1)
	return wide{(w.lo>>1 | w.hi<<63) ^ sign, (w.hi >> 1) ^ sign}
}

// delta is what a block holds for one value: a difference whose sign is its lowest bit, or that there is no value.
type delta struct {
	by      wide
	missing bool
}

// blocks are 64-bit words of Simple-8b. The lowest bits of each say how many values it holds, and of how many bits. A value of ones is a missing one.
type blocks struct {
	words []byte
	slots uint64 // of the word that is being read
	left  int    // how many values are in it yet
	shape
	last delta
}

// shape is how values lie in a word: the lowest bits of each are how often zeros follow it, each time as many as step says.
type shape struct {
	bits, zeros, step int
	run               bool // all are what the one before the word is
}

// runLength is how many values a run has for each time that is said.
const runLength = 120

// Shapes by selector, and by what extends selectors 7 and 8.
var (
	widths    = [15]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 10, 10: 12, 11: 15, 12: 20, 13: 30, 14: 60}
	extended7 = [16]shape{1: {bits: 6}, 2: {bits: 7}, 3: {bits: 8}, 4: {bits: 9}, 5: {bits: 11}, 6: {bits: 14}, 7: {bits: 18}, 8: {bits: 28}, 9: {bits: 56}}
	extended8 = [16]shape{
		1: {bits: 8, zeros: 4}, 2: {bits: 9, zeros: 4}, 3: {bits: 11, zeros: 4}, 4: {bits: 14, zeros: 4}, 5: {bits: 18, zeros: 4}, 6: {bits: 28, zeros: 4},
		7: {bits: 56, zeros: 4}, 8: {bits: 9, zeros: 5}, 9: {bits: 11, zeros: 5}, 10: {bits: 14, zeros: 5}, 11: {bits: 18, zeros: 5}, 12: {bits: 28, zeros: 5},
		13: {bits: 56, zeros: 5},
	}
)

// next is the next value, if there is one.
func (b *blocks) next() (d delta, ok bool, err error) {
	if b.left == 0 {
		if len(b.words) == 0 {
			return delta{}, false, nil
		}
		if err := b.load(); err != nil {
			return delta{}, false, err
		}
	}
	b.left--
	if b.run {
		return b.last, true, nil
	}
	mask := uint64(1)<<b.bits - 1
	slot := b.slots & mask
	b.slots >>= b.bits
	if slot == mask {
		b.last = delta{missing: true}
		return b.last, true, nil
	}
	zeros := slot & (1<<b.zeros - 1)
	b.last = delta{by: wide{lo: slot >> b.zeros}.left(uint(zeros) * uint(b.step))}
	return b.last, true, nil
}

// load reads a word.
func (b *blocks) load() error {
	word := le64(b.words)
	b.words = b.words[8:]
	selector, extension := word&15, word>>4&15
	switch {
	case selector == 0:
		return invalid("a block has selector 0")
	case selector == 15:
		b.shape, b.left = shape{run: true}, int(extension+1)*runLength
		return nil
	case selector != 7 && selector != 8:
		b.shape, b.slots = shape{bits: widths[selector]}, word>>4
		b.left = 60 / b.bits
		return nil
	case extension == 0:
		b.shape = shape{bits: widths[selector]}
	case selector == 7:
		b.shape = extended7[extension]
		b.zeros, b.step = 4, 1
	default:
		b.shape = extended8[extension]
		b.step = 4
	}
	if b.bits == 0 {
		return invalid("a block has selector %d, extended by %d", selector, extension)
	}
	b.slots, b.left = word>>8, 56/b.bits
	return nil
}
