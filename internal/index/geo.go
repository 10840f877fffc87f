package index

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Versions of indexes on the sphere, and bits of precision of flat ones.
const (
	minSphereVersion     = 1
	defaultSphereVersion = 3
	maxGeoBits           = geo.MaxGridBits
	defaultGeoBits       = 26
)

// sphere is how a 2dsphere index covers shapes.
type sphere struct {
	version int
	levels  geo.Levels
}

// Levels of the cells that cover shapes, by version.
var (
	oldLevels = geo.Levels{Coarsest: 7, Finest: 14, MaxCells: 50}
	newLevels = geo.Levels{Coarsest: 2, Finest: 16, MaxCells: 20}
)

// parseGeo reads what shapes the keys of a geospatial index.
func (d *Definition) parseGeo(spec bson.Doc) {
	switch d.Kind {
	case Geo2D:
		d.grid = geo.Grid{Bits: whole(spec, "bits", defaultGeoBits), Min: double(spec, "min", -180), Max: double(spec, "max", 180)}
	case Geo2DSphere:
		d.sphere.version = whole(spec, "2dsphereIndexVersion", defaultSphereVersion)
		d.sphere.levels = newLevels
		if d.sphere.version < 3 {
			d.sphere.levels = oldLevels
		}
		l := &d.sphere.levels
		l.Coarsest, l.Finest = whole(spec, "coarsestIndexedLevel", l.Coarsest), whole(spec, "finestIndexedLevel", l.Finest)
	}
}

func whole(spec bson.Doc, name string, def int) int {
	if v := spec.Lookup(name); v.IsNumber() {
		return int(min(max(v.TruncInt64(), math.MinInt32), math.MaxInt32))
	}
	return def
}

func double(spec bson.Doc, name string, def float64) float64 {
	if v := spec.Lookup(name); v.IsNumber() {
		return v.AsDouble()
	}
	return def
}

// Listed is the index as listIndexes shows it: Spec, with the ends of a 2d index's grid as doubles.
func (d *Definition) Listed() bson.Doc {
	if d.Kind != Geo2D {
		return d.Spec
	}
	b := bson.Build()
	for it := d.Spec.Iter(); it.Next(); {
		v := it.Value()
		if k := it.Key(); k == "min" || k == "max" {
			v = bson.Double(v.AsDouble())
		}
		b.Value(it.Key(), v)
	}
	return b.Doc()
}

// Grid is how a 2d index parts the plane.
func (d *Definition) Grid() geo.Grid { return d.grid }

// CoversShapes says whether keys are made of shapes on the sphere, of which one may take long.
func (d *Definition) CoversShapes() bool { return d.sphere.version > 0 }

// CoarsestCells is the level of the largest cells that shapes in a 2dsphere index are covered with.
func (d *Definition) CoarsestCells() int { return d.sphere.levels.Coarsest }

// checkSphere applies the rules of 2dsphere indexes.
func (d *Definition) checkSphere(spec bson.Doc) error {
	v := spec.Lookup("2dsphereIndexVersion")
	if n, exact := v.AsInt64(); !v.IsMissing() && (v.Type == bson.TypeDecimal || !exact || n < minSphereVersion || n > defaultSphereVersion) {
		return mongoerr.New(mongoerr.CannotCreateIndex, "unsupported geo index version { 2dsphereIndexVersion : %s }, only support versions: [1,2,3]", v)
	}
	for _, f := range d.Fields {
		if f.Kind != Ordered && f.Kind != Geo2DSphere {
			return mongoerr.New(16823, "Cannot use 2dsphere index with other special index types: %s: \"%s\"", f.Path, f.Kind)
		}
	}
	switch l := d.sphere.levels; {
	case l.Coarsest < 0:
		return mongoerr.New(16747, "coarsestIndexedLevel must be >= 0")
	case l.Finest > geo.MaxLevel:
		return mongoerr.New(16748, "finestIndexedLevel must be <= 30")
	case l.Finest < l.Coarsest:
		return mongoerr.New(16749, "finestIndexedLevel must be >= coarsestIndexedLevel")
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
	size := d.grid.Max - d.grid.Min
	if !(d.grid.Min < d.grid.Max) || math.IsInf(size, 0) {
		return mongoerr.New(mongoerr.InvalidOptions, "region for hash must be valid and have positive area, but [%v, %v] was specified", d.grid.Min, d.grid.Max)
	}
	if scaling := (1 << 32) / size; math.IsInf(scaling, 0) || scaling == 0 {
		return mongoerr.New(mongoerr.InvalidOptions, "range [%v, %v] is too small.", d.grid.Min, d.grid.Max)
	}
	return nil
}
