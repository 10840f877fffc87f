package accumulator

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
)

// doubleDouble adds doubles with twice their precision: sum holds the rounded total and addend what rounding lost (Knuth's
// TwoSum), as MongoDB's sums do. plain is the simple sum, which infinities leave meaningful when sum is not.
type doubleDouble struct{ sum, addend, plain float64 }

func (d *doubleDouble) add(x float64) {
	d.plain += x
	s := d.sum + x
	b := s - d.sum
	d.addend += (d.sum - (s - b)) + (x - b)
	d.sum = s
}

// addInt splits n so that each half is exact.
func (d *doubleDouble) addInt(n int64) {
	low := n % (1 << 32)
	d.add(float64(low))
	d.add(float64(n - low))
}

func (d *doubleDouble) merge(o doubleDouble) {
	plain := d.plain + o.plain
	d.add(o.sum)
	d.add(o.addend)
	d.plain = plain
}

// value is the total as a double.
func (d *doubleDouble) value() float64 {
	if math.IsNaN(d.sum) || math.IsNaN(d.addend) {
		return d.plain
	}
	return d.sum + d.addend
}

// int64 is the total as a long, when it is one that fits.
func (d *doubleDouble) int64() (int64, bool) {
	sum := d.sum + d.addend
	addend := d.addend - (sum - d.sum)
	const limit = 1 << 63
	switch {
	case math.IsNaN(sum) || sum > limit || sum < -limit:
		return 0, false
	case sum == limit:
		if addend >= 0 {
			return 0, false
		}
		return math.MaxInt64 + int64(addend) + 1, true
	case sum == -limit:
		if addend < 0 {
			return 0, false
		}
		return math.MinInt64 + int64(addend), true
	}
	a, b := int64(sum), int64(addend)
	s := a + b
	return s, (s > a) == (b > 0) || b == 0
}

// decimal is the total with all its digits, rounded to 34.
func (d *doubleDouble) decimal() bson.Decimal128 {
	if math.IsNaN(d.sum) || math.IsNaN(d.addend) {
		return bson.DecimalFromFloatExact(d.plain)
	}
	sum := bson.DecimalFromFloatExact(d.sum)
	if d.addend == 0 {
		return sum
	}
	return addDecimals(sum, bson.DecimalFromFloatExact(d.addend))
}

func addDecimals(a, b bson.Decimal128) bson.Decimal128 {
	var r apd.Decimal
	ctx := bson.DecimalContext
	if _, err := ctx.Add(&r, a.APD(), b.APD()); err != nil && r.Form == apd.Finite {
		return bson.DecimalNaN
	}
	return bson.DecimalFromAPD(&r)
}

// divideDecimal is d/n; a quotient that is exact has no more zeros behind the point than d and n ask for.
func divideDecimal(d bson.Decimal128, n bson.Decimal128) bson.Decimal128 {
	var q apd.Decimal
	a, b := d.APD(), n.APD()
	ctx := bson.DecimalContext
	cond, _ := ctx.Quo(&q, a, b) // NaN and infinities come out as themselves
	if q.Form == apd.Finite && !cond.Inexact() {
		ten, digit := apd.NewBigInt(10), new(apd.BigInt)
		for q.Exponent < a.Exponent-b.Exponent {
			var rest apd.BigInt
			digit.QuoRem(&q.Coeff, ten, &rest)
			if rest.Sign() != 0 {
				break
			}
			q.Coeff.Set(digit)
			q.Exponent++
		}
	}
	return bson.DecimalFromAPD(&q)
}
