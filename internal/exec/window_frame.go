package exec

import (
	"github.com/ebbdb/ebb/internal/accumulator"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// framer gives the window of each document of a partition, asked in order.
type framer struct {
	bounds    accumulator.Bounds
	rows      *windowRows
	low, high int // of the last range, which only move forward
}

func newFramer(b accumulator.Bounds, rows *windowRows) framer { return framer{bounds: b, rows: rows} }

func (f *framer) frame(at int) (accumulator.Frame, error) {
	n := f.rows.Len()
	frame := accumulator.Frame{At: at, Low: 0, High: n}
	if f.bounds.IsWhole() {
		return frame, nil
	}
	if f.bounds.Kind == accumulator.DocumentBounds {
		if !f.bounds.Lower.Unbounded {
			frame.Low = max(0, clamp(at, f.bounds.Lower, n))
		}
		if !f.bounds.Upper.Unbounded {
			frame.High = clamp(at, f.bounds.Upper, n-1) + 1
		}
		return frame, nil
	}
	return f.ranged(frame)
}

// clamp is the position of a bound, between 0 and top; -1 for an end in front of the partition.
func clamp(at int, b accumulator.Bound, top int) int {
	offset := int64(0)
	if !b.Current {
		offset, _ = b.Offset.AsInt64()
	}
	if offset > int64(top) {
		return top
	}
	return int(max(-1, min(int64(top), int64(at)+max(offset, -1<<40))))
}

func (f *framer) ranged(frame accumulator.Frame) (accumulator.Frame, error) {
	v, err := f.value(frame.At)
	if err != nil {
		return frame, err
	}
	v = v.Clone()
	if !f.bounds.Lower.Unbounded {
		low, err := f.shift(v, f.bounds.Lower)
		if err != nil {
			return frame, err
		}
		for ; f.low < f.rows.Len(); f.low++ {
			x, err := f.value(f.low)
			if err != nil {
				return frame, err
			}
			if bson.Compare(x, low) >= 0 {
				break
			}
		}
		frame.Low = f.low
	}
	if !f.bounds.Upper.Unbounded {
		high, err := f.shift(v, f.bounds.Upper)
		if err != nil {
			return frame, err
		}
		for ; f.high < f.rows.Len(); f.high++ {
			x, err := f.value(f.high)
			if err != nil {
				return frame, err
			}
			if bson.Compare(x, high) > 0 {
				break
			}
		}
		frame.High = f.high
	}
	return frame, nil
}

// value is the sort value of document i, which must be one that distances are known of.
func (f *framer) value(i int) (bson.Value, error) {
	v, err := f.rows.SortValue(i)
	switch {
	case err != nil:
		return v, err
	case f.bounds.TimeBounds && v.Type != bson.TypeDate:
		return v, mongoerr.New(5429513, "Invalid range: Expected the sortBy field to be a Date, but it was %s", v.Type)
	case !f.bounds.TimeBounds && v.Type == bson.TypeDate:
		return v, mongoerr.New(5429513, "For windows that involve date or time ranges, a unit must be provided.")
	case !f.bounds.TimeBounds && !v.IsNumber():
		return v, mongoerr.New(5429414, "Invalid range: Expected the sortBy field to be a number, but it was %s", v.Type)
	}
	return v, nil
}

// shift is v moved by a bound.
func (f *framer) shift(v bson.Value, b accumulator.Bound) (bson.Value, error) {
	if b.Current {
		return v, nil
	}
	if !f.bounds.TimeBounds {
		sum, _ := bson.Add(v, b.Offset)
		return sum, nil
	}
	n, _ := b.Offset.AsInt64()
	ms, ok := expr.AddDate(v.Millis(), f.bounds.Unit, n, nil)
	if !ok {
		return v, mongoerr.New(mongoerr.Overflow, "window bound is out of the range of dates")
	}
	return bson.Date(ms), nil
}
