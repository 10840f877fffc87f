package accumulator

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

func deviationOperators() []Operator {
	return []Operator{
		{Name: "$stdDevPop", Since: "3.2", Doc: "The population standard deviation of numbers.", Group: one(newDeviation(0), fixed), Window: deviationWindow(0)},
		{Name: "$stdDevSamp", Since: "3.2", Doc: "The sample standard deviation of numbers.", Group: one(newDeviation(1), fixed), Window: deviationWindow(1)},
	}
}

// deviation is Welford's running variance; bias is what the count is lessened by.
type deviation struct {
	bias     int64
	count    int64
	mean, m2 float64
}

func newDeviation(bias int64) maker {
	return func(bson.Value) (Fold, error) { return &deviation{bias: bias}, nil }
}

func (d *deviation) Add(args []bson.Value) error {
	if !args[0].IsNumber() {
		return nil
	}
	x := args[0].AsDouble()
	d.count++
	if delta := x - d.mean; delta != 0 {
		d.mean += delta / float64(d.count)
		d.m2 += delta * (x - d.mean)
	}
	return nil
}

func (d *deviation) Value() (bson.Value, error) {
	n := d.count - d.bias
	if n <= 0 {
		return bson.Null, nil
	}
	return bson.Double(math.Sqrt(d.m2 / float64(n))), nil
}

func (d *deviation) Partial() bson.Value {
	return bson.ArrayOf(bson.Int64(d.count), bson.Double(d.mean), bson.Double(d.m2))
}

// Merge joins two halves by the formula of Chan, Golub and LeVeque.
func (d *deviation) Merge(partial bson.Value) error {
	v := partial.Doc().Values(make([]bson.Value, 0, 3))
	count, mean, m2 := v[0].Int64(), v[1].Double(), v[2].Double()
	if count == 0 {
		return nil
	}
	delta := mean - d.mean
	n := float64(d.count + count)
	if delta != 0 {
		d.mean = (float64(d.count)*d.mean + float64(count)*mean) / n
		d.m2 += delta * delta * float64(d.count) * float64(count) / n
	}
	d.m2 += m2
	d.count += count
	return nil
}

func (d *deviation) Size() int { return 48 }

// deviationWindow is foldWindow, but that windows which leave documents behind answer as MongoDB's do: null as long as there
// is an infinity or NaN, and the int 0 for the population of one.
func deviationWindow(bias int64) parseWindow {
	return func(p *Parser, w *WindowSpec, arg bson.Value, in windowInput) error {
		err := foldWindow(p, w, arg, in)
		if err != nil || w.Bounds.Lower.Unbounded {
			return err
		}
		s := &Spec{Op: w.Op, Args: w.exprs, make: func(bson.Value) (Fold, error) {
			return &slidingDeviation{deviation: deviation{bias: bias}}, nil
		}}
		w.make = func() (Window, error) { return newSliding(s, bson.Missing) }
		return nil
	}
}

type slidingDeviation struct {
	deviation
	odd  int64   // infinities and NaN
	peak float64 // the largest m2 so far, whose rounding errors stay
}

// maxCancelled is how much of the largest m2 has to be left for what is left to have digits that mean something.
const maxCancelled = 1e-3

func (d *slidingDeviation) Add(args []bson.Value) error {
	if args[0].IsNumber() && !isFinite(args[0]) {
		d.odd++
		return nil
	}
	err := d.deviation.Add(args)
	d.peak = max(d.peak, d.m2)
	return err
}

// Remove is Welford's step backwards, unless too little would be left.
func (d *slidingDeviation) Remove(args []bson.Value) bool {
	switch {
	case !args[0].IsNumber():
		return true
	case !isFinite(args[0]):
		d.odd--
		return true
	}
	x := args[0].AsDouble()
	if d.count--; d.count == 0 {
		d.mean, d.m2, d.peak = 0, 0, 0
		return true
	}
	before := d.mean
	d.mean -= (x - before) / float64(d.count)
	d.m2 -= (x - before) * (x - d.mean)
	return d.m2 >= d.peak*maxCancelled && !math.IsInf(d.mean, 0)
}

func (d *slidingDeviation) Value() (bson.Value, error) {
	switch {
	case d.odd > 0:
		return bson.Null, nil
	case d.count == 1 && d.bias == 0:
		return bson.Int32(0), nil
	}
	return d.deviation.Value()
}
