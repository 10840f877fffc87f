package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func shiftOperators() []Operator {
	return []Operator{
		{Name: "$shift", Since: "5.0", Doc: "The value of a document before or behind.", Window: shiftWindow},
	}
}

// shiftWindow reads {output: <expression>, by: <integer>, default: <constant>}.
func shiftWindow(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
	if arg.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "Argument to $shift must be an object")
	}
	if in.bounds {
		return mongoerr.New(mongoerr.FailedToParse, "$shift does not accept a 'window' field")
	}
	if in.Sort == nil {
		return mongoerr.New(mongoerr.FailedToParse, "'$shift' requires a sortBy")
	}
	s := shift{otherwise: bson.Null}
	var by bson.Value
	for it := arg.Doc().Iter(); it.Next(); {
		switch it.Key() {
		case "output":
			e, err := p.exprs.Parse(it.Value(), in.Scope)
			if err != nil {
				return err
			}
			s.output = []expr.Expr{e}
		case "by":
			by = it.Value()
			if n, exact := by.AsInt64(); !by.IsNumber() || !exact || n != int64(int32(n)) {
				return mongoerr.New(mongoerr.FailedToParse, "'$shift:by' field must be an integer, but found %s", by)
			}
		case "default":
			e, err := p.exprs.Parse(it.Value(), in.Scope)
			if err != nil {
				return err
			}
			v, constant := expr.Constant(e)
			if !constant {
				return mongoerr.New(mongoerr.FailedToParse, "'$shift:default' expression must yield a constant value.")
			}
			s.otherwise = orNull(v)
		default:
			return mongoerr.New(mongoerr.FailedToParse, "Unknown argument in $shift: %s", it.Key())
		}
	}
	if s.output == nil || by.IsMissing() {
		return mongoerr.New(mongoerr.FailedToParse, "$shift requires 'output' and 'by'")
	}
	n, _ := by.AsInt64()
	s.by = int(n)
	w.exprs = s.output
	w.make = func() (Window, error) { c := s; return &c, nil }
	return nil
}

type shift struct {
	output    []expr.Expr
	by        int
	otherwise bson.Value
	v         [1]bson.Value
}

func (s *shift) Next(rows Rows, f Frame) (bson.Value, error) {
	i := f.At + s.by
	if i < 0 || i >= rows.Len() {
		return s.otherwise, nil
	}
	err := rows.Eval(i, s.output, s.v[:])
	return s.v[0], err
}
