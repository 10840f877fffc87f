package keystring

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/ebbdb/ebb/internal/bson"
)

func appendDecimal(dst []byte, d bson.Decimal128) []byte {
	switch {
	case d.IsNaN():
		return append(dst, tagNaN)
	case d.Inf() != 0:
		return appendDouble(dst, math.Inf(d.Inf()))
	}
	hi, lo, exp := d.Parts()
	if hi == 0 && lo == 0 {
		return append(dst, tagZero)
	}
	hi, lo, zeros := trimZeros(hi, lo)
	exp += zeros
	if n, ok := smallUint(hi, lo, exp); ok {
		return appendUint(dst, d.Negative(), n)
	}
	var decimal digits
	decimal.setUint128(hi, lo, exp)
	f, exact := decimal.truncate(hi, lo, exp)
	if exact {
		return appendExact(dst, d.Negative(), math.Float64bits(f))
	}
	return appendInexact(dst, d.Negative(), math.Float64bits(f), &decimal)
}

// smallUint is a number as an integer of 64 bits, if it is one.
func smallUint(hi, lo uint64, exp int) (uint64, bool) {
	if hi != 0 || exp < 0 || exp > 19 {
		return 0, false
	}
	for ; exp > 0; exp-- {
		over, product := bits.Mul64(lo, 10)
		if over != 0 {
			return 0, false
		}
		lo = product
	}
	return lo, true
}

// trimZeros divides by ten as long as nothing is lost.
func trimZeros(hi, lo uint64) (uint64, uint64, int) {
	for zeros := 0; ; zeros++ {
		h, l, digit := divide10(hi, lo)
		if digit != 0 {
			return hi, lo, zeros
		}
		hi, lo = h, l
	}
}

func divide10(hi, lo uint64) (qhi, qlo, digit uint64) {
	qhi, digit = hi/10, hi%10
	qlo, digit = bits.Div64(digit, lo, 10)
	return qhi, qlo, digit
}

// setUint128 sets the digits of a coefficient without zeros at its end, times ten to the exp.
func (d *digits) setUint128(hi, lo uint64, exp int) {
	at := maxDigits
	for hi != 0 || lo != 0 {
		var digit uint64
		hi, lo, digit = divide10(hi, lo)
		at--
		d.text[at] = '0' + byte(digit)
	}
	d.n = copy(d.text[:], d.text[at:maxDigits])
	d.exponent = exp + d.n - 1
}

// truncate rounds toward zero to a double. hi, lo and exp are the same number again.
func (d *digits) truncate(hi, lo uint64, exp int) (f float64, exact bool) {
	f = d.nearest(exp)
	if math.IsInf(f, 0) {
		return math.Float64frombits(maxDoubleBits), false
	}
	if f == 0 {
		return 0, false
	}
	switch order := compareDouble(f, hi, lo, exp); {
	case order > 0:
		return math.Nextafter(f, 0), false
	default:
		return f, order == 0
	}
}

// nearest is the double nearest to the digits as an integer times ten to the exp.
func (d *digits) nearest(exp int) float64 {
	var buf [maxDigits + 8]byte
	text := append(append(buf[:0], d.text[:d.n]...), 'e')
	text = strconv.AppendInt(text, int64(exp), 10)
	f, _ := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64) // out of range gives the infinity or zero wanted
	return f
}

// compareDouble compares a finite f > 0 exactly with a decimal that f is next to.
func compareDouble(f float64, hi, lo uint64, exp int) int {
	mantissa, power := math.Frexp(f)
	m, e := uint64(mantissa*(1<<53)), power-53 // f = m·2^e
	// f : c·10^exp is the same as m·5^-exp·2^(e-exp) : c, and with an exponent in (-28, 0] and both sides near to each
	// other nothing here needs more than 117 bits.
	if exp > 0 || exp <= -28 {
		return compareBig(m, e, hi, lo, exp)
	}
	five := uint64(1)
	for range -exp {
		five *= 5
	}
	lhi, llo := bits.Mul64(m, five)
	if shift := e - exp; shift >= 0 {
		lhi, llo = shiftLeft(lhi, llo, shift)
	} else {
		hi, lo = shiftLeft(hi, lo, -shift)
	}
	switch {
	case lhi != hi:
		return sign(lhi > hi)
	case llo != lo:
		return sign(llo > lo)
	}
	return 0
}

func sign(greater bool) int {
	if greater {
		return 1
	}
	return -1
}

func shiftLeft(hi, lo uint64, n int) (uint64, uint64) {
	if n >= 64 {
		return lo << (n - 64), 0
	}
	return hi<<n | lo>>(64-n), lo << n
}

// compareBig is compareDouble where 128 bits do not do. Both sides are finite doubles about, so below 1,500 bits or so.
func compareBig(m uint64, e int, hi, lo uint64, exp int) int {
	left := new(big.Int).SetUint64(m)
	right := new(big.Int).SetUint64(hi)
	right.Lsh(right, 64).Or(right, new(big.Int).SetUint64(lo))
	five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(max(exp, -exp))), nil)
	if exp < 0 {
		left.Mul(left, five)
	} else {
		right.Mul(right, five)
	}
	if shift := e - exp; shift >= 0 {
		left.Lsh(left, uint(shift))
	} else {
		right.Lsh(right, uint(-shift))
	}
	return left.Cmp(right)
}
