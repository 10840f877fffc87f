package command

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Int reads an optional number as MongoDB makes a long of one: doubles are cut towards zero, decimals rounded half to
// even, NaN is 0, and what is too large is clamped.
func (a *Args) Int(key string) (n int64, ok bool) {
	v, ok := a.typed(key, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble)
	if !ok {
		return 0, false
	}
	return index.WholeSeconds(v), true
}

// IntIn is Int within bounds; outside of them it is BadValue.
func (a *Args) IntIn(key string, low, high int64) (n int64, ok bool) {
	n, ok = a.Int(key)
	switch {
	case !ok:
	case n < low:
		a.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s' value must be >= %d, actual value '%d'", key, low, n).Unparsed())
	case n > high:
		a.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s' value must be <= %d, actual value '%d'", key, high, n).Unparsed())
	}
	return n, ok
}

// scale reads what sizes are divided by.
func (a *Args) scale() int64 {
	n, ok := a.IntIn("scale", 1, math.MaxInt64)
	if !ok {
		return 1
	}
	return n
}

// sub reads a nested document that has fields of its own; nil when absent.
func (a *Args) sub(key string) *Args {
	doc := a.Doc(key)
	if doc == nil {
		return nil
	}
	return NewArgs(a.path+"."+key, doc)
}
