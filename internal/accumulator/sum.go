package accumulator

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

func sumOperators() []Operator {
	return []Operator{
		{Name: "$sum", Since: "2.2", Doc: "The sum of numbers; others are ignored.", Group: one(newSum, fixed), Window: foldWindow},
		{Name: "$avg", Since: "2.2", Doc: "The average of numbers; others are ignored.", Group: one(newAvg, fixed), Window: foldWindow},
		{Name: "$count", Since: "5.0", Doc: "The number of documents.", Group: parseCount, Window: foldWindow},
	}
}

// total is a sum in MongoDB's manner: exact in integers, then with twice the precision of a double, decimals apart; its type
// is the widest that it holds.
//
// Integers are kept in an int64 as long as nothing else came and they fit, which is the same sum, only faster.
type total struct {
	counts  [4]int64 // of ints, longs, doubles, decimals
	inexact int64    // of infinities and NaN, which cannot be removed
	loose   bool     // doubles is in use, not ints
	ints    int64
	doubles doubleDouble
	decimal bson.Decimal128
	buf     [16]byte
}

const (
	intCount = iota
	longCount
	doubleCount
	decimalCount
)

func newTotal() total { return total{decimal: bson.DecimalFromInt64(0)} }

func (t *total) add(v bson.Value) {
	switch v.Type {
	case bson.TypeInt32:
		t.counts[intCount]++
		t.addInt(int64(v.Int32()))
	case bson.TypeInt64:
		t.counts[longCount]++
		t.addInt(v.Int64())
	case bson.TypeDouble:
		t.counts[doubleCount]++
		t.leaveInts()
		f := v.Double()
		t.doubles.add(f)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			t.inexact++
		}
	case bson.TypeDecimal:
		t.counts[decimalCount]++
		d := v.Decimal()
		t.decimal = addDecimals(t.decimal, d)
		if d.IsNaN() || d.Inf() != 0 {
			t.inexact++
		}
	}
}

// remove takes out a number that was added before, and says whether it could: what infinity or NaN has swallowed is lost.
func (t *total) remove(v bson.Value) bool {
	if t.inexact > 0 || math.IsInf(t.doubles.sum, 0) || math.IsNaN(t.doubles.sum) {
		return false
	}
	switch v.Type {
	case bson.TypeInt32:
		t.counts[intCount]--
		t.addInt(-int64(v.Int32()))
	case bson.TypeInt64:
		if v.Int64() == math.MinInt64 {
			return false
		}
		t.counts[longCount]--
		t.addInt(-v.Int64())
	case bson.TypeDouble:
		t.counts[doubleCount]--
		t.doubles.add(-v.Double())
	case bson.TypeDecimal:
		t.counts[decimalCount]--
		d := v.Decimal()
		d.High ^= 1 << 63
		t.decimal = addDecimals(t.decimal, d)
	}
	return true
}

func (t *total) addInt(n int64) {
	if !t.loose {
		if s := t.ints + n; (s > t.ints) == (n > 0) || n == 0 {
			t.ints = s
			return
		}
		t.leaveInts()
	}
	t.doubles.addInt(n)
}

func (t *total) leaveInts() {
	if !t.loose {
		t.loose = true
		t.doubles.addInt(t.ints)
		t.ints = 0
	}
}

// counted is how many numbers the total holds.
func (t *total) counted() int64 {
	return t.counts[intCount] + t.counts[longCount] + t.counts[doubleCount] + t.counts[decimalCount]
}

func (t *total) value() bson.Value {
	switch {
	case t.counts[decimalCount] > 0:
		return t.decimalValue(t.asDecimal())
	case t.counts[doubleCount] > 0:
		return t.double(t.asDouble())
	}
	n, fits := t.ints, true
	if t.loose {
		n, fits = t.doubles.int64()
	}
	switch {
	case !fits:
		return t.double(t.doubles.value())
	case t.counts[longCount] == 0 && n >= math.MinInt32 && n <= math.MaxInt32:
		binary.LittleEndian.PutUint32(t.buf[:], uint32(n))
		return bson.Value{Type: bson.TypeInt32, Data: t.buf[:4]}
	}
	binary.LittleEndian.PutUint64(t.buf[:], uint64(n))
	return bson.Value{Type: bson.TypeInt64, Data: t.buf[:8]}
}

func (t *total) asDouble() float64 {
	if !t.loose {
		return float64(t.ints)
	}
	return t.doubles.value()
}

func (t *total) asDecimal() bson.Decimal128 {
	if !t.loose {
		return addDecimals(t.decimal, bson.DecimalFromInt64(t.ints))
	}
	return addDecimals(t.decimal, t.doubles.decimal())
}

func (t *total) double(f float64) bson.Value {
	binary.LittleEndian.PutUint64(t.buf[:], math.Float64bits(f))
	return bson.Value{Type: bson.TypeDouble, Data: t.buf[:8]}
}

func (t *total) decimalValue(d bson.Decimal128) bson.Value {
	binary.LittleEndian.PutUint64(t.buf[:], d.Low)
	binary.LittleEndian.PutUint64(t.buf[8:], d.High)
	return bson.Value{Type: bson.TypeDecimal, Data: t.buf[:16]}
}

// partial is the total's fields, in the order of the struct.
func (t *total) partial() bson.Value {
	return bson.ArrayOf(bson.Int64(t.counts[intCount]), bson.Int64(t.counts[longCount]), bson.Int64(t.counts[doubleCount]),
		bson.Int64(t.counts[decimalCount]), bson.Int64(t.inexact), bson.Bool(t.loose), bson.Int64(t.ints),
		bson.Double(t.doubles.sum), bson.Double(t.doubles.addend), bson.Double(t.doubles.plain), bson.Decimal(t.decimal))
}

func (t *total) merge(partial bson.Value) {
	v := partial.Doc().Values(make([]bson.Value, 0, 11))
	for i := range t.counts {
		t.counts[i] += v[i].Int64()
	}
	t.inexact += v[4].Int64()
	if v[5].Bool() {
		t.leaveInts()
		t.doubles.merge(doubleDouble{v[7].Double(), v[8].Double(), v[9].Double()})
	} else {
		t.addInt(v[6].Int64())
	}
	if v[3].Int64() > 0 {
		t.decimal = addDecimals(t.decimal, v[10].Decimal())
	}
}

// average is the total divided by the numbers that were counted, null without any.
func (t *total) average() bson.Value {
	switch {
	case t.counted() == 0:
		return bson.Null
	case t.counts[decimalCount] > 0:
		return t.decimalValue(divideDecimal(t.asDecimal(), bson.DecimalFromInt64(t.counted())))
	}
	return t.double(t.asDouble() / float64(t.counted()))
}

const totalSize = 160

type sum struct{ total }

func newSum(bson.Value) (Fold, error) { return &sum{newTotal()}, nil }

func (s *sum) Add(args []bson.Value) error   { s.add(args[0]); return nil }
func (s *sum) Value() (bson.Value, error)    { return s.value(), nil }
func (s *sum) Partial() bson.Value           { return s.partial() }
func (s *sum) Merge(p bson.Value) error      { s.merge(p); return nil }
func (s *sum) Remove(args []bson.Value) bool { return s.remove(args[0]) }
func (s *sum) Size() int                     { return totalSize }

type avg struct{ total }

func newAvg(bson.Value) (Fold, error) { return &avg{newTotal()}, nil }

func (a *avg) Add(args []bson.Value) error   { a.add(args[0]); return nil }
func (a *avg) Value() (bson.Value, error)    { return a.average(), nil }
func (a *avg) Partial() bson.Value           { return a.partial() }
func (a *avg) Merge(p bson.Value) error      { a.merge(p); return nil }
func (a *avg) Remove(args []bson.Value) bool { return a.remove(args[0]) }
func (a *avg) Size() int                     { return totalSize }
