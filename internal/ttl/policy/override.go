package policy

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
)

// OverrideField is the root-level field in which a document names its own life in seconds.
const OverrideField = "ttl"

// Overriding is what a document's ttl means to a TTL index on _ts.
type Overriding uint8

const (
	// Absent: no such field; the default applies.
	Absent Overriding = iota
	// Ignored: no valid ttl; stored, and the default applies.
	Ignored
	// Forever: -1, never expires.
	Forever
	// Valid: a positive whole number that fits an int32.
	Valid
)

// Override reads a document's ttl; seconds is set when it is Valid.
func Override(doc bson.Doc) (o Overriding, seconds int32) {
	v := doc.Lookup(OverrideField)
	var n int64
	switch v.Type {
	case bson.TypeMissing:
		return Absent, 0
	case bson.TypeInt32:
		n = int64(v.Int32())
	case bson.TypeInt64:
		n = v.Int64()
	case bson.TypeDouble:
		f := v.Double()
		if f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 { // NaN is not equal to its own truncation
			return Ignored, 0
		}
		n = int64(f)
	default:
		return Ignored, 0
	}
	switch {
	case n == -1:
		return Forever, 0
	case n < 1 || n > math.MaxInt32:
		return Ignored, 0
	}
	return Valid, int32(n)
}
