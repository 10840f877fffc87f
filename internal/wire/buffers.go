package wire

import (
	"math/bits"
	"sync"
)

// Size classes are powers of two. The smallest holds an everyday command; the largest holds MaxMessageSize.
const (
	minClassBits = 12
	maxClassBits = 26
)

// buffer is a pooled byte slice. It travels as a pointer so that giving it back allocates nothing.
type buffer struct {
	data []byte
}

// buffers keeps slices for reuse, by size class. What is unused for two garbage collections is let go.
type buffers struct {
	classes [maxClassBits - minClassBits + 1]sync.Pool
}

// get returns an empty buffer with room for size bytes, size being at most 1<<maxClassBits.
func (p *buffers) get(size int) *buffer {
	class := classOf(size)
	if b, ok := p.classes[class].Get().(*buffer); ok {
		return b
	}
	return &buffer{data: make([]byte, 0, 1<<(class+minClassBits))}
}

func (p *buffers) put(b *buffer) {
	if b == nil || bits.OnesCount(uint(cap(b.data))) != 1 {
		return // append moved it to a slice of its own making, which is of no class
	}
	b.data = b.data[:0]
	p.classes[classOf(cap(b.data))].Put(b)
}

// grow moves what b holds into a buffer with room for size bytes.
func (p *buffers) grow(b *buffer, size int) *buffer {
	larger := p.get(size)
	larger.data = append(larger.data, b.data...)
	p.put(b)
	return larger
}

func classOf(size int) int {
	return max(bits.Len(uint(max(size, 1)-1)), minClassBits) - minClassBits
}
