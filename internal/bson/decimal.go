package bson

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"
	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// Decimal128 is an IEEE 754 decimal of 34 digits.
type Decimal128 struct{ High, Low uint64 }

// DecimalContext computes as MongoDB does: 34 digits, half to even, exponents of Decimal128.
var DecimalContext = apd.Context{
	Precision:   34,
	MaxExponent: 6144,
	MinExponent: -6143,
	Rounding:    apd.RoundHalfEven,
}

// Decimal is v as a value.
func Decimal(v Decimal128) Value {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), v.Low)
	return Value{TypeDecimal, binary.LittleEndian.AppendUint64(b, v.High)}
}

// Decimal is the value of a decimal.
func (v Value) Decimal() Decimal128 {
	return Decimal128{High: binary.LittleEndian.Uint64(v.Data[8:]), Low: binary.LittleEndian.Uint64(v.Data)}
}

// ParseDecimal128 reads a decimal as MongoDB writes it: digits, exponent, Infinity, NaN.
func ParseDecimal128(s string) (Decimal128, error) {
	d, err := driver.ParseDecimal128(s)
	if err != nil {
		return Decimal128{}, err
	}
	h, l := d.GetBytes()
	return Decimal128{h, l}, nil
}

// String is d as MongoDB writes it.
func (d Decimal128) String() string { return driver.NewDecimal128(d.High, d.Low).String() }

// IsNaN says whether d is not a number.
func (d Decimal128) IsNaN() bool { return d.High>>58&31 == 31 }

// Inf is 1 or -1 for an infinity, else 0.
func (d Decimal128) Inf() int {
	if d.High>>58&31 != 30 {
		return 0
	}
	if d.Negative() {
		return -1
	}
	return 1
}

// Negative says whether d's sign bit is set.
func (d Decimal128) Negative() bool { return d.High>>63 != 0 }

// IsZero says whether d is a zero of either sign.
func (d Decimal128) IsZero() bool {
	if d.IsNaN() || d.Inf() != 0 {
		return false
	}
	hi, lo, _ := d.parts()
	return hi == 0 && lo == 0
}

// parts is the coefficient and exponent of a finite d. Coefficients over 34 digits are not canonical and count as zero.
func (d Decimal128) parts() (hi, lo uint64, exp int) {
	if d.High>>61&3 == 3 {
		return 0, 0, int(d.High>>47&(1<<14-1)) - 6176
	}
	hi, lo, exp = d.High&(1<<49-1), d.Low, int(d.High>>49&(1<<14-1))-6176
	const maxHi, maxLo = 0x1ed09bead87c0, 0x378d8e63ffffffff
	if hi > maxHi || hi == maxHi && lo > maxLo {
		return 0, 0, exp
	}
	return hi, lo, exp
}

// APD is d for computing.
func (d Decimal128) APD() *apd.Decimal {
	r := &apd.Decimal{Negative: d.Negative()}
	switch {
	case d.IsNaN():
		r.Form = apd.NaN
		r.Negative = false
	case d.Inf() != 0:
		r.Form = apd.Infinite
	default:
		hi, lo, exp := d.parts()
		r.Exponent = int32(exp)
		r.Coeff.SetUint64(hi)
		if hi != 0 {
			r.Coeff.Lsh(&r.Coeff, 64)
			r.Coeff.Add(&r.Coeff, new(apd.BigInt).SetUint64(lo))
		} else {
			r.Coeff.SetUint64(lo)
		}
	}
	return r
}

// DecimalNaN is the decimal that is not a number.
var DecimalNaN = Decimal128{High: 0x7c << 56}

// DecimalInf is the infinity of the given sign.
func DecimalInf(negative bool) Decimal128 {
	if negative {
		return Decimal128{High: 0xf8 << 56}
	}
	return Decimal128{High: 0x78 << 56}
}

// DecimalFromAPD rounds a to 34 digits and the range of Decimal128: too large is infinite, too small is zero.
func DecimalFromAPD(a *apd.Decimal) Decimal128 {
	switch a.Form {
	case apd.NaN, apd.NaNSignaling:
		return DecimalNaN
	case apd.Infinite:
		return DecimalInf(a.Negative)
	}
	var r apd.Decimal
	if a.NumDigits() > 34 {
		ctx := DecimalContext
		ctx.MaxExponent, ctx.MinExponent = apd.MaxExponent, apd.MinExponent
		if _, err := ctx.Round(&r, a); err != nil {
			return DecimalNaN
		}
	} else {
		r.Set(a)
	}
	return fitExponent(&r)
}

// fitExponent moves r's exponent into what Decimal128 can hold and packs it.
func fitExponent(r *apd.Decimal) Decimal128 {
	const minExp, maxExp = -6176, 6111
	ten := apd.NewBigInt(10)
	if r.Coeff.Sign() == 0 {
		r.Exponent = max(minExp, min(maxExp, r.Exponent))
	}
	if r.Exponent > maxExp {
		if int64(r.Exponent)-maxExp+r.NumDigits() > 34 {
			return DecimalInf(r.Negative)
		}
		for r.Exponent > maxExp {
			r.Coeff.Mul(&r.Coeff, ten)
			r.Exponent--
		}
	}
	if r.Exponent < minExp {
		drop := int64(minExp) - int64(r.Exponent)
		if drop > r.NumDigits()+1 {
			r.Coeff.SetInt64(0)
			r.Exponent = minExp
		} else {
			ctx := apd.Context{Precision: 40, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Rounding: apd.RoundHalfEven}
			var q apd.Decimal
			if _, err := ctx.Quantize(&q, r, minExp); err != nil {
				return DecimalNaN
			}
			q.Negative = r.Negative
			r = &q
		}
	}
	b := r.Coeff.MathBigInt()
	lo := new(big.Int).And(b, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := new(big.Int).Rsh(b, 64).Uint64()
	d := Decimal128{High: hi | uint64(r.Exponent+6176)<<49, Low: lo}
	if r.Negative {
		d.High |= 1 << 63
	}
	return d
}

// DecimalFromInt64 is v exactly.
func DecimalFromInt64(v int64) Decimal128 {
	d := Decimal128{High: 6176 << 49, Low: uint64(v)}
	if v < 0 {
		d.High |= 1 << 63
		d.Low = uint64(-v)
	}
	return d
}

// DecimalFromFloat rounds v to 15 digits and keeps all of them, as MongoDB does when a double meets a decimal: 2.5 is
// 2.50000000000000.
func DecimalFromFloat(v float64) Decimal128 {
	switch {
	case math.IsNaN(v):
		return DecimalNaN
	case math.IsInf(v, 0):
		return DecimalInf(v < 0)
	}
	if v == 0 {
		return Decimal128{High: 6176<<49 | math.Float64bits(v)&(1<<63)}
	}
	a, _, err := apd.NewFromString(formatFloat(v, 'e', 14))
	if err != nil {
		return DecimalNaN
	}
	return DecimalFromAPD(a)
}

// Float64 is the double nearest to d.
func (d Decimal128) Float64() float64 {
	switch {
	case d.IsNaN():
		return math.NaN()
	case d.Inf() != 0:
		return math.Inf(d.Inf())
	case d.IsZero():
		if d.Negative() {
			return math.Copysign(0, -1)
		}
		return 0
	}
	f, _ := d.APD().Float64() // out of range gives the infinity or zero that is wanted
	return f
}
