package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// number takes one number: null of nothing, and an error of anything else.
func number(f func(env *Env, v bson.Value) (bson.Value, error)) special {
	return func(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
		return unary(func(env *Env, v bson.Value) (bson.Value, error) {
			if v.IsNullish() {
				return bson.Null, nil
			}
			if !v.IsNumber() {
				return v, mongoerr.New(28765, "%s only supports numeric types, not %s", op.Name, v.Type)
			}
			return f(env, v)
		}).parse(p, op, arg, scope)
	}
}

// real is a function of a double or a decimal; ints and longs count as doubles.
type real struct {
	double  func(f float64) float64
	decimal func(d *apd.Decimal) *apd.Decimal
	check   func(op string, v bson.Value) error // of the domain; may be nil
	// doubleNaN makes a double of a decimal NaN, as MongoDB does behind some checks.
	doubleNaN bool
}

func (r real) shape(op string) special {
	return number(func(env *Env, v bson.Value) (bson.Value, error) {
		if r.check != nil {
			if err := r.check(op, v); err != nil {
				return v, err
			}
		}
		if v.Type == bson.TypeDecimal && v.IsNaN() && r.doubleNaN {
			return env.Double(math.NaN()), nil
		}
		if v.Type == bson.TypeDecimal {
			return env.Decimal(bson.DecimalFromAPD(r.decimal(v.Decimal().APD()))), nil
		}
		return env.Double(r.double(v.AsDouble())), nil
	})
}

// sign is -1, 0 or 1; NaN has none.
func sign(v bson.Value) int {
	f := v.AsDouble()
	if v.Type == bson.TypeDecimal {
		d := v.Decimal()
		switch {
		case d.IsNaN() || d.IsZero():
			return 0
		case d.Negative():
			return -1
		}
		return 1
	}
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

// wideContext computes with some digits more than a decimal has, so that the last one of the result is right.
func wideContext() *apd.Context {
	return &apd.Context{Precision: 40, MaxExponent: 20000, MinExponent: -20000, Rounding: apd.RoundHalfEven}
}

func isInt(v bson.Value) bool { return v.Type == bson.TypeInt32 || v.Type == bson.TypeInt64 }

// integer is an int32 that v stands for, and whether it does.
func int32Of(v bson.Value) (int32, bool) {
	n, exact := v.AsInt64()
	return int32(n), v.IsNumber() && exact && n >= math.MinInt32 && n <= math.MaxInt32
}
