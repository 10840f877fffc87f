package bson

// placeStride is how many elements lie between two whose places are remembered.
const placeStride = 32

// Places finds elements of an array by their positions, and remembers where some of them lie: whoever asks for many does not walk the array from
// its first element each time. The array must not change meanwhile.
type Places struct {
	array Doc
	marks []uint32 // where each placeStride-th element begins, as far as the array was walked
	count int      // of the elements; -1 where the end was not reached yet
}

// PlacesOf is nothing but the array yet. It takes marks over from one that is not used any more.
func PlacesOf(array Doc, old Places) Places {
	return Places{array: array, marks: append(old.marks[:0], 4), count: -1}
}

// Are says whether they are those of the very bytes of an array.
func (p *Places) Are(array Doc) bool {
	return len(p.array) == len(array) && len(array) > 0 && &p.array[0] == &array[0]
}

// maxMarksKept is how many marks one keeps that has forgotten its array.
const maxMarksKept = 1024

// Forget lets the array go.
func (p *Places) Forget() {
	if p.array = nil; cap(p.marks) > maxMarksKept {
		p.marks = nil
	}
}

// from is an iterator before the element at position at, which is i or comes before it.
func (p *Places) from(i int) (it Iter, at int) {
	if len(p.array) < len(EmptyDoc) {
		return Iter{}, 0
	}
	k := min(i/placeStride, len(p.marks)-1)
	return Iter{rest: p.array[p.marks[k] : len(p.array)-1]}, k * placeStride
}

// walk calls f with the position and value of each element from i on, which is not negative, until it says no.
func (p *Places) walk(i int, f func(at int, v Value) bool) {
	if p.count >= 0 && i >= p.count {
		return
	}
	it, at := p.from(i)
	for ; it.Next(); at++ {
		if next := at + 1; next == len(p.marks)*placeStride {
			p.marks = append(p.marks, uint32(len(p.array)-1-len(it.rest)))
		}
		if at >= i && !f(at, it.Value()) {
			return
		}
	}
	p.count = at
}

// Index is the value at position i, or a missing Value.
func (p *Places) Index(i int) (v Value) {
	p.walk(i, func(_ int, at Value) bool {
		v = at
		return false
	})
	return v
}

// Count is the number of elements.
func (p *Places) Count() int {
	if p.count < 0 {
		p.walk((len(p.marks)-1)*placeStride, func(int, Value) bool { return true })
	}
	return p.count
}

// Values appends the values at the positions from start on and before end to dst.
func (p *Places) Values(dst []Value, start, end int) []Value {
	if start >= end {
		return dst
	}
	p.walk(start, func(at int, v Value) bool {
		dst = append(dst, v)
		return at+1 < end
	})
	return dst
}
