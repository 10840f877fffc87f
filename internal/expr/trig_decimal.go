package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"
)

// small says whether x is so near to 0 that functions with f(x) = x + O(x^3) are x.
func small(x *apd.Decimal) bool {
	return x.IsZero() || x.NumDigits()+int64(x.Exponent) < -40
}

func notANumber(x *apd.Decimal) bool { return x.Form == apd.NaN }

// angle brings x into [-pi/4, pi/4] and tells how many quarters of the circle it took off.
func (s *series) angle(x *apd.Decimal) (rest *apd.Decimal, quarters int64) {
	if x.NumDigits()+int64(x.Exponent) > maxShortReduced {
		return s.largeAngle(x)
	}
	half := s.quo(pi(), integer(2))
	n := s.one(s.ctx.RoundToIntegralValue, s.quo(x, half))
	rest = s.sub(x, s.mul(n, half))
	var q apd.Decimal
	ctx := apd.Context{Precision: seriesDigits, MaxExponent: 50000, MinExponent: -50000}
	if _, err := ctx.Rem(&q, n, integer(4)); err != nil {
		s.bad = true
	}
	quarters, _ = q.Int64()
	return rest, (quarters + 4) % 4
}

func decimalSin(x *apd.Decimal) *apd.Decimal { return turn(x, 0, math.Sin) }

// decimalCos writes the cosine of zero, which is exact, with all its digits.
func decimalCos(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return widest(integer(1))
	}
	return turn(x, 1, math.Cos)
}

// finest is the exponent that zero gets from functions that compute beyond the digits of a decimal.
const finest = -40

// zeroAt is the zero x with an exponent.
func zeroAt(x *apd.Decimal, exponent int32) *apd.Decimal {
	return &apd.Decimal{Negative: x.Negative, Exponent: exponent}
}

// turn is the sine of x and so many quarters of the circle.
func turn(x *apd.Decimal, quarters int64, f func(float64) float64) *apd.Decimal {
	if notANumber(x) || quarters == 0 && small(x) {
		return x
	}
	s := newSeries()
	rest, n := s.angle(x)
	n = (n + quarters) % 4
	r := s.power(rest, n%2 == 1, -1)
	if n >= 2 {
		r = s.sub(new(apd.Decimal), r)
	}
	return s.result(r, x, f)
}

func decimalTan(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return zeroAt(x, finest)
	}
	if notANumber(x) || small(x) {
		return x
	}
	s := newSeries()
	rest, n := s.angle(x)
	sin, cos := s.power(rest, false, -1), s.power(rest, true, -1)
	if n%2 == 1 { // tan(x + pi/2) = -1/tan(x)
		return s.result(s.quo(s.sub(new(apd.Decimal), cos), sin), x, math.Tan)
	}
	return s.result(s.quo(sin, cos), x, math.Tan)
}

func decimalAtan(x *apd.Decimal) *apd.Decimal {
	if notANumber(x) || small(x) && x.Form == apd.Finite {
		return x
	}
	s := newSeries()
	if x.Form == apd.Infinite {
		r := s.quo(pi(), integer(2))
		r.Negative = x.Negative
		return r
	}
	return s.result(s.atan(x), x, math.Atan)
}

// atan halves the angle until the series is short.
func (s *series) atan(x *apd.Decimal) *apd.Decimal {
	const halvings = 5
	for range halvings {
		x = s.quo(x, s.add(integer(1), s.sqrt(s.add(integer(1), s.mul(x, x)))))
	}
	square := s.mul(x, x)
	term, sum := x, x
	for n := int64(3); n < 400; n += 2 {
		term = s.sub(new(apd.Decimal), s.mul(term, square))
		next := s.add(sum, s.quo(term, integer(n)))
		if next.Cmp(sum) == 0 || s.bad {
			break
		}
		sum = next
	}
	return s.mul(sum, integer(1<<halvings))
}

func decimalAsin(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return zeroAt(x, finest)
	}
	if notANumber(x) || small(x) {
		return x
	}
	s := newSeries()
	rest := s.sub(integer(1), s.mul(x, x))
	if rest.IsZero() {
		r := s.quo(pi(), integer(2))
		r.Negative = x.Negative
		return r
	}
	return s.result(s.atan(s.quo(x, s.sqrt(rest))), x, math.Asin)
}

func decimalAcos(x *apd.Decimal) *apd.Decimal {
	if notANumber(x) {
		return x
	}
	s := newSeries()
	if x.Cmp(integer(1)) == 0 {
		return new(apd.Decimal)
	}
	return s.result(s.sub(s.quo(pi(), integer(2)), decimalAsin(x)), x, math.Acos)
}

func decimalAtan2(y, x *apd.Decimal) *apd.Decimal {
	switch {
	case notANumber(y) || notANumber(x):
		return &apd.Decimal{Form: apd.NaN}
	case y.Form == apd.Infinite || x.Form == apd.Infinite || y.IsZero() || x.IsZero():
		return atan2Edge(y, x)
	}
	s := newSeries()
	r := s.atan(s.quo(y, x))
	if x.Negative {
		if y.Negative {
			r = s.sub(r, pi())
		} else {
			r = s.add(r, pi())
		}
	}
	return r
}

// atan2Edge is atan2 on the axes and at infinity: multiples of a quarter of pi, as of the doubles with the same signs.
func atan2Edge(y, x *apd.Decimal) *apd.Decimal {
	double := func(d *apd.Decimal) float64 {
		f := 1.0
		if d.Form == apd.Infinite {
			f = math.Inf(1)
		} else if d.IsZero() {
			f = 0
		}
		if d.Negative {
			f = math.Copysign(f, -1)
		}
		return f
	}
	quarters := math.Round(math.Atan2(double(y), double(x)) / (math.Pi / 4))
	s := newSeries()
	r := s.quo(s.mul(pi(), integer(int64(quarters))), integer(4))
	r.Negative = y.Negative
	return r
}

func decimalSinh(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return zeroAt(x, finest)
	}
	if x.Form != apd.Finite || small(x) {
		return x
	}
	s := newSeries()
	if x.Cmp(integer(-1)) > 0 && x.Cmp(integer(1)) < 0 {
		return s.result(s.power(x, false, 1), x, math.Sinh)
	}
	return s.hyperbolic(x, s.sub, math.Sinh)
}

func decimalCosh(x *apd.Decimal) *apd.Decimal {
	if x.Form == apd.Infinite {
		return &apd.Decimal{Form: apd.Infinite}
	}
	if notANumber(x) {
		return x
	}
	s := newSeries()
	return s.hyperbolic(x, s.add, math.Cosh)
}

// hyperbolic is (e^x ± e^-x) / 2.
func (s *series) hyperbolic(x *apd.Decimal, pm func(x, y *apd.Decimal) *apd.Decimal, f func(float64) float64) *apd.Decimal {
	if g, _ := x.Float64(); math.Abs(g) > 15000 {
		return &apd.Decimal{Form: apd.Infinite, Negative: f(g) < 0}
	}
	e := s.exp(x)
	return s.result(s.quo(pm(e, s.quo(integer(1), e)), integer(2)), x, f)
}

func decimalTanh(x *apd.Decimal) *apd.Decimal {
	if notANumber(x) || x.Form == apd.Finite && small(x) {
		return x
	}
	if g, _ := x.Float64(); x.Form == apd.Infinite || math.Abs(g) > 100 {
		return &apd.Decimal{Negative: x.Negative, Coeff: *apd.NewBigInt(1)}
	}
	s := newSeries()
	return s.result(s.quo(decimalSinh(x), decimalCosh(x)), x, math.Tanh)
}

// leastAsinh is the exponent from which on MongoDB's inverse hyperbolic sine is lost: it is 0 below.
const leastAsinh = -4965

func decimalAsinh(x *apd.Decimal) *apd.Decimal {
	switch {
	case x.Form != apd.Finite:
		return x
	case x.IsZero():
		return zeroAt(x, smallestExponent)
	case x.NumDigits()+int64(x.Exponent)-1 < leastAsinh:
		return zeroAt(x, 0)
	case small(x):
		return widest(x)
	}
	s := newSeries()
	var a apd.Decimal
	a.Abs(x)
	r := s.ln(s.add(&a, s.sqrt(s.add(s.mul(&a, &a), integer(1)))))
	r.Negative = x.Negative
	return s.result(r, x, math.Asinh)
}

func decimalAcosh(x *apd.Decimal) *apd.Decimal {
	if x.Form != apd.Finite {
		return x
	}
	s := newSeries()
	return s.result(s.ln(s.add(x, s.sqrt(s.sub(s.mul(x, x), integer(1))))), x, math.Acosh)
}

func decimalAtanh(x *apd.Decimal) *apd.Decimal {
	if x.IsZero() {
		return zeroAt(x, smallestExponent)
	}
	if notANumber(x) || small(x) {
		return x
	}
	s := newSeries()
	rest := s.sub(integer(1), x)
	sum := s.add(integer(1), x)
	if rest.IsZero() || sum.IsZero() {
		return &apd.Decimal{Form: apd.Infinite, Negative: x.Negative}
	}
	return s.result(s.quo(s.ln(s.quo(sum, rest)), integer(2)), x, math.Atanh)
}

// MongoDB's angles are one product with a constant of 34 digits, whose exponent a zero has as well.
const (
	radiansPerDegree = "0.01745329251994329576923690768488613"
	degreesPerRadian = "57.29577951308232087679815481410517"
)

func toRadians(x *apd.Decimal) *apd.Decimal { return turned(x, radiansPerDegree) }
func toDegrees(x *apd.Decimal) *apd.Decimal { return turned(x, degreesPerRadian) }

func turned(x *apd.Decimal, factor string) *apd.Decimal {
	if x.Form != apd.Finite {
		return x
	}
	return newSeries().mul(x, decimalConstant(factor))
}
