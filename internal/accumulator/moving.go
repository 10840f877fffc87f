package accumulator

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func movingOperators() []Operator {
	return []Operator{
		{Name: "$expMovingAvg", Since: "5.0", Doc: "An average that forgets older values exponentially.", Window: movingWindow},
	}
}

// movingWindow reads {input: <expression>} with N: <count> or alpha: <part>.
func movingWindow(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
	if in.bounds {
		return mongoerr.New(mongoerr.FailedToParse, "$expMovingAvg does not accept a 'window' field")
	}
	if arg.Type != bson.TypeObject {
		return mongoerr.New(mongoerr.FailedToParse, "$expMovingAvg must have exactly one argument that is an object")
	}
	if in.Sort == nil {
		return mongoerr.New(mongoerr.FailedToParse, "$expMovingAvg requires an explicit 'sortBy'")
	}
	m := moving{}
	given := 0
	for it := arg.Doc().Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "input":
			e, err := p.exprs.Parse(v, in.Scope)
			if err != nil {
				return err
			}
			m.input = []expr.Expr{e}
		case "N":
			n, exact := v.AsInt64()
			if !v.IsNumber() || !exact {
				return mongoerr.New(mongoerr.FailedToParse, "'N' field must be an integer, but found type %s", v.Type)
			}
			if n <= 0 {
				return mongoerr.New(mongoerr.FailedToParse, "'N' must be greater than zero. Got %d", n)
			}
			m.alpha = bson.Double(2 / (float64(n) + 1))
			m.decimalAlpha = quotient(apd.New(2, 0), apd.New(n+1, 0))
			given++
		case "alpha":
			if f := v.AsDouble(); !v.IsNumber() || !(f > 0 && f < 1) {
				return mongoerr.New(mongoerr.FailedToParse, "'alpha' must be between 0 and 1 (exclusive), found alpha: %s", v)
			}
			m.alpha = v.Clone()
			m.decimalAlpha = v.AsDecimal().APD()
			given++
		default:
			return mongoerr.New(mongoerr.FailedToParse, "Got unrecognized field in $expMovingAvg: %s", it.Key())
		}
	}
	if m.input == nil || given != 1 {
		return mongoerr.New(mongoerr.FailedToParse, "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field")
	}
	w.exprs = m.input
	w.make = func() (Window, error) { c := m; return &c, nil }
	return nil
}

func quotient(a, b *apd.Decimal) *apd.Decimal {
	var q apd.Decimal
	ctx := bson.DecimalContext
	_, _ = ctx.Quo(&q, a, b) // both are positive and small
	return &q
}

type moving struct {
	input        []expr.Expr
	alpha        bson.Value
	decimalAlpha *apd.Decimal
	started      bool
	decimal      bool
	average      float64
	precise      apd.Decimal
	v            [1]bson.Value
}

func (m *moving) Next(rows Rows, f Frame) (bson.Value, error) {
	if err := rows.Eval(f.At, m.input, m.v[:]); err != nil {
		return bson.Missing, err
	}
	v := m.v[0]
	if !v.IsNumber() {
		return bson.Null, nil
	}
	if v.Type == bson.TypeDecimal && !m.decimal {
		m.decimal = true
		m.precise.Set(bson.DecimalFromFloatExact(m.average).APD())
	}
	if m.decimal {
		return m.nextDecimal(v)
	}
	x := v.AsDouble()
	if !m.started {
		m.started, m.average = true, x
	} else {
		a := m.alpha.AsDouble()
		m.average = x*a + m.average*(1-a)
	}
	return bson.Double(m.average), nil
}

func (m *moving) nextDecimal(v bson.Value) (bson.Value, error) {
	x := v.AsDecimal().APD()
	if !m.started {
		m.started = true
		m.precise.Set(x)
	} else {
		ctx := bson.DecimalContext
		var part, rest apd.Decimal
		_, _ = ctx.Mul(&part, x, m.decimalAlpha) // NaN and infinities come out as themselves
		_, _ = ctx.Sub(&rest, apd.New(1, 0), m.decimalAlpha)
		_, _ = ctx.Mul(&rest, &m.precise, &rest)
		_, _ = ctx.Add(&m.precise, &part, &rest)
	}
	return bson.Decimal(bson.DecimalFromAPD(&m.precise)), nil
}
