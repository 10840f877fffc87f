package expr

import (
	"errors"
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

var errNoLn = errors.New("a logarithm cannot be computed")

// MongoDB computes logarithms and powers of decimals in binary floating point of quadruple precision (binary128). That holds
// hardly more digits than a decimal, so each step's rounding shows in the last one. The steps are the same here.
//
// A quad is such a number. Its exponent has no bounds: where binary128's would not do, MongoDB scales as well.
type quad = *big.Float

const (
	quadBits = 113
	// Beyond these powers of ten binary128 ends, and logarithms scale.
	farExponent = 4464
	// farLn is its natural logarithm.
	farLn = "10278.739855125419933456313853711001822731317045238842565012775749919244"
	// perLn10 is 1 / ln(10).
	perLn10 = "0.43429448190325182765112891891660508229439700580366656611445378316586465"
	// ln2 is the natural logarithm of two.
	ln2 = "0.69314718055994530941723212145817656807550013436025525412068000949"
	// Exponentials of more than this, or less than its negative, are of the rest, times one of these.
	farPower       = 11000
	farExp         = "1.735005819277738509638425077349642E+4777"
	farExpNegative = "5.763669429168183696272822960961270E-4778"
)

// quadOf is x in quadruple precision.
func quadOf(x *apd.Decimal, mode big.RoundingMode) quad {
	f := new(big.Float).SetPrec(quadBits).SetMode(mode)
	n := x.Coeff.MathBigInt()
	if x.Negative {
		n.Neg(n)
	}
	if x.Exponent >= 0 {
		f.SetInt(n.Mul(n, tenTo(int64(x.Exponent))))
	} else {
		f.SetRat(new(big.Rat).SetFrac(n, tenTo(-int64(x.Exponent))))
	}
	return f.SetMode(big.ToNearestEven)
}

func quadFrom(text string) quad {
	x, _, err := apd.NewFromString(text)
	if err != nil {
		panic(err)
	}
	return quadOf(x, big.ToNearestEven)
}

func newQuad() quad { return new(big.Float).SetPrec(quadBits) }

// decimalOf is f, to so many digits: as it is where that fits them, and otherwise with all of them.
func decimalOf(f quad, digits int) *apd.Decimal {
	if f.Sign() == 0 {
		return new(apd.Decimal)
	}
	// f is n · 2^e, and n is odd.
	e := f.MantExp(nil) - int(f.MinPrec())
	n, _ := new(big.Float).SetMantExp(f, -e).Int(nil)
	var exponent int32
	if e >= 0 && e < 4*digits {
		n.Lsh(n, uint(e))
	} else if e < 0 && -e < 4*digits {
		n.Mul(n, new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-e)), nil))
		exponent = int32(e)
	}
	if (e < 4*digits && -e < 4*digits) && new(big.Int).Abs(n).Cmp(tenTo(int64(digits))) < 0 {
		return apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(n), exponent)
	}
	x, _, err := apd.NewFromString(f.Text('e', digits-1))
	if err != nil {
		panic(err)
	}
	return x
}

// quadFunc is f of x, an operation of apd, rounded once.
func quadFunc(f func(c *apd.Context, d, x *apd.Decimal) (apd.Condition, error), x quad) (quad, error) {
	s := newSeries()
	var r apd.Decimal
	if _, err := f(&s.ctx, &r, decimalOf(x, 4*quadBits)); err != nil {
		return nil, err
	}
	return quadOf(&r, big.ToNearestEven), nil
}

// lnQuad is the natural logarithm of an x > 0, less so many times that of ten to the farExponent.
func lnQuad(x *apd.Decimal) (r quad, far int64, err error) {
	switch {
	case x.Cmp(apd.New(1, farExponent)) > 0:
		r, err = quadFunc((*apd.Context).Ln, quadOf(scaled(x, -farExponent), big.ToNearestEven))
		return r, 1, err
	case x.Cmp(apd.New(1, -farExponent)) < 0:
		r, err = quadFunc((*apd.Context).Ln, quadOf(scaled(x, farExponent), big.ToNearestEven))
		return r, -1, err
	}
	q := quadOf(x, big.ToNearestEven)
	if r, err = quadFunc((*apd.Context).Ln, q); err != nil {
		return nil, 0, err
	}
	// Near 1 what the conversion has cut off counts, in proportion to q: the logarithm of one and a little is about that little.
	excess := newQuad().Sub(q, big.NewFloat(1))
	if new(big.Float).Abs(excess).Cmp(big.NewFloat(0.5)) < 0 {
		var exact apd.Decimal
		if _, err := decimalContext().Sub(&exact, x, integer(1)); err != nil {
			return nil, 0, err
		}
		cut := newQuad().Sub(excess, quadOf(&exact, big.ToNearestEven))
		r.Sub(r, cut.Quo(cut, q))
	}
	return r, 0, nil
}

func scaled(x *apd.Decimal, exponent int32) *apd.Decimal {
	r := new(apd.Decimal).Set(x)
	r.Exponent += exponent
	return r
}

// decimalLn is the natural logarithm of an x > 0, or of infinity or NaN.
func decimalLn(x *apd.Decimal) *apd.Decimal {
	return ofLn(x, func(r quad, far int64) quad {
		by := newQuad().SetInt64(far)
		return r.Add(r, by.Mul(by, quadFrom(farLn)))
	})
}

// decimalLog10 is that to the base 10.
func decimalLog10(x *apd.Decimal) *apd.Decimal {
	return ofLn(x, func(r quad, far int64) quad {
		r.Mul(r, quadFrom(perLn10))
		return r.Add(r, newQuad().SetInt64(far*farExponent))
	})
}

func ofLn(x *apd.Decimal, f func(r quad, far int64) quad) *apd.Decimal {
	if x.Form != apd.Finite {
		return x
	}
	r, far, err := lnQuad(x)
	if err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	return decimalOf(f(r, far), decimalDigits)
}

// decimalExp is e raised to x.
func decimalExp(x *apd.Decimal) *apd.Decimal {
	switch {
	case x.Form == apd.NaN:
		return x
	case x.Form == apd.Infinite && x.Negative:
		return new(apd.Decimal)
	case x.Form == apd.Infinite:
		return x
	case x.IsZero():
		return integer(1)
	}
	if f, _ := x.Float64(); f > 15000 {
		return &apd.Decimal{Form: apd.Infinite}
	} else if f < -15000 {
		return &apd.Decimal{Exponent: smallestExponent}
	}
	// x is high and low. What low adds to the result is the result times it.
	high := quadOf(x, big.ToZero)
	low := newQuad().Sub(high, high)
	if rest, ok := remainder(x, high); ok {
		low = rest
	}
	factor := ""
	switch limit := newQuad().SetInt64(farPower); {
	case high.Cmp(limit) > 0:
		high, factor = newQuad().Sub(high, limit), farExp
	case high.Cmp(limit.Neg(limit)) < 0:
		high, factor = newQuad().Sub(high, limit), farExpNegative
	}
	r, err := quadFunc((*apd.Context).Exp, high)
	if err != nil {
		return &apd.Decimal{Form: apd.NaN}
	}
	d := decimalOf(r.Add(r, low.Mul(low, r)), decimalDigits)
	if factor == "" {
		return d
	}
	by, _, err := apd.NewFromString(factor)
	if err != nil {
		panic(err)
	}
	_, err = decimalContext().Mul(d, d, by)
	return computed(d, err).APD()
}

// remainder is what x is more than q.
func remainder(x *apd.Decimal, q quad) (quad, bool) {
	var r apd.Decimal
	exact := apd.Context{Precision: 4 * quadBits, MaxExponent: 50000, MinExponent: -50000, Rounding: apd.RoundHalfEven}
	if _, err := exact.Sub(&r, x, decimalOf(q, 4*quadBits)); err != nil {
		return nil, false
	}
	return quadOf(&r, big.ToNearestEven), true
}

// powerOf is x > 0 raised to y, which is not 0, as e raised to y times x's logarithm. That is computed in two parts, since its
// last digit counts as much as the exponential is large.
func powerOf(x, y *apd.Decimal) (*apd.Decimal, error) {
	high, low, err := lnParts(x)
	if err != nil {
		return nil, err
	}
	ctx := decimalContext()
	var power, rest apd.Decimal
	if _, err := ctx.Mul(&power, y, high); err != nil {
		return nil, err
	}
	r := decimalExp(&power)
	if r.Form != apd.Finite || r.IsZero() {
		return r, nil
	}
	minus := new(apd.Decimal).Neg(&power)
	if err := multiplyAdd(&rest, y, high, minus); err != nil {
		return nil, err
	}
	if err := multiplyAdd(&rest, y, low, &rest); err != nil {
		return nil, err
	}
	err = multiplyAdd(r, r, &rest, r)
	return r, err
}

// powerOfTen is ten raised to y. It is that to the power of a fraction, moved by the integer next to y.
func powerOfTen(y *apd.Decimal) (*apd.Decimal, error) {
	const most = 6400
	if y.Cmp(integer(most)) > 0 {
		return &apd.Decimal{Form: apd.Infinite}, nil
	} else if y.Cmp(integer(-most)) < 0 {
		return &apd.Decimal{Exponent: smallestExponent}, nil
	}
	ctx := decimalContext()
	var near, fraction apd.Decimal
	if _, err := ctx.RoundToIntegralValue(&near, y); err != nil {
		return nil, err
	}
	places, err := near.Int64()
	if err != nil {
		return nil, err
	}
	if _, err := ctx.Sub(&fraction, y, &near); err != nil {
		return nil, err
	}
	q, err := quadFunc(baseExp(apd.New(10, 0)), quadOf(&fraction, big.ToNearestEven))
	if err != nil {
		return nil, err
	}
	r := decimalOf(q, decimalDigits)
	r.Exponent += int32(places)
	return r, nil
}

// powerOfTwo is two raised to y.
func powerOfTwo(y *apd.Decimal) (*apd.Decimal, error) {
	const most = 25000
	if y.Cmp(integer(most)) > 0 {
		return &apd.Decimal{Form: apd.Infinite}, nil
	} else if y.Cmp(integer(-most)) < 0 {
		return &apd.Decimal{Exponent: smallestExponent}, nil
	}
	high := quadOf(y, big.ToZero)
	low, ok := remainder(y, high)
	if !ok {
		low = newQuad()
	}
	far := 0
	switch limit := newQuad().SetInt64(farPower); {
	case high.Cmp(limit) > 0:
		high, far = newQuad().Sub(high, limit), farPower
	case high.Cmp(limit.Neg(limit)) < 0:
		high, far = newQuad().Sub(high, limit), -farPower
	}
	r, err := quadFunc(baseExp(apd.New(2, 0)), high)
	if err != nil {
		return nil, err
	}
	more := newQuad().Mul(r, quadFrom(ln2))
	d := decimalOf(r.Add(r, more.Mul(more, low)), decimalDigits)
	if far != 0 {
		_, err = decimalContext().Mul(d, d, decimalOf(newQuad().SetMantExp(newQuad().SetInt64(1), far), decimalDigits))
		d = computed(d, err).APD()
	}
	return d, nil
}

// baseExp is the power of a base as an operation of apd.
func baseExp(base *apd.Decimal) func(c *apd.Context, d, x *apd.Decimal) (apd.Condition, error) {
	return func(c *apd.Context, d, x *apd.Decimal) (apd.Condition, error) {
		var ln apd.Decimal
		if cond, err := c.Ln(&ln, base); err != nil {
			return cond, err
		}
		if cond, err := c.Mul(&ln, &ln, x); err != nil {
			return cond, err
		}
		return c.Exp(d, &ln)
	}
}

// multiplyAdd sets d to x · y + z, rounded once.
func multiplyAdd(d, x, y, z *apd.Decimal) error {
	exact := apd.Context{Precision: 2*decimalDigits + 2, MaxExponent: 50000, MinExponent: -50000, Rounding: apd.RoundHalfEven}
	var product apd.Decimal
	if _, err := exact.Mul(&product, x, y); err != nil {
		return err
	}
	_, err := decimalContext().Add(d, &product, z)
	return err
}

// lnParts is the logarithm of an x > 0 as a number of 28 places and one of 47, both cut off. Where that would leave few digits it
// is x - 1 and the next three terms of the series.
func lnParts(x *apd.Decimal) (high, low *apd.Decimal, err error) {
	const places, more = 28, 19
	s := newSeries()
	ln := s.ln(x)
	if s.bad {
		return nil, nil, errNoLn
	}
	units := inUnits(ln, places+more)
	whole, part := new(big.Int).QuoRem(units, tenTo(more), new(big.Int))
	if whole.BitLen() > 65 {
		return apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(whole), -places),
			apd.NewWithBigInt(new(apd.BigInt).SetMathBigInt(part), -places-more), nil
	}
	s.ctx = *decimalContext()
	t := s.sub(x, integer(1))
	square := s.mul(t, t)
	sum := s.mul(apd.New(-5, -1), square)
	cube := s.mul(t, square)
	sum = s.add(sum, s.mul(s.quo(integer(1), integer(3)), cube))
	sum = s.add(sum, s.mul(apd.New(-25, -2), s.mul(t, cube)))
	high = s.add(t, sum)
	low = s.sub(s.sub(high, t), sum)
	if s.bad {
		return nil, nil, errNoLn
	}
	return high, low, nil
}

// inUnits is x in units of 10^-places, without what is less than one.
func inUnits(x *apd.Decimal, places int32) *big.Int {
	n := x.Coeff.MathBigInt()
	if e := int64(x.Exponent) + int64(places); e >= 0 {
		n.Mul(n, tenTo(e))
	} else {
		n.Quo(n, tenTo(-e))
	}
	if x.Negative {
		n.Neg(n)
	}
	return n
}
