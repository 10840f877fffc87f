package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func trigonometryOperators() []Operator {
	row := func(name, doc string, r real) Operator {
		return Operator{Name: name, Since: "4.2", Doc: doc, Shape: r.shape(name)}
	}
	return []Operator{
		row("$acos", "The inverse cosine in radians.", real{doubleAcos, decimalAcos, within("[-1,1]", -1, 1, true), false}),
		row("$acosh", "The inverse hyperbolic cosine.", real{math.Acosh, decimalAcosh, within("[1,inf]", 1, math.Inf(1), true), false}),
		row("$asin", "The inverse sine in radians.", real{doubleAsin, decimalAsin, within("[-1,1]", -1, 1, true), false}),
		row("$asinh", "The inverse hyperbolic sine.", real{double: math.Asinh, decimal: decimalAsinh}),
		row("$atan", "The inverse tangent in radians.", real{double: doubleAtan, decimal: decimalAtan}),
		{Name: "$atan2", Since: "4.2", Doc: "The inverse tangent of y / x in radians, in the quadrant of both.", Shape: dyadic(evalAtan2)},
		row("$atanh", "The inverse hyperbolic tangent.", real{math.Atanh, decimalAtanh, within("[-1,1]", -1, 1, true), false}),
		row("$cos", "The cosine of an angle in radians.", real{doubleCos, decimalCos, within("(-inf,inf)", math.Inf(-1), math.Inf(1), false), false}),
		row("$cosh", "The hyperbolic cosine.", real{double: math.Cosh, decimal: decimalCosh}),
		row("$degreesToRadians", "An angle in degrees as radians.", real{double: func(f float64) float64 { return f * (math.Pi / 180) }, decimal: toRadians}),
		row("$radiansToDegrees", "An angle in radians as degrees.", real{double: func(f float64) float64 { return f * (180 / math.Pi) }, decimal: toDegrees}),
		row("$sin", "The sine of an angle in radians.", real{doubleSin, decimalSin, within("(-inf,inf)", math.Inf(-1), math.Inf(1), false), false}),
		row("$sinh", "The hyperbolic sine.", real{double: math.Sinh, decimal: decimalSinh}),
		row("$tan", "The tangent of an angle in radians.", real{doubleTan, decimalTan, within("(-inf,inf)", math.Inf(-1), math.Inf(1), false), false}),
		row("$tanh", "The hyperbolic tangent.", real{double: math.Tanh, decimal: decimalTanh}),
	}
}

// within is the check of a domain from low to high, with or without its ends.
func within(text string, low, high float64, ends bool) func(op string, v bson.Value) error {
	least, most := bson.Double(low), bson.Double(high)
	return func(op string, v bson.Value) error {
		if v.IsNaN() {
			return nil
		}
		a, b := bson.CompareNumbers(v, least), bson.CompareNumbers(v, most)
		if a > 0 && b < 0 || ends && a >= 0 && b <= 0 {
			return nil
		}
		return mongoerr.New(50989, "cannot apply %s to %s, value must be in %s", op, inMessage(v), text)
	}
}

func evalAtan2(env *Env, y, x bson.Value) (bson.Value, error) {
	if y.IsNullish() || x.IsNullish() {
		return bson.Null, nil
	}
	if !y.IsNumber() {
		return y, mongoerr.New(51044, "$atan2 only supports numeric types, not %s and %s", y.Type, x.Type)
	}
	if !x.IsNumber() {
		return x, mongoerr.New(51045, "$atan2 only supports numeric types, not %s and %s", y.Type, x.Type)
	}
	if y.Type == bson.TypeDecimal || x.Type == bson.TypeDecimal {
		return env.Decimal(bson.DecimalFromAPD(decimalAtan2(y.AsDecimal().APD(), x.AsDecimal().APD()))), nil
	}
	return env.Double(math.Atan2(y.AsDouble(), x.AsDouble())), nil
}

// The functions of decimals are computed with seriesDigits digits from the series that everybody knows, after the argument
// has been made small.
const (
	seriesDigits = 90
	piDigits     = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328230664709384460955"
	// maxShortReduced is how many digits before the point an angle may have to be brought into the circle with piDigits.
	maxShortReduced = 30
)

// series computes and remembers the first error, so that formulas read like formulas.
type series struct {
	ctx apd.Context
	bad bool
}

func newSeries() *series {
	return &series{ctx: apd.Context{Precision: seriesDigits, MaxExponent: 50000, MinExponent: -50000, Rounding: apd.RoundHalfEven}}
}

func (s *series) do(f func(d, x, y *apd.Decimal) (apd.Condition, error), x, y *apd.Decimal) *apd.Decimal {
	var r apd.Decimal
	if _, err := f(&r, x, y); err != nil {
		s.bad = true
	}
	return &r
}

func (s *series) add(x, y *apd.Decimal) *apd.Decimal { return s.do(s.ctx.Add, x, y) }
func (s *series) sub(x, y *apd.Decimal) *apd.Decimal { return s.do(s.ctx.Sub, x, y) }
func (s *series) mul(x, y *apd.Decimal) *apd.Decimal { return s.do(s.ctx.Mul, x, y) }
func (s *series) quo(x, y *apd.Decimal) *apd.Decimal { return s.do(s.ctx.Quo, x, y) }

func (s *series) one(f func(d, x *apd.Decimal) (apd.Condition, error), x *apd.Decimal) *apd.Decimal {
	return s.do(func(d, x, _ *apd.Decimal) (apd.Condition, error) { return f(d, x) }, x, nil)
}

func (s *series) sqrt(x *apd.Decimal) *apd.Decimal { return s.one(s.ctx.Sqrt, x) }
func (s *series) ln(x *apd.Decimal) *apd.Decimal   { return s.one(s.ctx.Ln, x) }
func (s *series) exp(x *apd.Decimal) *apd.Decimal  { return s.one(s.ctx.Exp, x) }

// result is r, or f of the double when something went wrong.
func (s *series) result(r, x *apd.Decimal, f func(float64) float64) *apd.Decimal {
	if !s.bad {
		return r
	}
	g, _ := x.Float64()
	return bson.DecimalFromFloat(f(g)).APD()
}

func integer(n int64) *apd.Decimal { return apd.New(n, 0) }

func pi() *apd.Decimal { return decimalConstant(piDigits) }

func decimalConstant(digits string) *apd.Decimal {
	d, _, err := apd.NewFromString(digits)
	if err != nil {
		panic(err)
	}
	return d
}

// power sums x - x^3/3! + … (sign -1) or x + x^3/3! + … (sign 1), or from 1 on for even powers.
func (s *series) power(x *apd.Decimal, even bool, sign int64) *apd.Decimal {
	square := s.mul(x, x)
	term, n := x, int64(1)
	if even {
		term, n = integer(1), 0
	}
	sum := term
	for range 200 {
		term = s.quo(s.mul(term, square), integer(sign*(n+1)*(n+2)))
		n += 2
		next := s.add(sum, term)
		if next.Cmp(sum) == 0 || s.bad {
			break
		}
		sum = next
	}
	return sum
}
