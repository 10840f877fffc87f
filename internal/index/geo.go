package index

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Versions of indexes on the sphere, and bits of precision of flat ones.
const (
	minSphereVersion     = 1
	defaultSphereVersion = 3
	maxGeoBits           = 32
)

// checkSphere applies the rules of 2dsphere indexes.
func checkSphere(spec bson.Doc) error {
	v := spec.Lookup("2dsphereIndexVersion")
	if v.IsMissing() {
		return nil
	}
	if n, exact := v.AsInt64(); v.Type == bson.TypeDecimal || !exact || n < minSphereVersion || n > defaultSphereVersion {
		return mongoerr.New(mongoerr.CannotCreateIndex, "unsupported geo index version { 2dsphereIndexVersion : %s }, only support versions: [1,2,3]", v)
	}
	return nil
}

// checkFlat applies the rules of 2d indexes.
func (d *Definition) checkFlat(spec bson.Doc) error {
	if d.Fields[0].Kind != Geo2D {
		return mongoerr.New(mongoerr.CannotCreateIndex, "2d has to be first in index")
	}
	if d.count(Geo2D) > 1 {
		return mongoerr.New(16800, "can't have 2 geo fields")
	}
	if v := spec.Lookup("bits"); !v.IsMissing() {
		if n := v.TruncInt64(); v.Type == bson.TypeDecimal || n < 1 || n > maxGeoBits {
			return mongoerr.New(mongoerr.InvalidOptions, "bits in geo index must be between 1 and %d", maxGeoBits)
		}
	}
	low, high := -180.0, 180.0
	if v := spec.Lookup("min"); v.IsNumber() {
		low = v.AsDouble()
	}
	if v := spec.Lookup("max"); v.IsNumber() {
		high = v.AsDouble()
	}
	if !(low < high) {
		return mongoerr.New(mongoerr.InvalidOptions, "region for hash must be valid and have positive area")
	}
	return nil
}
