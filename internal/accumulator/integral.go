package accumulator

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// integral is $integral over a window that moves forward: the sum of the areas between each document and the next. What comes to the window is
// added, and then what leaves it is taken out, in the types that the values have, as MongoDB does.
type integral struct {
	input []expr.Expr
	unit  float64 // in milliseconds, 0 without

	areas     total
	nans      int // points of the window that are none
	low, high int // what areas and nans are of
	from, to  point
	v         [1]bson.Value
}

// point is a document's place and value.
type point struct{ x, y kept }

func (p *point) isNaN() bool { return p.x.IsNaN() || p.y.IsNaN() }

func (p *point) set(o *point) {
	p.x.set(o.x.Value)
	p.y.set(o.y.Value)
}

func (n *integral) Next(rows Rows, f Frame) (bson.Value, error) {
	if f.High <= f.Low {
		n.restart(f.Low)
		return bson.Null, nil
	}
	if f.Low < n.low || f.Low >= n.high || f.High < n.high {
		n.restart(f.Low)
	}
	if err := n.add(rows, f.High); err != nil {
		return bson.Missing, err
	}
	for n.low < f.Low {
		removed, err := n.remove(rows)
		if err == nil && !removed {
			n.restart(f.Low)
			err = n.add(rows, f.High)
		}
		if err != nil {
			return bson.Missing, err
		}
	}
	switch sum := n.areas.value(); {
	case n.nans > 0:
		return bson.Double(math.NaN()), nil
	case n.unit == 0:
		return sum, nil
	default:
		return divided(sum, bson.Int64(int64(n.unit))), nil
	}
}

func (n *integral) restart(low int) {
	n.areas, n.nans, n.low, n.high = newTotal(), 0, low, low
}

// add takes documents in up to one that is not; to is the last of them.
func (n *integral) add(rows Rows, high int) error {
	for ; n.high < high; n.high++ {
		if n.high > n.low {
			n.from.set(&n.to)
		}
		if err := n.point(rows, n.high, &n.to); err != nil {
			return err
		}
		if n.to.isNaN() {
			n.nans++
		}
		if n.high > n.low {
			n.areas.add(area(&n.from, &n.to))
		}
	}
	return nil
}

// remove takes the first document out, behind which there is another, and says whether it could.
func (n *integral) remove(rows Rows) (removed bool, err error) {
	var next point
	if err := n.point(rows, n.low, &n.from); err != nil {
		return false, err
	}
	if err := n.point(rows, n.low+1, &next); err != nil {
		return false, err
	}
	if n.from.isNaN() {
		n.nans--
	}
	n.low++
	return n.areas.remove(area(&n.from, &next)), nil
}

func (n *integral) point(rows Rows, i int, p *point) error {
	sv, err := rows.SortValue(i)
	if err != nil {
		return err
	}
	p.x.set(sv)
	if err := rows.Eval(i, n.input, n.v[:]); err != nil {
		return err
	}
	p.y.set(n.v[0])
	switch {
	case !p.y.IsNumber() || !p.x.IsNumber() && p.x.Type != bson.TypeDate:
		return mongoerr.New(5423900, "The input value of $integral window function must be a vector of 2 value, the first value must be numeric or date type and the second must be numeric.")
	case n.unit != 0 && p.x.Type != bson.TypeDate:
		return mongoerr.New(5423901, "$integral with 'unit' expects the sortBy field to be a Date")
	case n.unit == 0 && !p.x.IsNumber():
		return mongoerr.New(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric")
	}
	return nil
}

// area is that of the trapezoid between two points; NaN takes no part in it.
func area(a, b *point) bson.Value {
	if a.isNaN() || b.isNaN() {
		return bson.Int32(0)
	}
	width := distance(a.x.Value, b.x.Value)
	heights, _ := bson.Add(b.y.Value, a.y.Value)
	product, _ := bson.Mul(heights, width)
	return divided(product, bson.Double(2))
}

// distance is that of two numbers, or of two dates in milliseconds.
func distance(from, to bson.Value) bson.Value {
	if from.Type == bson.TypeDate {
		return bson.Int64(to.Millis() - from.Millis())
	}
	return less(to, from)
}

// change is the distance of values of which nothing is known yet.
func change(from, to bson.Value) (bson.Value, error) {
	if from.IsNumber() && to.IsNumber() || from.Type == bson.TypeDate && to.Type == bson.TypeDate {
		return distance(from, to), nil
	}
	return bson.Missing, mongoerr.New(mongoerr.TypeMismatch, "can't $subtract %s from %s", from.Type, to.Type)
}

// divided is a double, or a decimal where one took part.
func divided(a, by bson.Value) bson.Value {
	if a.Type == bson.TypeDecimal || by.Type == bson.TypeDecimal {
		return bson.Decimal(divideDecimal(a.AsDecimal(), by.AsDecimal()))
	}
	return bson.Double(a.AsDouble() / by.AsDouble())
}
