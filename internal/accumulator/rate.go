package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func rateOperators() []Operator {
	return []Operator{
		{Name: "$derivative", Since: "5.0", Doc: "The average rate of change in the window.", Window: rateWindow},
		{Name: "$integral", Since: "5.0", Doc: "The area under the values of the window, by the trapezoidal rule.", Window: rateWindow},
	}
}

// rateWindow reads {input: <expression>, unit: <unit>}.
func rateWindow(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
	name := w.Op.Name
	if arg.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "%s expects an object, but got a %s: %s", name, arg.Type, arg)
	}
	if in.Sort == nil || len(in.Sort.Parts) != 1 {
		return mongoerr.New(mongoerr.FailedToParse, "%s requires a sortBy with exactly one element", name)
	}
	r := rate{name: name}
	derivative := name == "$derivative"
	if derivative && !in.bounds {
		return mongoerr.New(mongoerr.FailedToParse, "$derivative requires explicit window bounds")
	}
	for it := arg.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "input":
			e, err := p.exprs.Parse(it.Value(), in.Scope)
			if err != nil {
				return err
			}
			r.input = []expr.Expr{e}
		case "unit":
			if err := r.readUnit(it.Value()); err != nil {
				return err
			}
		default:
			return mongoerr.New(mongoerr.FailedToParse, "%s got unexpected argument: %s", name, it.Key())
		}
	}
	if r.input == nil {
		return mongoerr.New(mongoerr.FailedToParse, "%s requires an 'input' expression", name)
	}
	w.exprs = r.input
	w.make = func() (Window, error) {
		if derivative {
			c := r
			return &c, nil
		}
		return &integral{input: r.input, unit: r.unit}, nil
	}
	return nil
}

// rate is $derivative, which looks at points (sort value, input).
type rate struct {
	name  string
	input []expr.Expr
	unit  float64 // in milliseconds, 0 without
	v     [1]bson.Value
}

func (r *rate) readUnit(v bson.Value) error {
	if v.Type != bson.TypeString {
		return mongoerr.New(mongoerr.FailedToParse, "'unit' must be a string")
	}
	switch v.Str() {
	case "week", "day", "hour", "minute", "second", "millisecond":
		u, _ := expr.DateUnitNamed(v.Str())
		r.unit = float64(u.Millis())
		return nil
	}
	return mongoerr.New(5490704, "unit must be 'week' or smaller")
}

// point is document i: its place and its value. A decimal makes the result one.
func (r *rate) point(rows Rows, i int) (x, y float64, decimal bool, err error) {
	sv, err := rows.SortValue(i)
	if err != nil {
		return 0, 0, false, err
	}
	switch {
	case sv.Type == bson.TypeDate && r.unit == 0:
		return 0, 0, false, mongoerr.New(5624901, "%s where the sortBy is a Date requires a 'unit'", r.name)
	case sv.Type == bson.TypeDate:
		x = float64(sv.Millis()) / r.unit
	case r.unit != 0:
		return 0, 0, false, mongoerr.New(5624900, "%s with 'unit' expects the sortBy field to be a Date", r.name)
	case !sv.IsNumber():
		return 0, 0, false, mongoerr.New(5624902, "%s (with no 'unit') expects the sortBy field to be numeric", r.name)
	default:
		x, decimal = sv.AsDouble(), sv.Type == bson.TypeDecimal
	}
	if err := rows.Eval(i, r.input, r.v[:]); err != nil {
		return 0, 0, false, err
	}
	v := r.v[0]
	if !v.IsNumber() {
		return 0, 0, false, mongoerr.New(5624903, "%s input must be numeric, but got %s", r.name, v.Type)
	}
	return x, v.AsDouble(), decimal || v.Type == bson.TypeDecimal, nil
}

// Next implements Window for $derivative.
func (r *rate) Next(rows Rows, f Frame) (bson.Value, error) {
	if f.High-f.Low < 2 {
		return bson.Null, nil
	}
	x1, y1, d1, err := r.point(rows, f.Low)
	if err != nil {
		return bson.Missing, err
	}
	x2, y2, d2, err := r.point(rows, f.High-1)
	if err != nil || x1 == x2 {
		return bson.Null, err
	}
	return number((y2-y1)/(x2-x1), d1 || d2), nil
}

// number is f as a double, or a decimal where one took part.
func number(f float64, decimal bool) bson.Value {
	if decimal {
		return bson.Decimal(bson.DecimalFromFloat(f))
	}
	return bson.Double(f)
}
