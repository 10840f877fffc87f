package accumulator

import (
	"math"

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
		s := &Spec{Op: w.Op, Args: w.exprs, make: func(bson.Value) (Fold, error) { return &covariance{bias: bias}, nil }}
		w.make = func() (Window, error) { return newSliding(s, bson.Missing) }
		return nil
	}
}

// covariance takes arrays of two numbers; everything else is ignored.
type covariance struct {
	bias         int64
	n            int64
	meanX, meanY float64
	moment       float64
	inexact      int64 // pairs with an infinity or NaN
	decimal      int64
}

func (c *covariance) pair(v bson.Value) (x, y float64, ok bool) {
	if v.Type != bson.TypeArray || v.Doc().Count() != 2 {
		return 0, 0, false
	}
	a, b := v.Doc().Index(0), v.Doc().Index(1)
	if !a.IsNumber() || !b.IsNumber() {
		return 0, 0, false
	}
	return a.AsDouble(), b.AsDouble(), true
}

func decimals(v bson.Value) int64 {
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type == bson.TypeDecimal {
			return 1
		}
	}
	return 0
}

func finite(x, y float64) bool { return !math.IsNaN(x-x) && !math.IsNaN(y-y) }

func (c *covariance) Add(args []bson.Value) error {
	x, y, ok := c.pair(args[0])
	if !ok {
		return nil
	}
	c.decimal += decimals(args[0])
	if !finite(x, y) {
		c.inexact++
		return nil
	}
	c.n++
	dx := x - c.meanX
	c.meanX += dx / float64(c.n)
	c.meanY += (y - c.meanY) / float64(c.n)
	c.moment += dx * (y - c.meanY)
	return nil
}

func (c *covariance) Remove(args []bson.Value) bool {
	x, y, ok := c.pair(args[0])
	if !ok {
		return true
	}
	c.decimal -= decimals(args[0])
	if !finite(x, y) {
		c.inexact--
		return true
	}
	if c.n--; c.n == 0 {
		c.meanX, c.meanY, c.moment = 0, 0, 0
		return true
	}
	c.meanX -= (x - c.meanX) / float64(c.n)
	dy := y - c.meanY
	c.meanY -= dy / float64(c.n)
	c.moment -= (x - c.meanX) * dy
	return true
}

func (c *covariance) Value() (bson.Value, error) {
	n := c.n - c.bias
	switch {
	case c.inexact > 0:
		return number(math.NaN(), c.decimal > 0), nil
	case n <= 0:
		return bson.Null, nil
	}
	return number(c.moment/float64(n), c.decimal > 0), nil
}

func (c *covariance) Partial() bson.Value { return bson.Null }
func (c *covariance) Merge(bson.Value) error {
	panic("accumulator: $covariance is a window function only")
}
func (c *covariance) Size() int { return 64 }
