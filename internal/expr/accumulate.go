package expr

import (
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/ordering"
)

// accumulatorOperators are the accumulators as expressions: over their arguments, or the elements of the one that is an array.
func accumulatorOperators() []Operator {
	return []Operator{
		{Name: "$avg", Since: "3.2", Doc: "The average of the numbers among the arguments.", Shape: spread(evalAvg)},
		{Name: "$first", Since: "4.4", Doc: "The first element of an array.", Shape: endShape("$first", 0)},
		{Name: "$firstN", Since: "5.2", Doc: "The first elements of an array.", Shape: nShape(5787801, firstN)},
		{Name: "$last", Since: "4.4", Doc: "The last element of an array.", Shape: endShape("$last", -1)},
		{Name: "$lastN", Since: "5.2", Doc: "The last elements of an array.", Shape: nShape(5787801, lastN)},
		{Name: "$max", Since: "3.2", Doc: "The greatest of the arguments.", Shape: extreme(1)},
		{Name: "$maxN", Since: "5.2", Doc: "The greatest elements of an array, in descending order.", Shape: nShape(5787900, extremeN(1))},
		{Name: "$min", Since: "3.2", Doc: "The least of the arguments.", Shape: extreme(-1)},
		{Name: "$minN", Since: "5.2", Doc: "The least elements of an array, in ascending order.", Shape: nShape(5787900, extremeN(-1))},
		{Name: "$stdDevPop", Since: "3.2", Doc: "The standard deviation of all the numbers among the arguments.", Shape: deviation(0)},
		{Name: "$stdDevSamp", Since: "3.2", Doc: "The standard deviation of a sample, the numbers among the arguments.", Shape: deviation(1)},
		{Name: "$sum", Since: "3.2", Doc: "The sum of the numbers among the arguments.", Shape: spread(evalSum)},
	}
}

func evalSum(env *Env, vs []bson.Value) (bson.Value, error) {
	var sum Summation
	for _, v := range vs {
		if v.IsNumber() {
			sum.Add(v)
		}
	}
	return sum.Value(env), nil
}

// evalAvg divides the sum, which as a double leaves out what twoSum says was lost (that of the accumulator does not).
func evalAvg(env *Env, vs []bson.Value) (bson.Value, error) {
	var exact Summation
	var sum carried
	n := int64(0)
	for _, v := range vs {
		if !v.IsNumber() {
			continue
		}
		n++
		exact.Add(v)
		if v.Type == bson.TypeInt64 {
			high := v.Int64() / (1 << 32) * (1 << 32)
			sum.add(float64(v.Int64() - high))
			sum.add(float64(high))
		} else {
			sum.add(v.AsDouble())
		}
	}
	if n == 0 || exact.Type() == bson.TypeDecimal {
		return exact.Average(env, n), nil
	}
	return env.Double(sum.double() / float64(n)), nil
}

// carried adds doubles. What is lost of the sum is added with the next one, and is no part of the sum at the end.
type carried struct {
	sum, lost float64
	plain     float64 // added as they come, for sums of infinities
}

func (c *carried) add(x float64) {
	c.plain += x
	x, lost := twoSum(x, c.lost)
	c.sum, c.lost = twoSum(c.sum, x)
	c.lost += lost
}

func (c *carried) double() float64 {
	if math.IsNaN(c.sum) {
		return c.plain
	}
	return c.sum
}

// Average is the sum divided by n: a decimal when any was added, else a double, and null of nothing.
func (s *Summation) Average(env *Env, n int64) bson.Value {
	switch {
	case n == 0:
		return bson.Null
	case s.Type() == bson.TypeDecimal:
		return env.Decimal(decimalQuotient(s.Decimal(), bson.DecimalFromInt64(n)))
	}
	return env.Double(s.Double() / float64(n))
}

func extreme(sign int) spread {
	return func(env *Env, vs []bson.Value) (bson.Value, error) {
		best := bson.Null
		for _, v := range vs {
			if !v.IsNullish() && (best.IsNullish() || env.Compare(v, best)*sign > 0) {
				best = v
			}
			env.read(v)
			if err := env.tick(); err != nil {
				return v, err
			}
		}
		return best, nil
	}
}

func deviation(less float64) spread {
	return func(env *Env, vs []bson.Value) (bson.Value, error) {
		var n, mean, squares float64 // Welford's method
		for _, v := range vs {
			if !v.IsNumber() {
				continue
			}
			f := v.AsDouble()
			n++
			delta := f - mean
			mean += delta / n
			squares += delta * (f - mean)
		}
		if n-less <= 0 {
			return bson.Null, nil
		}
		return env.Double(math.Sqrt(squares / (n - less))), nil
	}
}

func endShape(op string, at int) unary {
	return func(env *Env, v bson.Value) (bson.Value, error) {
		if v.IsNullish() {
			return bson.Null, nil
		}
		if v.Type != bson.TypeArray {
			return v, mongoerr.New(28689, "%s's argument must be an array, but is %s", op, v.Type)
		}
		return env.elementAt(v, at), nil
	}
}

// nShape takes {n, input} and picks of the input's elements.
func nShape(notObject mongoerr.Code, pick func(env *Env, vs []bson.Value, n int) ([]bson.Value, error)) named {
	return named{
		params:    []param{{"n", 5787906}, {"input", 5787907}},
		notObject: notObject,
		echoes:    true,
		unknown:   5787901,
		of: func(env *Env, args []bson.Value) (bson.Value, error) {
			n, err := CheckN(args[0])
			if err != nil {
				return args[0], err
			}
			if args[1].Type != bson.TypeArray {
				return args[1], mongoerr.New(5788200, "Input must be an array")
			}
			vs, mark := env.elements(args[1])
			defer env.cut(mark)
			picked, err := pick(env, vs, n)
			if err != nil {
				return args[1], err
			}
			return env.Array(picked)
		},
	}
}

// CheckN is how many elements the n of $firstN and its like asks for.
func CheckN(v bson.Value) (int, error) {
	n, exact := v.AsInt64()
	if !v.IsNumber() || !exact || n <= 0 {
		return 0, mongoerr.New(7548606, "Value for 'n' must be a positive integer, but found %s", v.Computed())
	}
	return int(min(n, math.MaxInt32)), nil
}

func firstN(_ *Env, vs []bson.Value, n int) ([]bson.Value, error) { return vs[:min(n, len(vs))], nil }

func lastN(_ *Env, vs []bson.Value, n int) ([]bson.Value, error) { return vs[max(0, len(vs)-n):], nil }

func extremeN(sign int) func(env *Env, vs []bson.Value, n int) ([]bson.Value, error) {
	return func(env *Env, vs []bson.Value, n int) ([]bson.Value, error) {
		vs = slices.DeleteFunc(vs, func(v bson.Value) bool { return v.IsNullish() })
		err := ordering.StableSized(vs, func(a, b bson.Value) int { return env.Compare(b, a) * sign }, sizeOf, env.Interrupt)
		return vs[:min(n, len(vs))], err
	}
}
