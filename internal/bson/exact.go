package bson

import (
	"math"

	"github.com/cockroachdb/apd/v3"
)

// DecimalFromFloatExact is v with every digit that it has, rounded to 34: how MongoDB's sums and averages turn doubles into
// decimals. The exponent is as near to zero as it can be.
func DecimalFromFloatExact(v float64) Decimal128 {
	switch {
	case math.IsNaN(v):
		return DecimalNaN
	case math.IsInf(v, 0):
		return DecimalInf(v < 0)
	case v == 0:
		d := DecimalFromInt64(0)
		if math.Signbit(v) {
			d.High |= 1 << 63
		}
		return d
	}
	r := exact(Double(v))
	var short apd.Decimal
	short.Reduce(r)
	if short.Exponent > 0 && int64(short.Exponent)+short.NumDigits() <= 34 {
		var q apd.Decimal
		ctx := DecimalContext
		if _, err := ctx.Quantize(&q, &short, 0); err == nil {
			return DecimalFromAPD(&q)
		}
	}
	return DecimalFromAPD(&short)
}

// RoundInt64 is a number as MongoDB reads options of a whole number: doubles are cut towards zero, decimals rounded half to
// even; NaN is 0, what is out of range the nearest long.
func (v Value) RoundInt64() int64 {
	if v.Type != TypeDecimal {
		return v.TruncInt64()
	}
	d := v.Decimal()
	if d.IsNaN() || d.Inf() != 0 || math.Abs(d.Float64()) >= 1<<63 {
		return v.TruncInt64()
	}
	var r apd.Decimal
	ctx := apd.BaseContext.WithPrecision(40)
	ctx.Rounding = apd.RoundHalfEven
	if _, err := ctx.RoundToIntegralValue(&r, d.APD()); err != nil {
		return v.TruncInt64()
	}
	n, err := r.Int64()
	if err != nil {
		return v.TruncInt64()
	}
	return n
}
