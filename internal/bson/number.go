package bson

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"github.com/cockroachdb/apd/v3"
)

// AsDouble is a number as a double, rounded where it must.
func (v Value) AsDouble() float64 {
	switch v.Type {
	case TypeInt32:
		return float64(v.Int32())
	case TypeInt64:
		return float64(v.Int64())
	case TypeDouble:
		return v.Double()
	case TypeDecimal:
		return v.Decimal().Float64()
	}
	return 0
}

// AsDecimal is a number as a decimal.
func (v Value) AsDecimal() Decimal128 {
	switch v.Type {
	case TypeInt32:
		return DecimalFromInt64(int64(v.Int32()))
	case TypeInt64:
		return DecimalFromInt64(v.Int64())
	case TypeDouble:
		return DecimalFromFloat(v.Double())
	case TypeDecimal:
		return v.Decimal()
	}
	return DecimalNaN
}

// AsInt64 is a number as an integer, and whether it is one exactly.
func (v Value) AsInt64() (n int64, exact bool) {
	switch v.Type {
	case TypeInt32:
		return int64(v.Int32()), true
	case TypeInt64:
		return v.Int64(), true
	case TypeDouble:
		f := v.Double()
		if f >= -(1<<63) && f < 1<<63 && f == math.Trunc(f) {
			return int64(f), true
		}
	case TypeDecimal:
		return decimalInt64(v.Decimal())
	}
	return 0, false
}

func decimalInt64(d Decimal128) (int64, bool) {
	if d.IsNaN() || d.Inf() != 0 {
		return 0, false
	}
	var r apd.Decimal
	r.Reduce(d.APD())
	if r.Exponent < 0 || r.Exponent > 19 {
		return 0, r.IsZero()
	}
	n, err := r.Int64()
	return n, err == nil
}

// TruncInt64 is a number cut to an integer towards zero and clamped to the range of a long; NaN is 0.
func (v Value) TruncInt64() int64 {
	switch v.Type {
	case TypeInt32:
		return int64(v.Int32())
	case TypeInt64:
		return v.Int64()
	case TypeDouble:
		return truncFloat(v.Double())
	case TypeDecimal:
		d := v.Decimal()
		if d.IsNaN() {
			return 0
		}
		var r apd.Decimal
		ctx := apd.BaseContext.WithPrecision(40)
		ctx.Rounding = apd.RoundDown
		if d.Inf() == 0 && math.Abs(d.Float64()) < 1<<63 {
			if _, err := ctx.RoundToIntegralValue(&r, d.APD()); err == nil {
				if n, err := r.Int64(); err == nil {
					return n
				}
			}
		}
		return truncFloat(d.Float64())
	}
	return 0
}

func truncFloat(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= 1<<63:
		return math.MaxInt64
	case f < -(1 << 63):
		return math.MinInt64
	}
	return int64(f)
}

// IsNaN says whether v is a number that is NaN.
func (v Value) IsNaN() bool {
	return v.Type == TypeDouble && math.IsNaN(v.Double()) || v.Type == TypeDecimal && v.Decimal().IsNaN()
}

// IsIntegral says whether v is a finite number without a fraction.
func (v Value) IsIntegral() bool {
	switch v.Type {
	case TypeInt32, TypeInt64:
		return true
	case TypeDouble:
		f := v.Double()
		return !math.IsInf(f, 0) && f == math.Trunc(f)
	case TypeDecimal:
		d := v.Decimal()
		if d.IsNaN() || d.Inf() != 0 {
			return false
		}
		var r apd.Decimal
		r.Reduce(d.APD())
		return r.Exponent >= 0
	}
	return false
}

// wider is the type in which numbers of types a and b meet.
func wider(a, b Type) Type {
	switch {
	case a == TypeDecimal || b == TypeDecimal:
		return TypeDecimal
	case a == TypeDouble || b == TypeDouble:
		return TypeDouble
	case a == TypeInt64 || b == TypeInt64:
		return TypeInt64
	}
	return TypeInt32
}

// Add is a + b as MongoDB adds: in the wider type; an int that overflows becomes a long, a long that overflows is
// reported by ok = false with the sum as a double.
func Add(a, b Value) (sum Value, ok bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		s := x + y
		return s, (s > x) == (y > 0)
	}, func(x, y float64) float64 { return x + y }, DecimalContext.Add)
}

// Sub is a - b by the rules of Add.
func Sub(a, b Value) (diff Value, ok bool) {
	return arith(a, b, func(x, y int64) (int64, bool) {
		s := x - y
		return s, (s < x) == (y > 0)
	}, func(x, y float64) float64 { return x - y }, DecimalContext.Sub)
}

// Mul is a * b by the rules of Add.
func Mul(a, b Value) (product Value, ok bool) {
	return arith(a, b, mul64, func(x, y float64) float64 { return x * y }, DecimalContext.Mul)
}

func mul64(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64)
}

func arith(a, b Value, ints func(x, y int64) (int64, bool), floats func(x, y float64) float64,
	decimals func(d, x, y *apd.Decimal) (apd.Condition, error)) (Value, bool) {
	switch t := wider(a.Type, b.Type); t {
	case TypeDecimal:
		var r apd.Decimal
		if _, err := decimals(&r, a.AsDecimal().APD(), b.AsDecimal().APD()); err != nil && r.Form == apd.Finite && r.IsZero() {
			return Decimal(DecimalNaN), true
		}
		return Decimal(DecimalFromAPD(&r)), true
	case TypeDouble:
		return Double(floats(a.AsDouble(), b.AsDouble())), true
	default:
		x, _ := a.AsInt64()
		y, _ := b.AsInt64()
		n, ok := ints(x, y)
		if !ok {
			return Double(floats(float64(x), float64(y))), false
		}
		if t == TypeInt32 && n >= math.MinInt32 && n <= math.MaxInt32 {
			return Int32(int32(n)), true
		}
		return Int64(n), true
	}
}

// CompareNumbers compares numbers of any types exactly; NaN is below all others and equal to itself.
func CompareNumbers(a, b Value) int {
	if a.Type == TypeInt32 && b.Type == TypeInt32 {
		return cmpOrdered(a.Int32(), b.Int32())
	}
	an, bn := a.IsNaN(), b.IsNaN()
	if an || bn {
		return boolInt(bn) - boolInt(an)
	}
	switch {
	case a.Type == TypeDecimal || b.Type == TypeDecimal:
		return compareDecimals(a, b)
	case a.Type == TypeDouble && b.Type == TypeDouble:
		return cmpOrdered(a.Double(), b.Double())
	case a.Type == TypeDouble:
		n, _ := b.AsInt64()
		return -compareIntDouble(n, a.Double())
	case b.Type == TypeDouble:
		n, _ := a.AsInt64()
		return compareIntDouble(n, b.Double())
	}
	x, _ := a.AsInt64()
	y, _ := b.AsInt64()
	return cmpOrdered(x, y)
}

func compareIntDouble(n int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -(1 << 63):
		return 1
	}
	t := math.Trunc(f)
	if c := cmpOrdered(n, int64(t)); c != 0 {
		return c
	}
	return cmpOrdered(t, f)
}

// compareDecimals compares where at least one side is a decimal and neither is NaN. Far apart values are told by their
// doubles; near ones are compared exactly.
func compareDecimals(a, b Value) int {
	x, y := a.AsDouble(), b.AsDouble()
	if math.IsInf(x, 0) || math.IsInf(y, 0) || math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y)) ||
		math.Abs(x) < 1e-300 && math.Abs(y) < 1e-300 {
		return compareExact(a, b)
	}
	return cmpOrdered(x, y)
}

func compareExact(a, b Value) int {
	x, y := exact(a), exact(b)
	if x.Form == apd.Infinite || y.Form == apd.Infinite || x.Sign() != y.Sign() {
		return x.Cmp(y)
	}
	// apd aligns exponents before it compares; the magnitudes are near here, so that stays small.
	if c := cmpOrdered(int64(x.Exponent)+x.NumDigits(), int64(y.Exponent)+y.NumDigits()); c != 0 && x.Sign() != 0 {
		return c * x.Sign()
	}
	return x.Cmp(y)
}

// exact is v with every digit that it has (a double may have several hundred).
func exact(v Value) *apd.Decimal {
	if v.Type != TypeDouble {
		return v.AsDecimal().APD()
	}
	f := v.Double()
	if math.IsInf(f, 0) {
		return &apd.Decimal{Form: apd.Infinite, Negative: f < 0}
	}
	m, e := math.Frexp(f)
	n := big.NewInt(int64(m * (1 << 53)))
	e -= 53
	r := &apd.Decimal{}
	if e >= 0 {
		n.Lsh(n, uint(e))
	} else {
		// n / 2^k = n * 5^k / 10^k
		n.Mul(n, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-e)), nil))
		r.Exponent = int32(e)
	}
	r.Negative = n.Sign() < 0
	r.Coeff.SetMathBigInt(n.Abs(n))
	return r
}

// AppendNumber appends the bytes of an int or, when it does not fit, a long, and returns the type they are of.
func AppendNumber(dst []byte, n int64) ([]byte, Type) {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return binary.LittleEndian.AppendUint32(dst, uint32(n)), TypeInt32
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(n)), TypeInt64
}

func formatFloat(f float64, format byte, prec int) string {
	return strconv.FormatFloat(f, format, prec, 64)
}

func cmpOrdered[T int | int32 | int64 | uint32 | uint64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
