package planner

import (
	"math"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Interval is a span of values in MongoDB's comparison order.
type Interval struct {
	Low, High                   bson.Value
	LowInclusive, HighInclusive bool
}

// Point is the interval of v alone.
func Point(v bson.Value) Interval { return Interval{v, v, true, true} }

// Full is the interval of all values.
var full = Interval{bson.MinKey, bson.MaxKey, true, true}

// compare is the order of an index's values: bson.Compare, with the index's collation.
type compare func(a, b bson.Value) int

// IsPoint says whether i holds exactly one value.
func (i Interval) IsPoint() bool {
	return i.LowInclusive && i.HighInclusive && bson.Identical(i.Low, i.High)
}

func (i Interval) empty(order compare) bool {
	c := order(i.Low, i.High)
	return c > 0 || c == 0 && !(i.LowInclusive && i.HighInclusive)
}

// String is i as explain shows it: "[1, 2)".
func (i Interval) String() string {
	var b strings.Builder
	b.WriteByte("(["[boolIndex(i.LowInclusive)])
	b.WriteString(boundText(i.Low))
	b.WriteString(", ")
	b.WriteString(boundText(i.High))
	b.WriteByte(")]"[boolIndex(i.HighInclusive)])
	return b.String()
}

// boundText is v in bounds. MongoDB makes doubles look like such by ".0", infinities too.
func boundText(v bson.Value) string {
	if v.Type != bson.TypeDouble {
		return v.String()
	}
	switch f := v.AsDouble(); {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	return v.String()
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Intervals is a set of values: intervals in ascending order that do not touch. None is no value at all.
type Intervals []Interval

// All is every value.
func All() Intervals { return Intervals{full} }

// IsAll says whether s bounds nothing.
func (s Intervals) IsAll() bool {
	return len(s) == 1 && s[0].Low.Type == bson.TypeMinKey && s[0].High.Type == bson.TypeMaxKey
}

// ArePoints says whether s is a list of single values.
func (s Intervals) ArePoints() bool {
	for _, i := range s {
		if !i.IsPoint() {
			return false
		}
	}
	return len(s) > 0
}

// union is what a or b holds.
func union(order compare, a, b Intervals) Intervals {
	var out Intervals
	for len(a) > 0 || len(b) > 0 {
		var next Interval
		if len(b) == 0 || len(a) > 0 && lowerStart(order, a[0], b[0]) {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if n := len(out); n > 0 && touches(order, out[n-1], next) {
			out[n-1] = hull(order, out[n-1], next)
		} else {
			out = append(out, next)
		}
	}
	return out
}

// normalize is a list of intervals in any order as a set.
func normalize(order compare, s Intervals) Intervals {
	slices.SortStableFunc(s, func(a, b Interval) int {
		switch {
		case lowerStart(order, a, b):
			return -1
		case lowerStart(order, b, a):
			return 1
		}
		return 0
	})
	out := Intervals{}
	for _, next := range s {
		if n := len(out); n > 0 && touches(order, out[n-1], next) {
			out[n-1] = hull(order, out[n-1], next)
		} else {
			out = append(out, next)
		}
	}
	return out
}

func lowerStart(order compare, a, b Interval) bool {
	c := order(a.Low, b.Low)
	return c < 0 || c == 0 && a.LowInclusive && !b.LowInclusive
}

// touches says whether b, which does not start before a, starts before a has ended or just where it ends.
func touches(order compare, a, b Interval) bool {
	c := order(b.Low, a.High)
	return c < 0 || c == 0 && (a.HighInclusive || b.LowInclusive)
}

func hull(order compare, a, b Interval) Interval {
	if c := order(a.High, b.High); c < 0 || c == 0 && b.HighInclusive {
		a.High, a.HighInclusive = b.High, b.HighInclusive
	}
	return a
}

// intersect is what both a and b hold.
func intersect(order compare, a, b Intervals) Intervals {
	var out Intervals
	for len(a) > 0 && len(b) > 0 {
		i := a[0]
		if lowerStart(order, i, b[0]) {
			i.Low, i.LowInclusive = b[0].Low, b[0].LowInclusive
		}
		c := order(a[0].High, b[0].High)
		aEndsFirst := c < 0 || c == 0 && !a[0].HighInclusive
		if !aEndsFirst {
			i.High, i.HighInclusive = b[0].High, b[0].HighInclusive
		}
		if !i.empty(order) {
			out = append(out, i)
		}
		if aEndsFirst {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}
