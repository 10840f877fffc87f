package expr

import (
	"math"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
)

const (
	decimalDigits = 34
	// smallestExponent is the least that a decimal may have.
	smallestExponent = -6176
)

// computed is the result of an operation of apd as a decimal: NaN where it has none.
func computed(r *apd.Decimal, err error) bson.Decimal128 {
	if err != nil && r.Form == apd.Finite {
		return bson.DecimalNaN
	}
	return bson.DecimalFromAPD(r)
}

// prefer moves the exponent of an exact result as near to exp as its digits allow, as IEEE 754 wants it.
func prefer(r *apd.Decimal, exp int32) {
	ten := apd.NewBigInt(10)
	if r.Coeff.Sign() == 0 {
		r.Exponent = exp
		return
	}
	var q, rest apd.BigInt
	for r.Exponent < exp {
		if q.QuoRem(&r.Coeff, ten, &rest); rest.Sign() != 0 {
			return
		}
		r.Coeff.Set(&q)
		r.Exponent++
	}
	for digits := r.NumDigits(); r.Exponent > exp && digits < decimalDigits; digits++ {
		r.Coeff.Mul(&r.Coeff, ten)
		r.Exponent--
	}
}

// widest is x written with all the digits that a decimal has, which MongoDB brings about by adding a zero of the smallest exponent.
func widest(x *apd.Decimal) *apd.Decimal {
	switch {
	case x.Form != apd.Finite:
	case x.IsZero():
		x.Exponent = smallestExponent
	default:
		prefer(x, smallestExponent)
	}
	return x
}

// decimalQuotient is x / y.
func decimalQuotient(a, b bson.Decimal128) bson.Decimal128 {
	if a.IsNaN() {
		return a
	}
	x, y := a.APD(), b.APD()
	if y.Form == apd.Infinite && x.Form == apd.Finite {
		return bson.DecimalFromAPD(&apd.Decimal{Negative: x.Negative != y.Negative, Exponent: smallestExponent})
	}
	var r apd.Decimal
	cond, err := decimalContext().Quo(&r, x, y)
	if r.Form == apd.Finite && !cond.Inexact() && err == nil {
		prefer(&r, x.Exponent-y.Exponent)
	}
	return computed(&r, err)
}

func decimalSqrt(x *apd.Decimal) *apd.Decimal {
	if x.Form != apd.Finite {
		return x
	}
	if x.IsZero() {
		return zeroAt(x, int32(floorDiv(int64(x.Exponent), 2)))
	}
	var r, square apd.Decimal
	if _, err := decimalContext().Sqrt(&r, x); err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	if _, err := wideContext().Mul(&square, &r, &r); err == nil && square.Cmp(x) == 0 {
		prefer(&r, int32(floorDiv(int64(x.Exponent), 2)))
	}
	return &r
}

// quantize rounds d to a multiple of ten to the power exp and writes it so; what then has too many digits is NaN.
func quantize(d bson.Decimal128, exp int32, mode apd.Rounder) bson.Decimal128 {
	if d.IsNaN() || d.Inf() != 0 {
		return d
	}
	x := d.APD()
	if x.Sign() != 0 && x.NumDigits()+int64(x.Exponent)-int64(exp) > decimalDigits+1 {
		return bson.DecimalNaN
	}
	if x.Exponent < exp {
		drop := int64(exp) - int64(x.Exponent)
		if most := x.NumDigits() + 2; drop > most { // so small that only its sign counts
			x.Coeff.SetInt64(int64(x.Coeff.Sign()))
			drop = 2
		}
		roundOff(x, drop, mode)
	} else if x.Coeff.Sign() != 0 {
		pow := new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(x.Exponent)-int64(exp)), nil)
		x.Coeff.Mul(&x.Coeff, pow)
	}
	x.Exponent = exp
	if x.NumDigits() > decimalDigits {
		return bson.DecimalNaN
	}
	return bson.DecimalFromAPD(x)
}

// roundOff takes digits off the end of x's coefficient.
func roundOff(x *apd.Decimal, digits int64, mode apd.Rounder) {
	pow := new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(digits), nil)
	var rest apd.BigInt
	x.Coeff.QuoRem(&x.Coeff, pow, &rest)
	if rest.Sign() == 0 {
		return
	}
	half := rest.Mul(&rest, apd.NewBigInt(2)).Cmp(pow)
	if mode.ShouldAddOne(&x.Coeff, x.Negative, half) {
		x.Coeff.Add(&x.Coeff, apd.NewBigInt(1))
	}
}

// wholeOf rounds d to an integer; one that is integral stays as it is.
func wholeOf(d bson.Decimal128, mode apd.Rounder) bson.Decimal128 {
	if d.APD().Exponent >= 0 {
		return d
	}
	return quantize(d, 0, mode)
}

// decimalOfDouble is f with all the digits that a decimal has.
func decimalOfDouble(f float64) bson.Decimal128 {
	if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return bson.DecimalFromFloat(f)
	}
	x, _, err := apd.NewFromString(strconv.FormatFloat(f, 'e', decimalDigits-1, 64))
	if err != nil {
		return bson.DecimalNaN
	}
	prefer(x, 0)
	return bson.DecimalFromAPD(x)
}
