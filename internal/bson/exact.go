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
