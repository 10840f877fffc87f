package vectorsearch

import (
	"math"
	"math/bits"
)

// Similarity is how alike two vectors are.
type Similarity uint8

// The ways to tell.
const (
	Cosine Similarity = iota + 1
	DotProduct
	Euclidean
)

var similarities = map[string]Similarity{"cosine": Cosine, "dotProduct": DotProduct, "euclidean": Euclidean}

// score is how alike a, which measure has seen, and b are, which have the same kind and as many dimensions: the larger the more. Of vectors of
// length 1, and by Euclidean of all, it is between 0 and 1. It is computed in the precision that the search process of MongoDB tells it in.
func (s Similarity) score(a, b *Vector) float32 {
	switch a.Kind {
	case Int8:
		return s.scoreInt8(a.bytes, b.bytes)
	case PackedBit:
		return scoreBits(a.bytes, b.bytes)
	}
	switch s {
	case Cosine:
		return (1 + cosine(a.floats, b.floats, a.square)) / 2
	case DotProduct:
		product := dot(a.floats, b.floats)
		if !isFinite(product) {
			wide, _, _ := products(a.floats, b.floats)
			product = float32(wide)
		}
		return max((1+product)/2, 0)
	}
	return 1 / (1 + squareDistance(a.floats, b.floats))
}

// measure remembers how long a vector is.
func (v *Vector) measure() { v.square = dot(v.floats, v.floats) }

// The loops have several sums, so that one addition need not wait for the one before it.

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// cosine is that of a, whose square is known, and b.
func cosine(a, b []float32, aa float32) float32 {
	var ab0, ab1, bb0, bb1 float32
	b = b[:len(a)]
	i := 0
	for ; i+2 <= len(a); i += 2 {
		ab0 += a[i] * b[i]
		bb0 += b[i] * b[i]
		ab1 += a[i+1] * b[i+1]
		bb1 += b[i+1] * b[i+1]
	}
	for ; i < len(a); i++ {
		ab0 += a[i] * b[i]
		bb0 += b[i] * b[i]
	}
	ab, bb := ab0+ab1, bb0+bb1
	if squares := aa * bb; squares == 0 || !isFinite(squares) || !isFinite(ab) { // too small or too large for this precision
		wideAB, wideAA, wideBB := products(a, b)
		return float32(wideAB / (math.Sqrt(wideAA) * math.Sqrt(wideBB)))
	}
	return float32(float64(ab) / math.Sqrt(float64(aa)*float64(bb)))
}

// products are those of a and b, and of each with itself, in a precision in which none is beyond its bounds.
func products(a, b []float32) (ab, aa, bb float64) {
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab, aa, bb
}

func squareDistance(a, b []float32) float32 {
	var s0, s1 float32
	b = b[:len(a)]
	i := 0
	for ; i+2 <= len(a); i += 2 {
		d0, d1 := a[i]-b[i], a[i+1]-b[i+1]
		s0 += d0 * d0
		s1 += d1 * d1
	}
	for ; i < len(a); i++ {
		d := a[i] - b[i]
		s0 += d * d
	}
	return s0 + s1
}

// largestInt8Product bounds the product of two components that are bytes.
const largestInt8Product = 1 << 15

func (s Similarity) scoreInt8(a, b []byte) float32 {
	var product, aa, bb, distance int64
	for i := range a {
		x, y := int64(int8(a[i])), int64(int8(b[i]))
		product += x * y
		aa += x * x
		bb += y * y
		distance += (x - y) * (x - y)
	}
	switch s {
	case Cosine:
		return (1 + float32(float64(product)/math.Sqrt(float64(aa)*float64(bb)))) / 2
	case DotProduct:
		return 0.5 + float32(product)/float32(int64(len(a))*largestInt8Product)
	}
	return 1 / (1 + float32(distance))
}

// scoreBits is the share of the bits that are the same.
func scoreBits(a, b []byte) float32 {
	differing := 0
	for i := range a {
		differing += bits.OnesCount8(a[i] ^ b[i])
	}
	all := 8 * len(a)
	return float32(all-differing) / float32(all)
}
