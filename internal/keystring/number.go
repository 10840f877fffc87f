package keystring

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
)

// A number other than zero and NaN is its tag and its magnitude; a negative one's magnitude is inverted. The magnitude is
// first rounded toward zero to a double d, whose 63 bits (exponent and mantissa) order as it does. They are written seven
// a byte from the top, each byte shifted up with its lowest bit set when more follows; zero bytes at the end are left out.
// So small integers are short: up to 15 they take two bytes at most, up to 2047 three, up to 262143 four, up to 32 bits six.
//
// When d is not all of the magnitude, all nine bytes say that more follows, and it does: the magnitude itself in decimal,
// as the exponent of its first digit (two bytes, biased) and its digits without the zeros at the end, two a byte (1 to
// 100 for 00 to 99), and 00. Only doubles are always exact, so 10 or 34 significant digits hold every other number.

const (
	doubleBytes   = 9
	exponentBias  = 0x4000
	maxDigits     = 34
	exactInt      = 1 << 53
	maxDoubleBits = 0x7FEFFFFFFFFFFFFF
)

// digits are those of c.ddd × 10^exponent without zeros at the end, as text.
type digits struct {
	text     [maxDigits + 6]byte // maxDigits, and what strconv may take beside them
	n        int
	exponent int
}

func appendInt(dst []byte, n int64) []byte {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	return appendUint(dst, n < 0, magnitude)
}

func appendUint(dst []byte, negative bool, magnitude uint64) []byte {
	if magnitude == 0 {
		return append(dst, tagZero)
	}
	cut := magnitude
	if magnitude >= exactInt {
		drop := bits.Len64(magnitude) - 53
		cut = magnitude >> drop << drop
	}
	d := math.Float64bits(float64(cut))
	if cut == magnitude {
		return appendExact(dst, negative, d)
	}
	var decimal digits
	decimal.setUint(magnitude)
	return appendInexact(dst, negative, d, &decimal)
}

func (d *digits) setUint(n uint64) {
	text := strconv.AppendUint(d.text[:0], n, 10)
	d.n, d.exponent = len(text), len(text)-1
	d.trim()
}

func (d *digits) trim() {
	for d.n > 0 && d.text[d.n-1] == '0' {
		d.n--
	}
}

func appendDouble(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, tagNaN)
	case f == 0:
		return append(dst, tagZero)
	}
	return appendExact(dst, f < 0, math.Float64bits(f)&^signBit)
}

func appendTag(dst []byte, negative bool) []byte {
	if negative {
		return append(dst, tagNegative)
	}
	return append(dst, tagPositive)
}

func appendExact(dst []byte, negative bool, d uint64) []byte {
	dst = appendTag(dst, negative)
	start := len(dst)
	rest := d << 1 // the next seven bits stand on top
	for {
		b := byte(rest>>56) &^ 1
		if rest <<= 7; rest == 0 {
			dst = append(dst, b)
			break
		}
		dst = append(dst, b|1)
	}
	if negative {
		invert(dst[start:])
	}
	return dst
}

func appendInexact(dst []byte, negative bool, d uint64, decimal *digits) []byte {
	dst = appendTag(dst, negative)
	start := len(dst)
	for i := range doubleBytes {
		dst = append(dst, byte(d>>(56-7*i))<<1|1)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(decimal.exponent+exponentBias))
	decimal.text[decimal.n] = '0' // the partner of an odd last digit
	for i := 0; i < decimal.n; i += 2 {
		dst = append(dst, (decimal.text[i]-'0')*10+decimal.text[i+1]-'0'+1)
	}
	dst = append(dst, 0)
	if negative {
		invert(dst[start:])
	}
	return dst
}
