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

// rate is $derivative: what the input changes by between the first document of the window and the last, by what the sort value does. It is
// computed in the types that the values have. Dates are subtracted as dates, and the unit comes last: as doubles, moments counted in hours
// lose the difference between them.
type rate struct {
	name        string
	input       []expr.Expr
	unit        float64 // in milliseconds, 0 without
	first, last point
	v           [1]bson.Value
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

// point reads document i: its place and its value.
func (r *rate) point(rows Rows, i int, p *point) error {
	x, err := rows.SortValue(i)
	if err != nil {
		return err
	}
	switch {
	case r.unit != 0 && x.Type != bson.TypeDate:
		return mongoerr.New(5624900, "%s with 'unit' expects the sortBy field to be a Date", r.name)
	case r.unit == 0 && x.Type == bson.TypeDate:
		return mongoerr.New(5624901, "%s where the sortBy is a Date requires an 'unit'", r.name)
	case r.unit == 0 && !x.IsNumber():
		return mongoerr.New(5624902, "%s (with no 'unit') expects the sortBy field to be numeric", r.name)
	}
	p.x.set(x)
	if err := rows.Eval(i, r.input, r.v[:]); err != nil {
		return err
	}
	p.y.set(r.v[0])
	return nil
}

// Next implements Window for $derivative.
func (r *rate) Next(rows Rows, f Frame) (bson.Value, error) {
	if f.High <= f.Low {
		return bson.Null, nil
	}
	if err := r.point(rows, f.Low, &r.first); err != nil {
		return bson.Missing, err
	}
	if err := r.point(rows, f.High-1, &r.last); err != nil {
		return bson.Missing, err
	}
	run := distance(r.first.x.Value, r.last.x.Value)
	rise, err := r.rise(run)
	if err != nil || bson.Equal(run, bson.Int32(0)) {
		return bson.Null, err
	}
	result := divided(rise, run)
	if r.unit != 0 {
		result, _ = bson.Mul(result, bson.Int64(int64(r.unit)))
	}
	return result, nil
}

// rise is the change of the input, which may be one of dates, in milliseconds.
func (r *rate) rise(run bson.Value) (bson.Value, error) {
	from, to := r.first.y.Value, r.last.y.Value
	switch {
	case from.IsNullish() || to.IsNullish():
		return bson.Missing, mongoerr.New(5624903, "%s input must not be null or missing", r.name)
	case from.IsNumber() && to.Type == bson.TypeDate:
		return bson.Missing, mongoerr.New(mongoerr.TypeMismatch, "$divide only supports numeric types, not date and %s", run.Type)
	}
	return change(from, to)
}
