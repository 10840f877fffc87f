package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
)

func covarianceOperators() []Operator {
	return []Operator{
		{Name: "$covariancePop", Since: "5.0", Doc: "The population covariance of two numbers.", Window: covarianceWindow(0)},
		{Name: "$covarianceSamp", Since: "5.0", Doc: "The sample covariance of two numbers.", Window: covarianceWindow(1)},
	}
}

func covarianceWindow(bias int64) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		e, err := p.exprs.Parse(arg, in.Scope)
		if err != nil {
			return err
		}
		w.exprs = []expr.Expr{e}
		s := &Spec{Op: w.Op, Args: w.exprs, make: func(bson.Value) (Fold, error) { return newCovariance(bias), nil }}
		w.make = func() (Window, error) { return newSliding(s, bson.Missing) }
		return nil
	}
}

// covariance takes arrays of two numbers; everything else is ignored. It keeps the sums of both and of the products of
// their deviations (the co-moment), each a total, so that decimals stay exact. Pairs with an infinity or NaN are kept apart:
// they decide the result as soon as there are enough finite ones.
type covariance struct {
	bias       int64
	n          int64 // finite pairs
	x, y, prod total
	odd        int64 // pairs that are not finite
	oddSum     total
}

func newCovariance(bias int64) *covariance {
	return &covariance{bias: bias, x: newTotal(), y: newTotal(), prod: newTotal(), oddSum: newTotal()}
}

func pairOf(v bson.Value) (x, y bson.Value, ok bool) {
	if v.Type != bson.TypeArray || v.Doc().Count() != 2 {
		return x, y, false
	}
	x, y = v.Doc().Index(0), v.Doc().Index(1)
	return x, y, x.IsNumber() && y.IsNumber()
}

func isFinite(v bson.Value) bool {
	switch v.Type {
	case bson.TypeDouble:
		f := v.Double()
		return f-f == 0
	case bson.TypeDecimal:
		d := v.Decimal()
		return !d.IsNaN() && d.Inf() == 0
	}
	return true
}

func (c *covariance) Add(args []bson.Value) error {
	x, y, ok := pairOf(args[0])
	if !ok {
		return nil
	}
	if !isFinite(x) || !isFinite(y) {
		c.odd++
		for _, v := range []bson.Value{x, y} {
			if !isFinite(v) {
				c.oddSum.add(v)
			}
		}
		return nil
	}
	if c.n == 0 {
		c.x.add(x)
		c.y.add(y)
		c.n = 1
		return nil
	}
	dx := less(x, mean(&c.x, c.n))
	c.x.add(x)
	c.y.add(y)
	c.n++
	product, _ := bson.Mul(dx, less(y, mean(&c.y, c.n)))
	c.prod.add(product)
	return nil
}

// Remove is Add backwards. What infinity or NaN has swallowed is lost.
func (c *covariance) Remove(args []bson.Value) bool {
	x, y, ok := pairOf(args[0])
	if !ok {
		return true
	}
	if !isFinite(x) || !isFinite(y) {
		if c.odd--; c.odd > 0 {
			return false
		}
		c.oddSum = newTotal()
		return true
	}
	if c.n == 1 {
		odd, sum := c.odd, c.oddSum
		*c = *newCovariance(c.bias)
		c.odd, c.oddSum = odd, sum
		return true
	}
	dy := less(y, mean(&c.y, c.n))
	c.n--
	if !c.x.remove(x) || !c.y.remove(y) {
		return false
	}
	product, _ := bson.Mul(less(x, mean(&c.x, c.n)), dy)
	return c.prod.remove(product)
}

func less(a, b bson.Value) bson.Value {
	d, _ := bson.Sub(a, b)
	return d
}

// mean is t/n as a double, or a decimal when t holds one; n is a double that becomes one, too, which shows in the zeros.
func mean(t *total, n int64) bson.Value {
	if t.counts[decimalCount] == 0 {
		return bson.Double(t.asDouble() / float64(n))
	}
	return bson.Decimal(divideDecimal(t.asDecimal(), bson.DecimalFromFloat(float64(n))))
}

func (c *covariance) Value() (bson.Value, error) {
	n := c.n - c.bias
	switch {
	case n <= 0:
		return bson.Null, nil
	case c.n == 1:
		return bson.Double(0), nil
	case c.odd > 0:
		sum := c.oddSum.value()
		if c.prod.counts[decimalCount] > 0 && sum.Type == bson.TypeDouble {
			sum = bson.Decimal(bson.DecimalFromFloat(sum.Double()))
		}
		return sum, nil
	}
	return mean(&c.prod, n), nil
}

func (c *covariance) Partial() bson.Value { return bson.Null }
func (c *covariance) Merge(bson.Value) error {
	panic("accumulator: $covariance is a window function only")
}
func (c *covariance) Size() int { return 640 }
