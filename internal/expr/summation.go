package expr

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
)

// Summation adds numbers as MongoDB does: in the widest type met, without losing what rounding would lose on the way. The
// zero Summation is the int 0.
type Summation struct {
	widest  bson.Type
	hi, lo  float64 // the sum of all but the decimals is hi + lo
	special float64 // NaN and infinities, which hi and lo cannot hold
	odd     bool
	decimal *apd.Decimal     // the sum of the decimals, nil without any
	nan     *bson.Decimal128 // the first NaN among them, with its sign
}

// Add adds a number.
func (s *Summation) Add(v bson.Value) {
	s.widen(v.Type)
	switch v.Type {
	case bson.TypeInt32:
		s.addDouble(float64(v.Int32()))
	case bson.TypeInt64:
		n := v.Int64()
		// Both halves are exact as doubles.
		high := n &^ (1<<32 - 1)
		s.addDouble(float64(high))
		s.addDouble(float64(n - high))
	case bson.TypeDouble:
		s.addDouble(v.Double())
	case bson.TypeDecimal:
		if v.IsNaN() && s.nan == nil {
			d := v.Decimal()
			s.nan = &d
		}
		if s.decimal == nil {
			s.decimal = new(apd.Decimal)
		}
		s.decimal = addDecimals(s.decimal, v.Decimal().APD())
	}
}

func (s *Summation) widen(t bson.Type) {
	rank := func(t bson.Type) int {
		switch t {
		case bson.TypeInt64:
			return 1
		case bson.TypeDouble:
			return 2
		case bson.TypeDecimal:
			return 3
		}
		return 0
	}
	if s.widest == 0 || rank(t) > rank(s.widest) {
		s.widest = t
	}
}

func (s *Summation) addDouble(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		s.special += f
		s.odd = true
		return
	}
	hi, lo := twoSum(s.hi, f)
	lo += s.lo
	s.hi, s.lo = twoSum(hi, lo)
	if math.IsInf(s.hi, 0) || math.IsNaN(s.hi) {
		s.special += hi
		s.odd = true
		s.hi, s.lo = 0, 0
	}
}

// twoSum is a + b rounded, and what the rounding lost.
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	bb := sum - a
	return sum, (a - (sum - bb)) + (b - bb)
}

func addDecimals(a, b *apd.Decimal) *apd.Decimal {
	var r apd.Decimal
	if _, err := decimalContext().Add(&r, a, b); err != nil && r.Form == apd.Finite {
		return &apd.Decimal{Form: apd.NaN}
	}
	return &r
}

// Type is the widest type added, int before any.
func (s *Summation) Type() bson.Type {
	if s.widest == 0 {
		return bson.TypeInt32
	}
	return s.widest
}

// Double is the sum as a double.
func (s *Summation) Double() float64 {
	if s.odd {
		return s.special
	}
	return s.hi + s.lo
}

// Int64 is the sum of all but decimals, rounded to an integer, and whether that fits a long.
func (s *Summation) Int64() (n int64, ok bool) {
	if s.odd {
		return 0, false
	}
	if math.Abs(s.hi) < 1<<62 {
		return int64(s.hi) + int64(s.lo), true
	}
	sum, _ := new(big.Float).SetPrec(160).Add(big.NewFloat(s.hi).SetPrec(160), big.NewFloat(s.lo)).Int(nil)
	return sum.Int64(), sum.IsInt64()
}

// Decimal is the sum as a decimal.
func (s *Summation) Decimal() bson.Decimal128 {
	if s.nan != nil {
		return *s.nan
	}
	var rest *apd.Decimal
	switch n, ok := s.Int64(); {
	case s.odd:
		rest = decimalOfDouble(s.special).APD()
	case ok && s.hi == math.Trunc(s.hi) && s.lo == math.Trunc(s.lo):
		rest = apd.New(n, 0)
	default:
		rest = addDecimals(decimalOfDouble(s.hi).APD(), decimalOfDouble(s.lo).APD())
	}
	if s.decimal == nil {
		return bson.DecimalFromAPD(rest)
	}
	return bson.DecimalFromAPD(addDecimals(s.decimal, rest))
}

// Value is the sum in the widest type added; a long that overflows is a double.
func (s *Summation) Value(env *Env) bson.Value {
	switch s.Type() {
	case bson.TypeDecimal:
		return env.Decimal(s.Decimal())
	case bson.TypeDouble:
		return env.Double(s.Double())
	}
	n, ok := s.Int64()
	switch {
	case !ok:
		return env.Double(s.Double())
	case s.Type() == bson.TypeInt64:
		return env.Int64(n)
	}
	return env.Int(n)
}

// decimalContext computes with 34 digits.
func decimalContext() *apd.Context { return &bson.DecimalContext }
