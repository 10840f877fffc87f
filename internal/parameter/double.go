package parameter

import (
	"math"
	"strconv"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Double is a number.
type Double struct{ bits atomic.Uint64 }

// Get is the value.
func (d *Double) Get() float64 { return math.Float64frombits(d.bits.Load()) }

// NewDouble adds a number between low and high and returns where it is kept.
func NewDouble(r *Registry, name string, when When, def, low, high float64) *Double {
	return newDouble(r, name, when, def, func(f float64) error {
		switch {
		case f < low:
			return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %g is not greater than or equal to %g", name, f, low)
		case f > high:
			return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %g is not less than or equal to %g", name, f, high)
		}
		return nil
	})
}

// NewDoubleAbove adds a number above low and returns where it is kept.
func NewDoubleAbove(r *Registry, name string, when When, def, low float64) *Double {
	return newDouble(r, name, when, def, func(f float64) error {
		if f <= low {
			return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %g is not greater than %g", name, f, low)
		}
		return nil
	})
}

func newDouble(r *Registry, name string, when When, def float64, check func(float64) error) *Double {
	d := &Double{}
	set := func(f float64) error {
		if err := check(f); err != nil {
			return err
		}
		d.bits.Store(math.Float64bits(f))
		return nil
	}
	d.bits.Store(math.Float64bits(def))
	r.Add(&Parameter{Name: name, When: when,
		Get: func() bson.Value { return bson.Double(d.Get()) },
		Set: func(v bson.Value) error {
			if !v.IsNumber() || v.IsNaN() {
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a number", name, v)
			}
			return set(v.AsDouble())
		},
		Parse: func(text string) error {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(f) {
				return mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is not a number", name, text)
			}
			return set(f)
		}})
	return d
}
