package index

import (
	"math"

	"github.com/cockroachdb/apd/v3"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TSField is the system field whose TTL index counts from a document's last modification.
const TSField = "_ts"

// InactiveTTL is what a broken expireAfterSeconds that is met in a catalogue reads as.
const InactiveTTL = math.MaxInt32

// checkTTL applies the rules for expireAfterSeconds: its value first, then the number of fields, then their kind.
func (d *Definition) checkTTL(v bson.Value) error {
	if v.IsMissing() {
		return nil
	}
	onTS := len(d.Fields) == 1 && d.Fields[0].Path == TSField && d.Fields[0].Kind == Ordered || d.Kind == Deadline
	n, err := ExpireAfterSeconds(v, onTS)
	if err != nil {
		return err
	}
	if len(d.Fields) > 1 && !d.isOneText() {
		return mongoerr.New(mongoerr.CannotCreateIndex,
			"TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s", d.Spec)
	}
	d.TTL, d.ExpireAfterSeconds = true, n
	return nil
}

// checkOnTS refuses what makes no sense of an index that holds when documents were modified last, which is every document and a time that two may have.
func (d *Definition) checkOnTS() error {
	if d.Kind != Deadline {
		return nil
	}
	for _, o := range []struct {
		name string
		is   bool
	}{{"partialFilterExpression", d.PartialFilter != nil}, {"unique", d.Unique}, {"prepareUnique", d.PrepareUnique}} {
		if o.is {
			return mongoerr.New(mongoerr.CannotCreateIndex, "TTL index on '%s' holds all documents by their last modification and does not support '%s'. Index spec: %s", TSField, o.name, d.Spec)
		}
	}
	return nil
}

// setTTL takes the value from a catalogue, where one that makes no sense counts as inactive.
func (d *Definition) setTTL(v bson.Value) {
	onTS := len(d.Fields) == 1 && d.Fields[0].Path == TSField && d.Fields[0].Kind == Ordered
	n, err := ExpireAfterSeconds(v, onTS)
	if err != nil {
		n, d.TTLRepaired = InactiveTTL, true
		d.Spec = repaired(d.Spec)
	}
	d.TTL, d.ExpireAfterSeconds = true, n
	if onTS {
		d.Kind = Deadline
	}
}

// repaired is a specification with a TTL that is inactive in the place of one that makes no sense.
func repaired(spec bson.Doc) bson.Doc {
	b := bson.BuildOn(make([]byte, 0, len(spec)))
	for it := spec.Iter(); it.Next(); {
		if it.Key() == "expireAfterSeconds" {
			b.Int32(it.Key(), InactiveTTL)
		} else {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// ExpireAfterSeconds is createIndexes' reading of a TTL: a number that fits 32 bits and is not negative; on _ts -1 is
// allowed (no default) and 0 is not.
func ExpireAfterSeconds(v bson.Value, onTS bool) (int32, error) {
	refuse := func(why string) error {
		return mongoerr.New(mongoerr.CannotCreateIndex, "TTL index 'expireAfterSeconds' option %s. Index spec value: %s", why, v)
	}
	if !v.IsNumber() {
		return 0, mongoerr.New(mongoerr.CannotCreateIndex,
			"TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'", v.Type)
	}
	if v.IsNaN() {
		return 0, refuse("must not be NaN")
	}
	n := WholeSeconds(v)
	switch {
	case n > math.MaxInt32 || n < math.MinInt32:
		return 0, refuse("must be within the range of a 32-bit integer")
	case onTS && n == -1:
		return -1, nil
	case n < 0:
		return 0, refuse("cannot be less than 0")
	case onTS && n == 0:
		return 0, refuse("on '_ts' must be positive, or -1 for no default")
	}
	return int32(n), nil
}

// WholeSeconds is a number as MongoDB cuts a TTL to an integer: doubles towards zero, decimals half to even. It is
// clamped to the range of a long.
func WholeSeconds(v bson.Value) int64 {
	if v.Type != bson.TypeDecimal {
		return v.TruncInt64()
	}
	d := v.Decimal()
	if d.IsNaN() || d.Inf() != 0 || math.Abs(d.Float64()) >= 1<<62 {
		return v.TruncInt64()
	}
	ctx := apd.BaseContext.WithPrecision(40)
	ctx.Rounding = apd.RoundHalfEven
	var r apd.Decimal
	if _, err := ctx.RoundToIntegralValue(&r, d.APD()); err != nil {
		return v.TruncInt64()
	}
	n, err := r.Int64()
	if err != nil {
		return v.TruncInt64()
	}
	return n
}
