package accumulator

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func scaleOperators() []Operator {
	return []Operator{
		{Name: "$minMaxScaler", Since: "8.2", Doc: "The value scaled from the window's extremes to a range.", Window: scaleWindow},
	}
}

// scaleWindow reads {input: <expression>, min: <number>, max: <number>}.
func scaleWindow(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
	if arg.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "$minMaxScaler expects an object, but got %s", arg.Type)
	}
	s := scaler{low: bson.Int32(0), high: bson.Int32(1)}
	for it := arg.Doc().Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "input":
			e, err := p.exprs.Parse(v, in.Scope)
			if err != nil {
				return err
			}
			s.input = []expr.Expr{e}
		case "min", "max":
			e, err := p.exprs.Parse(v, in.Scope)
			if err != nil {
				return err
			}
			c, constant := expr.Constant(e)
			if !constant || !c.IsNumber() {
				return mongoerr.New(mongoerr.FailedToParse, "'%s' of $minMaxScaler must be a constant number", it.Key())
			}
			if it.Key() == "min" {
				s.low = c.Clone()
			} else {
				s.high = c.Clone()
			}
		default:
			return mongoerr.New(mongoerr.FailedToParse, "$minMaxScaler got unexpected argument: %s", it.Key())
		}
	}
	switch {
	case s.input == nil:
		return mongoerr.New(mongoerr.FailedToParse, "$minMaxScaler requires an 'input' expression")
	case bson.Compare(s.low, s.high) >= 0:
		return mongoerr.New(mongoerr.FailedToParse, "'min' of $minMaxScaler must be less than 'max'")
	}
	w.exprs = s.input
	w.make = func() (Window, error) {
		c := s
		smallest := &Spec{Op: w.Op, Args: s.input, make: newMin(p)}
		largest := &Spec{Op: w.Op, Args: s.input, make: newMax(p)}
		var err error
		if c.smallest, err = newSliding(smallest, bson.Missing); err != nil {
			return nil, err
		}
		c.largest, err = newSliding(largest, bson.Missing)
		return &c, err
	}
	return nil
}

// scaler computes in the types that the values have. Where all values of the window are equal the result is low, as it was given.
type scaler struct {
	input             []expr.Expr
	low, high         bson.Value
	smallest, largest Window
	v                 [1]bson.Value
}

func (s *scaler) Next(rows Rows, f Frame) (bson.Value, error) {
	least, err := s.smallest.Next(rows, f)
	if err != nil {
		return bson.Missing, err
	}
	least = least.Clone()
	most, err := s.largest.Next(rows, f)
	if err != nil {
		return bson.Missing, err
	}
	most = most.Clone()
	if err := rows.Eval(f.At, s.input, s.v[:]); err != nil {
		return bson.Missing, err
	}
	v := s.v[0]
	for _, x := range []bson.Value{v, least, most} {
		if !x.IsNumber() {
			return bson.Missing, mongoerr.New(10487001, "'input' argument to $minMaxScaler must evaluate to a numeric type, got type: %s", v.Type)
		}
	}
	if bson.Equal(least, most) {
		return s.low, nil
	}
	scaled, _ := bson.Mul(divided(less(v, least), less(most, least)), less(s.high, s.low))
	sum, _ := bson.Add(scaled, s.low)
	return sum, nil
}
