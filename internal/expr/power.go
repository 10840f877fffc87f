package expr

import (
	"math"
	"math/big"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func evalLog(env *Env, v, base bson.Value) (bson.Value, error) {
	if v.IsNullish() || base.IsNullish() {
		return bson.Null, nil
	}
	switch {
	case !v.IsNumber():
		return v, mongoerr.New(28756, "$log's argument must be numeric, not %s", v.Type)
	case !base.IsNumber():
		return v, mongoerr.New(28757, "$log's base must be numeric, not %s", base.Type)
	case sign(v) <= 0 && !v.IsNaN():
		return v, mongoerr.New(28758, "$log's argument must be a positive number, but is %s", inMessage(v))
	case (sign(base) <= 0 || bson.CompareNumbers(base, bson.Int32(1)) == 0) && !base.IsNaN():
		return v, mongoerr.New(28759, "$log's base must be a positive number not equal to 1, but is %s", inMessage(base))
	}
	if v.Type == bson.TypeDecimal || base.Type == bson.TypeDecimal {
		if v.IsNaN() || base.IsNaN() {
			return env.Double(math.NaN()), nil
		}
		return env.Decimal(decimalQuotient(bson.DecimalFromAPD(decimalLn(v.AsDecimal().APD())), bson.DecimalFromAPD(decimalLn(base.AsDecimal().APD())))), nil
	}
	return env.Double(logE(v.AsDouble()) / logE(base.AsDouble())), nil
}

func evalPow(env *Env, base, exp bson.Value) (bson.Value, error) {
	if base.IsNullish() || exp.IsNullish() {
		return bson.Null, nil
	}
	switch {
	case !base.IsNumber():
		return base, mongoerr.New(28762, "$pow's base must be numeric, not %s", base.Type)
	case !exp.IsNumber():
		return base, mongoerr.New(28763, "$pow's exponent must be numeric, not %s", exp.Type)
	case isZero(base) && sign(exp) < 0:
		return base, mongoerr.New(28764, "$pow cannot take a base of 0 and a negative exponent")
	case base.Type == bson.TypeDecimal || exp.Type == bson.TypeDecimal:
		return env.Decimal(decimalPow(base.AsDecimal(), exp.AsDecimal())), nil
	case isInt(base) && isInt(exp):
		return powInts(env, base, exp), nil
	}
	return env.Double(math.Pow(base.AsDouble(), exp.AsDouble())), nil
}

// powInts is a long (an int when both are and it fits), or a double when it does not fit.
func powInts(env *Env, base, exp bson.Value) bson.Value {
	b, _ := base.AsInt64()
	e, _ := exp.AsInt64()
	var n int64
	switch {
	case b == 1 || b == -1 && e%2 == 0:
		n = 1
	case b == -1:
		n = -1
	case e < 0:
		return env.Double(math.Pow(float64(b), float64(e)))
	case b == 0 && e > 0:
		n = 0
	case e > 63:
		return env.Double(math.Pow(float64(b), float64(e)))
	default:
		r := new(big.Int).Exp(big.NewInt(b), big.NewInt(e), nil)
		if !r.IsInt64() {
			return env.Double(math.Pow(float64(b), float64(e)))
		}
		n = r.Int64()
	}
	if base.Type == bson.TypeInt64 || exp.Type == bson.TypeInt64 {
		return env.Int64(n)
	}
	return env.Int(n)
}

// decimalPow is base raised to exp, with as many digits as a decimal has.
func decimalPow(base, exp bson.Decimal128) bson.Decimal128 {
	x, y := base.APD(), exp.APD()
	isBase := func(n int64) bool { return x.Form == apd.Finite && x.Cmp(integer(n)) == 0 }
	switch {
	case exp.IsZero() || isBase(1): // of NaN, and to NaN, too
		return bson.DecimalFromAPD(widest(integer(1)))
	case base.IsNaN() || exp.IsNaN():
		return bson.DecimalNaN
	case exp.Inf() != 0 || base.Inf() != 0 || base.IsZero():
		f := math.Pow(base.Float64(), exp.Float64())
		if f == 0 {
			return bson.Decimal128{} // the smallest exponent
		}
		return bson.DecimalFromFloat(f)
	}
	if x.Sign() < 0 && !bson.Decimal(exp).IsIntegral() {
		return bson.DecimalNaN
	}
	var r *apd.Decimal
	var err error
	switch {
	case isBase(10):
		r, err = powerOfTen(y)
	case isBase(2):
		r, err = powerOfTwo(y)
	default:
		r, err = powerOf(new(apd.Decimal).Abs(x), y)
	}
	if err != nil {
		return bson.DecimalNaN
	}
	r.Negative = x.Negative && odd(y)
	return bson.DecimalFromAPD(widest(r))
}

func odd(y *apd.Decimal) bool {
	if y.Exponent != 0 {
		var r apd.Decimal
		r.Reduce(y)
		if r.Exponent != 0 {
			return false
		}
		y = &r
	}
	return y.Coeff.Bit(0) == 1
}

// parseSigmoid takes its argument as it is, so that an array is none.
func parseSigmoid(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	e, err := p.parse(arg, scope)
	if err != nil {
		return nil, err
	}
	print := func(c *call) bson.Value { return bson.Build().Value(c.op.Name, c.args[0].Value()).Doc().Value() }
	return &call{op: op, args: []Expr{e}, print: print, eval: func(env *Env, c *call) (bson.Value, error) {
		v, err := c.args[0].Eval(env)
		if err != nil {
			return v, err
		}
		return evalSigmoid(env, v)
	}}, nil
}

// evalSigmoid is 1 / (1 + e^-x), each step as its operator does it.
func evalSigmoid(env *Env, v bson.Value) (bson.Value, error) {
	minus, err := evalMultiply(env, []bson.Value{bson.Int32(-1), v})
	if err != nil || minus.IsNullish() {
		return minus, err
	}
	if minus.Type != bson.TypeDecimal {
		return env.Double(1 / (1 + math.Exp(minus.AsDouble()))), nil
	}
	e := bson.DecimalFromAPD(decimalExp(minus.Decimal().APD()))
	one := bson.Decimal(bson.DecimalFromInt64(1))
	sum, _ := bson.Add(one, bson.Decimal(e))
	return env.Decimal(decimalQuotient(one.Decimal(), sum.Decimal())), nil
}

// roundTo is $round or $trunc: to the place of the second argument, 0 without one.
func roundTo(op string, mode apd.Rounder) func(env *Env, args []bson.Value) (bson.Value, error) {
	return func(env *Env, args []bson.Value) (bson.Value, error) {
		v, place := args[0], 0
		if len(args) == 2 {
			p := args[1]
			if v.IsNullish() || p.IsNullish() {
				return bson.Null, nil
			}
			if !p.IsNumber() {
				return v, mongoerr.New(16004, "can't convert from BSON type %s to long", p.Type)
			}
			if _, err := coerceLong(p); err != nil {
				return v, mongoerr.New(31109, "Can't coerce out of range value %s to long", p.Computed())
			}
			n, ok := int32Of(p)
			if !ok {
				return v, mongoerr.New(51082, "precision argument to  %s must be a integral value", op)
			}
			if n < -20 || n > 100 {
				return v, mongoerr.New(51083, "cannot apply %s with precision value %d value must be in [-20, 100]", op, n)
			}
			place = int(n)
		}
		if v.IsNullish() {
			return bson.Null, nil
		}
		if !v.IsNumber() {
			return v, mongoerr.New(51081, "%s only supports numeric types, not %s", op, v.Type)
		}
		return round(env, op, v, place, mode)
	}
}

func round(env *Env, op string, v bson.Value, place int, mode apd.Rounder) (bson.Value, error) {
	switch v.Type {
	case bson.TypeDecimal:
		d := quantize(v.Decimal(), int32(-place), mode)
		if d.IsNaN() { // more digits than there are
			return env.Decimal(bson.DecimalFromAPD(widest(v.Decimal().APD()))), nil
		}
		return env.Decimal(d), nil
	case bson.TypeDouble:
		f := v.Double()
		switch {
		case math.IsNaN(f) || math.IsInf(f, 0):
			return v, nil
		case place == 0 && mode == apd.RoundDown:
			return env.Double(math.Trunc(f)), nil
		case place == 0:
			return env.Double(math.RoundToEven(f)), nil
		}
		return env.Double(wide(decimalOfDouble(f), int32(-place), mode).Float64()), nil
	}
	if place >= 0 {
		return v, nil
	}
	n, _ := v.AsInt64()
	d := wide(bson.DecimalFromInt64(n), int32(-place), mode)
	r, exact := bson.Decimal(d).AsInt64()
	if !exact {
		return v, mongoerr.New(51080, "invalid conversion from Decimal128 result in %s resulting from arguments: [%s, %d]", op, v, place)
	}
	if v.Type == bson.TypeInt64 {
		return env.Int64(r), nil
	}
	return env.Int(r), nil
}

// wide is quantize for a number that may have more digits than fit, which then stays as it is.
func wide(d bson.Decimal128, exp int32, mode apd.Rounder) bson.Decimal128 {
	if d.APD().Exponent >= exp {
		return d
	}
	return quantize(d, exp, mode)
}

// logE is the natural logarithm; the processor's is wrong for subnormal numbers.
func logE(f float64) float64 {
	if f > 0 && f < 0x1p-1022 {
		return math.Log(f*0x1p54) - 54*math.Ln2
	}
	return math.Log(f)
}

// log10 is exact for powers of ten, as C's is.
func log10(f float64) float64 {
	if !(f > 0) || math.IsInf(f, 0) {
		return math.Log10(f)
	}
	const (
		inverse = 4.34294481903251816668e-01
		high    = 3.01029995663611771306e-01
		low     = 3.69423907715893078616e-13
	)
	m, e := math.Frexp(f) // in [0.5, 1)
	k := float64(e)
	if e >= 1 { // then in [1, 2)
		m, k = m*2, k-1
	}
	return k*low + inverse*math.Log(m) + k*high
}
