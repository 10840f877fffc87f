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
			w.make = func() (Window, error) { return &linearFill{of: w.exprs}, nil }
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

// linearFill interpolates between the last value before (left) and the next one behind (right, found once for each gap), in the types that
// the values have.
type linearFill struct {
	of           []expr.Expr
	v            [1]bson.Value
	left, right  point
	leftIsKnown  bool
	rightIsKnown bool
	sought       int // right was looked for up to this document
	at, before   kept
	seen         bool
}

func (l *linearFill) Next(rows Rows, f Frame) (bson.Value, error) {
	x, err := rows.SortValue(f.At)
	if err != nil {
		return bson.Missing, err
	}
	l.at.set(x)
	if err := rows.Eval(f.At, l.of, l.v[:]); err != nil {
		return bson.Missing, err
	}
	v := l.v[0]
	if !v.IsNumber() && !v.IsNullish() {
		return bson.Missing, mongoerr.New(mongoerr.TypeMismatch, "Value to be filled must be numeric or nullish, but found %s", v.Type)
	}
	if err := l.moveOn(); err != nil {
		return bson.Missing, err
	}
	if !v.IsNullish() {
		l.left.x.set(l.at.Value)
		l.left.y.set(v)
		l.leftIsKnown = true
		return v, nil
	}
	if !l.leftIsKnown {
		return bson.Null, nil
	}
	if l.sought <= f.At {
		if err := l.lookAhead(rows, f.At); err != nil {
			return bson.Missing, err
		}
	}
	if !l.rightIsKnown {
		return bson.Null, nil
	}
	return l.between()
}

// moveOn holds the place of the document against that of the one before.
func (l *linearFill) moveOn() error {
	switch x := l.at.Value; {
	case !x.IsNumber() && !isMoment(x):
		return mongoerr.New(mongoerr.TypeMismatch, "Value of the sortBy field must be numeric or a date, but found %s", x.Type)
	case l.seen && bson.Equal(x, l.before.Value):
		return mongoerr.New(6050106, "There can be no repeated values in the sort field in the same partition")
	case l.seen && isMoment(x) != isMoment(l.before.Value):
		return mongoerr.New(mongoerr.TypeMismatch, "Conflicting sort value types, previously received type %s, but found %s", l.before.Type, x.Type)
	}
	l.before.set(l.at.Value)
	l.seen = true
	return nil
}

// isMoment says whether v can be made a date of.
func isMoment(v bson.Value) bool {
	return v.Type == bson.TypeDate || v.Type == bson.TypeTimestamp || v.Type == bson.TypeObjectID
}

// lookAhead finds the next value behind document at.
func (l *linearFill) lookAhead(rows Rows, at int) error {
	l.rightIsKnown = false
	for l.sought = at + 1; l.sought < rows.Len(); l.sought++ {
		if err := rows.Eval(l.sought, l.of, l.v[:]); err != nil {
			return err
		}
		if l.v[0].IsNullish() {
			continue
		}
		l.right.y.set(l.v[0])
		x, err := rows.SortValue(l.sought)
		if err != nil {
			return err
		}
		if x.IsNullish() {
			continue
		}
		l.right.x.set(x)
		l.rightIsKnown = true
		return nil
	}
	return nil
}

// between is the value at the document's place on the line from left to right.
func (l *linearFill) between() (bson.Value, error) {
	way, err := change(l.left.x.Value, l.at.Value)
	if err != nil {
		return bson.Missing, err
	}
	run, err := change(l.left.x.Value, l.right.x.Value)
	if err != nil {
		return bson.Missing, err
	}
	rise, err := change(l.left.y.Value, l.right.y.Value)
	if err != nil {
		return bson.Missing, err
	}
	more, _ := bson.Mul(way, divided(rise, run))
	sum, _ := bson.Add(l.left.y.Value, more)
	return sum, nil
}
