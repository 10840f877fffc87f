package expr

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func percentileOperators() []Operator {
	return []Operator{
		{Name: "$median", Since: "7.0", Doc: "The median of the numbers of an array.", Shape: special(parsePercentile)},
		{Name: "$percentile", Since: "7.0", Doc: "Percentiles of the numbers of an array.", Shape: special(parsePercentile)},
	}
}

func parsePercentile(p *Parser, op *Operator, arg bson.Value, scope *Scope) (Expr, error) {
	median := op.Name == "$median"
	if arg.Type != bson.TypeObject {
		code := mongoerr.Code(7436200)
		if median {
			code = 7436201
		}
		return nil, mongoerr.New(code, "specification must be an object; found %s: %s", op.Name, arg)
	}
	c := &call{op: op, names: []string{"input", "method", "p"}, args: make([]Expr, 3)}
	var method, ps bson.Value
	for it := arg.Doc().Iter(); it.Next(); {
		switch {
		case it.Key() == "input":
			e, err := p.parse(it.Value(), scope)
			if err != nil {
				return nil, err
			}
			c.args[0] = e
		case it.Key() == "method":
			method = it.Value()
		case it.Key() == "p" && !median:
			ps = it.Value()
		default:
			return nil, mongoerr.New(40415, "BSON field '%s.%s' is an unknown field.", op.Name, it.Key())
		}
	}
	switch {
	case c.args[0] == nil:
		return nil, missingBSONField(op, "input")
	case !median && ps.IsMissing():
		return nil, missingBSONField(op, "p")
	case method.IsMissing():
		return nil, missingBSONField(op, "method")
	}
	points := []float64{0.5}
	if !median {
		e, err := p.Parse(ps, scope)
		if err != nil {
			return nil, err
		}
		if points, err = Percentiles(e, ps); err != nil {
			return nil, err
		}
		v, _ := Constant(e)
		c.args[2] = plain(v)
	}
	if err := CheckPercentileMethod(op.Name, method); err != nil {
		return nil, err
	}
	c.args[1] = plain(method)
	c.eval = func(env *Env, c *call) (bson.Value, error) { return evalPercentile(env, c, points, median) }
	return c, nil
}

func missingBSONField(op *Operator, name string) error {
	return mongoerr.New(40414, "BSON field '%s.%s' is missing but a required field", op.Name, name)
}

// CheckPercentileMethod refuses all but what MongoDB has.
func CheckPercentileMethod(op string, v bson.Value) error {
	if v.Type != bson.TypeString {
		return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s.method' is the wrong type '%s', expected type 'string'", op, v.Type)
	}
	if v.Str() != "approximate" {
		return mongoerr.New(mongoerr.BadValue, "Currently only 'approximate' can be used as a percentile 'method'.")
	}
	return nil
}

// Percentiles reads the p of $percentile, which was parsed of what was said.
func Percentiles(p Expr, said bson.Value) ([]float64, error) {
	v, ok := Constant(p)
	if !ok {
		return nil, mongoerr.New(7750300, "The $percentile 'p' field must be an array of constant values, but found value: %s.", said)
	}
	const want = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: %s"
	if v.Type != bson.TypeArray || v.Doc().IsEmpty() {
		return nil, mongoerr.New(7750301, want, v.Computed())
	}
	var out []float64
	for it := v.Doc().Iter(); it.Next(); {
		p := it.Value()
		if !p.IsNumber() {
			return nil, mongoerr.New(7750302, want, p.Computed())
		}
		f := p.AsDouble()
		if !(f >= 0 && f <= 1) {
			return nil, mongoerr.New(7750303, want, p.Computed())
		}
		out = append(out, f)
	}
	return out, nil
}

func evalPercentile(env *Env, c *call, points []float64, median bool) (bson.Value, error) {
	input, err := c.args[0].Eval(env)
	if err != nil {
		return input, err
	}
	var fs []float64
	add := func(v bson.Value) {
		if f := v.AsDouble(); v.IsNumber() && !math.IsNaN(f) {
			fs = append(fs, f)
		}
	}
	if input.Type == bson.TypeArray {
		for it := input.Doc().Iter(); it.Next(); {
			add(it.Value())
		}
	} else {
		add(input)
	}
	slices.Sort(fs)
	vs := make([]bson.Value, len(points))
	for i, p := range points {
		vs[i] = bson.Null
		if len(fs) > 0 {
			at := int(math.Ceil(p*float64(len(fs)))) - 1
			vs[i] = env.Double(fs[max(0, at)])
		}
	}
	if median {
		return vs[0], nil
	}
	return env.Array(vs)
}
