package expr

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func arithmeticOperators() []Operator {
	return []Operator{
		{Name: "$abs", Since: "3.2", Doc: "The absolute value of a number.", Shape: number(evalAbs)},
		{Name: "$add", Since: "2.2", Doc: "The sum of numbers, or a date moved by milliseconds.", Shape: nary{0, many, evalAdd}},
		{Name: "$ceil", Since: "3.2", Doc: "The smallest integer that is not less than a number.", Shape: number(evalCeil)},
		{Name: "$divide", Since: "2.2", Doc: "The quotient of two numbers.", Shape: dyadic(evalDivide)},
		{Name: "$exp", Since: "3.2", Doc: "Euler's number raised to a power.",
			Shape: real{double: math.Exp, decimal: decimalExp}.shape("$exp")},
		{Name: "$floor", Since: "3.2", Doc: "The largest integer that is not greater than a number.", Shape: number(evalFloor)},
		{Name: "$ln", Since: "3.2", Doc: "The natural logarithm of a number.",
			Shape: real{logE, decimalLn, positive(28766), true}.shape("$ln")},
		{Name: "$log", Since: "3.2", Doc: "The logarithm of a number to a base.", Shape: dyadic(evalLog)},
		{Name: "$log10", Since: "3.2", Doc: "The logarithm of a number to base 10.",
			Shape: real{log10, decimalLog10, positive(28761), true}.shape("$log10")},
		{Name: "$mod", Since: "2.2", Doc: "The remainder of a division.", Shape: dyadic(evalMod)},
		{Name: "$multiply", Since: "2.2", Doc: "The product of numbers.", Shape: nary{0, many, evalMultiply}},
		{Name: "$pow", Since: "3.2", Doc: "A number raised to a power.", Shape: dyadic(evalPow)},
		{Name: "$round", Since: "4.2", Doc: "A number rounded to a place, halves to the even digit.", Shape: nary{1, 2, roundTo("$round", apd.RoundHalfEven)}},
		{Name: "$sigmoid", Since: "8.1", Doc: "The sigmoid of a number, 1 / (1 + e^-x).",
			Shape: special(parseSigmoid)},
		{Name: "$sqrt", Since: "3.2", Doc: "The square root of a number.",
			Shape: real{math.Sqrt, decimalSqrt, notNegative, false}.shape("$sqrt")},
		{Name: "$subtract", Since: "2.2", Doc: "The difference of two numbers or dates, or a date moved by milliseconds.", Shape: dyadic(evalSubtract)},
		{Name: "$trunc", Since: "3.2", Doc: "A number cut off at a place.", Shape: nary{1, 2, roundTo("$trunc", apd.RoundDown)}},
	}
}

func evalAbs(env *Env, v bson.Value) (bson.Value, error) {
	switch v.Type {
	case bson.TypeInt32:
		return env.Int(max(int64(v.Int32()), -int64(v.Int32()))), nil
	case bson.TypeInt64:
		n := v.Int64()
		if n == math.MinInt64 {
			return v, mongoerr.New(28680, "can't take $abs of long long min")
		}
		return env.Int64(max(n, -n)), nil
	case bson.TypeDecimal:
		d := v.Decimal()
		d.High &^= 1 << 63
		return env.Decimal(d), nil
	}
	return env.Double(math.Abs(v.Double())), nil
}

func evalAdd(env *Env, args []bson.Value) (bson.Value, error) {
	var sum Summation
	var date, decimal bson.Value // decimal is the sum once there is one in it
	for _, v := range args {
		switch {
		case v.IsNumber() && !decimal.IsMissing():
			decimal, _ = bson.Add(decimal, v)
		case v.Type == bson.TypeDecimal:
			decimal = v
			if sum.widest != 0 {
				decimal, _ = bson.Add(sum.Value(env), v)
			}
		case v.IsNumber():
			sum.Add(v)
		case v.Type == bson.TypeDate:
			if !date.IsMissing() {
				return v, mongoerr.New(16612, "only one date allowed in an $add expression")
			}
			date = v
		case v.IsNullish():
			return bson.Null, nil
		default:
			return v, mongoerr.New(mongoerr.TypeMismatch, "$add only supports numeric or date types, not %s", v.Type)
		}
	}
	total := decimal
	if decimal.IsMissing() {
		total = sum.Value(env)
	}
	if date.IsMissing() {
		return total, nil
	}
	ms, err := wholeMillis(total, "$add")
	if err != nil {
		return date, err
	}
	moved := date.Millis() + ms
	if (moved > date.Millis()) != (ms > 0) && ms != 0 {
		return date, mongoerr.New(mongoerr.Overflow, "date overflow in $add")
	}
	return env.Date(moved), nil
}

// wholeMillis rounds a number to milliseconds that a date may be moved by.
func wholeMillis(v bson.Value, op string) (int64, error) {
	overflow := mongoerr.New(mongoerr.Overflow, "date overflow in %s", op)
	switch v.Type {
	case bson.TypeInt32, bson.TypeInt64:
		n, _ := v.AsInt64()
		return n, nil
	case bson.TypeDecimal:
		d := v.Decimal()
		if d.IsNaN() || d.Inf() != 0 {
			return 0, overflow
		}
		v = bson.Decimal(wholeOf(d, apd.RoundHalfEven))
		n, exact := v.AsInt64()
		if !exact {
			return 0, overflow
		}
		return n, nil
	}
	f := v.AsDouble()
	if !(f >= math.MinInt64 && f < math.MaxInt64) {
		return 0, overflow
	}
	return int64(math.Round(f)), nil
}

func evalSubtract(env *Env, a, b bson.Value) (bson.Value, error) {
	switch {
	case a.IsNumber() && b.IsNumber():
		return env.difference(a, b), nil
	case a.IsNullish() || b.IsNullish():
		return bson.Null, nil
	case a.Type == bson.TypeDate && b.Type == bson.TypeDate:
		diff := a.Millis() - b.Millis()
		if (diff < a.Millis()) != (b.Millis() > 0) && b.Millis() != 0 {
			return a, mongoerr.New(mongoerr.Overflow, "overflow in $subtract of two dates")
		}
		return env.Int64(diff), nil
	case a.Type == bson.TypeDate && b.IsNumber():
		ms, err := wholeMillis(b, "$subtract")
		if err != nil {
			return a, err
		}
		moved := a.Millis() - ms
		if (moved < a.Millis()) != (ms > 0) && ms != 0 {
			return a, mongoerr.New(mongoerr.Overflow, "date overflow in $subtract")
		}
		return env.Date(moved), nil
	}
	return a, mongoerr.New(mongoerr.TypeMismatch, "can't $subtract %s from %s", b.Type, a.Type)
}

// difference is bson.Sub without an allocation where numbers are small.
func (e *Env) difference(a, b bson.Value) bson.Value {
	switch {
	case a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32:
		return e.Int(int64(a.Int32()) - int64(b.Int32()))
	case floats(a, b):
		return e.Double(a.AsDouble() - b.AsDouble())
	}
	v, _ := bson.Sub(a, b)
	return v
}

// product is bson.Mul without an allocation where numbers are small.
func (e *Env) product(a, b bson.Value) bson.Value {
	switch {
	case a.Type == bson.TypeInt32 && b.Type == bson.TypeInt32:
		return e.Int(int64(a.Int32()) * int64(b.Int32()))
	case floats(a, b):
		return e.Double(a.AsDouble() * b.AsDouble())
	}
	v, _ := bson.Mul(a, b)
	return v
}

// floats says whether numbers meet as doubles.
func floats(a, b bson.Value) bool {
	return a.Type == bson.TypeDouble && b.Type != bson.TypeDecimal || b.Type == bson.TypeDouble && a.Type != bson.TypeDecimal
}

func evalMultiply(env *Env, args []bson.Value) (bson.Value, error) {
	product := bson.Int32(1)
	for i, v := range args {
		switch {
		case v.IsNumber() && i == 0:
			product = v
		case v.IsNumber():
			product = env.product(product, v)
		case v.IsNullish():
			return bson.Null, nil
		default:
			return v, mongoerr.New(mongoerr.TypeMismatch, "$multiply only supports numeric types, not %s", v.Type)
		}
	}
	return product, nil
}

func evalDivide(env *Env, a, b bson.Value) (bson.Value, error) {
	if !a.IsNumber() || !b.IsNumber() {
		if a.IsNullish() || b.IsNullish() {
			return bson.Null, nil
		}
		return a, mongoerr.New(mongoerr.TypeMismatch, "$divide only supports numeric types, not %s and %s", a.Type, b.Type)
	}
	if isZero(b) {
		return a, mongoerr.New(mongoerr.BadValue, "can't $divide by zero")
	}
	if a.Type == bson.TypeDecimal || b.Type == bson.TypeDecimal {
		return env.Decimal(decimalQuotient(a.AsDecimal(), b.AsDecimal())), nil
	}
	return env.Double(a.AsDouble() / b.AsDouble()), nil
}

func isZero(v bson.Value) bool { return sign(v) == 0 && !v.IsNaN() }

func evalMod(env *Env, a, b bson.Value) (bson.Value, error) {
	if !a.IsNumber() || !b.IsNumber() {
		if a.IsNullish() || b.IsNullish() {
			return bson.Null, nil
		}
		return a, mongoerr.New(16611, "$mod only supports numeric types, not %s and %s", a.Type, b.Type)
	}
	decimal := a.Type == bson.TypeDecimal || b.Type == bson.TypeDecimal
	if isZero(b) {
		if decimal {
			return a, mongoerr.New(5733415, "can't $mod by zero")
		}
		return a, mongoerr.New(16610, "can't $mod by zero")
	}
	if decimal {
		return env.Decimal(decimalMod(a.AsDecimal(), b.AsDecimal())), nil
	}
	if a.Type == bson.TypeDouble || b.Type == bson.TypeDouble {
		return env.Double(math.Mod(a.AsDouble(), b.AsDouble())), nil
	}
	x, _ := a.AsInt64()
	y, _ := b.AsInt64()
	rest := int64(0)
	if y != -1 {
		rest = x % y
	}
	if a.Type == bson.TypeInt64 || b.Type == bson.TypeInt64 {
		return env.Int64(rest), nil
	}
	return env.Int32(int32(rest)), nil
}

// decimalMod is the remainder with the sign of a, exactly.
func decimalMod(a, b bson.Decimal128) bson.Decimal128 {
	switch {
	case a.IsNaN() || b.IsNaN() || a.Inf() != 0:
		return bson.DecimalNaN
	case b.Inf() != 0:
		return a
	}
	x, y := a.APD(), b.APD()
	exp := min(x.Exponent, y.Exponent)
	pow := func(d *apd.Decimal) *apd.BigInt {
		n := new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(d.Exponent-exp)), nil)
		return n.Mul(n, &d.Coeff)
	}
	r := &apd.Decimal{Negative: x.Negative, Exponent: exp}
	r.Coeff.Rem(pow(x), pow(y))
	return bson.DecimalFromAPD(r)
}

func evalCeil(env *Env, v bson.Value) (bson.Value, error) {
	return toWhole(env, v, math.Ceil, apd.RoundCeiling)
}

func evalFloor(env *Env, v bson.Value) (bson.Value, error) {
	return toWhole(env, v, math.Floor, apd.RoundFloor)
}

func toWhole(env *Env, v bson.Value, f func(float64) float64, mode apd.Rounder) (bson.Value, error) {
	switch v.Type {
	case bson.TypeDouble:
		return env.Double(f(v.Double())), nil
	case bson.TypeDecimal:
		if v.Decimal().Inf() != 0 {
			return env.Decimal(bson.DecimalNaN), nil
		}
		return env.Decimal(quantize(v.Decimal(), 0, mode)), nil
	}
	return v, nil
}

func positive(code mongoerr.Code) func(op string, v bson.Value) error {
	return func(op string, v bson.Value) error {
		if sign(v) > 0 || v.IsNaN() {
			return nil
		}
		return mongoerr.New(code, "%s's argument must be a positive number, but is %s", op, inMessage(v))
	}
}

func notNegative(op string, v bson.Value) error {
	if sign(v) < 0 {
		return mongoerr.New(28714, "%s's argument must be greater than or equal to 0", op)
	}
	return nil
}
