package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func fillOperators() []Operator {
	return []Operator{
		{Name: "$linearFill", Since: "5.3", Doc: "Fills null and missing values on a line between those around.", Window: fillWindow(true)},
		{Name: "$locf", Since: "5.2", Doc: "Fills null and missing values with the last one before.", Window: fillWindow(false)},
	}
}

func fillWindow(linear bool) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		if in.bounds {
			return mongoerr.New(mongoerr.FailedToParse, "'window' field is not allowed in %s", w.Op.Name)
		}
		if linear && (in.Sort == nil || len(in.Sort.Parts) != 1) {
			return mongoerr.New(605001, "%s must be specified with a top level sortBy expression with exactly one element", w.Op.Name)
		}
		e, err := p.exprs.Parse(arg, in.Scope)
		if err != nil {
			return err
		}
		w.exprs = []expr.Expr{e}
		if linear {
			w.make = func() (Window, error) { return &linearFill{of: w.exprs, right: -1}, nil }
		} else {
			w.make = func() (Window, error) { return &locf{of: w.exprs, last: kept{bson.Null}}, nil }
		}
		return nil
	}
}

type locf struct {
	of   []expr.Expr
	last kept
	v    [1]bson.Value
}

func (l *locf) Next(rows Rows, f Frame) (bson.Value, error) {
	if err := rows.Eval(f.At, l.of, l.v[:]); err != nil {
		return bson.Missing, err
	}
	if !l.v[0].IsNullish() {
		l.last.set(l.v[0])
	}
	return l.last.Value, nil
}

// linearFill interpolates between the last value before (left) and the next one behind (right, found once for each gap).
type linearFill struct {
	of     []expr.Expr
	v      [1]bson.Value
	left   fillPoint
	right  int // the position of next, -1 for not looked for
	next   fillPoint
	before float64
	seen   bool
}

type fillPoint struct {
	x, y    float64
	decimal bool
	found   bool
}

func (l *linearFill) Next(rows Rows, f Frame) (bson.Value, error) {
	x, err := l.place(rows, f.At)
	if err != nil {
		return bson.Missing, err
	}
	if l.seen && x == l.before {
		return bson.Missing, mongoerr.New(6050106, "There can be no repeated values in the sort field")
	}
	l.before, l.seen = x, true
	if err := rows.Eval(f.At, l.of, l.v[:]); err != nil {
		return bson.Missing, err
	}
	if v := l.v[0]; !v.IsNullish() {
		l.right = -1
		l.left, err = l.point(x, v)
		return v, err
	}
	if !l.left.found {
		return bson.Null, nil
	}
	if l.right < f.At {
		if err := l.lookAhead(rows, f.At); err != nil {
			return bson.Missing, err
		}
	}
	if !l.next.found {
		return bson.Null, nil
	}
	slope := (l.next.y - l.left.y) / (l.next.x - l.left.x)
	return number(l.left.y+(x-l.left.x)*slope, l.left.decimal || l.next.decimal), nil
}

// lookAhead finds the next value behind document at.
func (l *linearFill) lookAhead(rows Rows, at int) error {
	l.next = fillPoint{}
	for l.right = at + 1; l.right < rows.Len(); l.right++ {
		if err := rows.Eval(l.right, l.of, l.v[:]); err != nil {
			return err
		}
		if l.v[0].IsNullish() {
			continue
		}
		y := l.v[0].Clone()
		x, err := l.place(rows, l.right)
		if err != nil {
			return err
		}
		l.next, err = l.point(x, y)
		return err
	}
	return nil
}

func (l *linearFill) point(x float64, v bson.Value) (fillPoint, error) {
	if !v.IsNumber() {
		return fillPoint{}, mongoerr.New(6050201, "Value to be filled must be numeric or nullish, but got %s", v.Type)
	}
	return fillPoint{x: x, y: v.AsDouble(), decimal: v.Type == bson.TypeDecimal, found: true}, nil
}

func (l *linearFill) place(rows Rows, i int) (float64, error) {
	v, err := rows.SortValue(i)
	switch {
	case err != nil:
		return 0, err
	case v.Type == bson.TypeDate:
		return float64(v.Millis()), nil
	case v.IsNumber():
		return v.AsDouble(), nil
	}
	return 0, mongoerr.New(605001, "$linearFill sortBy value must be numeric or a date, but found %s", v.Type)
}
