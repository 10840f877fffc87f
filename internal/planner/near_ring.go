package planner

import (
	"math"
	"slices"

	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
)

// Distances here are in the unit of the search: that of the plane, meters, or radians on the sphere.

// Reach is how far from the center the search looks at most: as far as asked, or as there can be anything.
func (g *GeoNear) Reach() float64 {
	if g.Near.Spherical {
		return min(g.Near.Max, g.unit(math.Pi))
	}
	at, grid := g.Near.Center, g.Index.Grid()
	return min(g.Near.Max, math.Hypot(max(at.X-grid.Min, grid.Max-at.X), max(at.Y-grid.Min, grid.Max-at.Y)))
}

// unit is an angle in the unit of the search.
func (g *GeoNear) unit(radians float64) float64 {
	if g.Near.Meters {
		return radians * geo.EarthRadiusMeters
	}
	return radians
}

func (g *GeoNear) radians(distance float64) float64 {
	if g.Near.Meters {
		return distance / geo.EarthRadiusMeters
	}
	return distance
}

// InRings says whether a ring is found by walking a part of the index: the fields before the place are single values.
// Otherwise any ring takes a walk of all that the other fields leave.
func (g *GeoNear) InRings() bool { return g.bound() == g.field }

// Ring is the walk that finds all places that lie from low to high, and some others; nil when there is nothing to walk.
func (g *GeoNear) Ring(low, high float64) *IndexScan {
	s := &IndexScan{Index: g.Index, Bounds: slices.Clone(g.Bounds)}
	s.Bounds[g.field] = g.ringBounds(low, high)
	s.narrow()
	if len(s.Ranges) == 0 {
		return nil
	}
	return s
}

func (g *GeoNear) ringBounds(low, high float64) Intervals {
	x, at := g.Index, g.Near.Center
	switch {
	case x.Kind == index.Geo2DSphere:
		return x.cellIntervals(geo.RingCells(at, g.radians(low), g.radians(high)))
	case g.Near.Spherical:
		return gridIntervals(x.Grid().Cover(geo.SphereRing(at, g.radians(low), g.radians(high)), maxGridCells))
	}
	return gridIntervals(x.Grid().Cover(geo.FlatRing(at, low, high), maxGridCells))
}

// Center is where the center would be in the index, and the keys that have the same values before the place.
func (g *GeoNear) Center() (at []byte, around Range) {
	bounds := slices.Clone(g.Bounds[:g.field+1])
	spans, _, _ := ranges(g.Index, bounds)
	around = spans[0]
	key := cellKey(s2.CellIDFromLatLng(s2.LatLngFromDegrees(g.Near.Center.Y, g.Near.Center.X)))
	if g.Index.Kind == index.Geo2D {
		key = index.GridKey(g.Index.Grid().Hash(g.Near.Center))
	}
	return g.Index.AppendKey(clip(around.Low), g.field, key), around
}

// place is the value of the place's field in a key.
func (g *GeoNear) place(key []byte) (bson.Value, bool) {
	for range g.field {
		n, err := keystring.Skip(key)
		if err != nil {
			return bson.Missing, false
		}
		key = key[n:]
	}
	vs, _, err := keystring.Decode(nil, key, nil, 1)
	if err != nil {
		return bson.Missing, false
	}
	return vs[0], true
}

// About is about how far from the center the place behind a key lies.
func (g *GeoNear) About(key []byte) float64 {
	v, ok := g.place(key)
	switch {
	case !ok:
		return 0
	case v.Type == bson.TypeBinary:
		p := g.Index.Grid().Square(geo.GridCell{Hash: index.GridHash(v), Level: g.Index.Grid().Bits}).Low
		if g.Near.Spherical {
			return g.unit(geo.SphereAngle(g.Near.Center, p))
		}
		return math.Hypot(p.X-g.Near.Center.X, p.Y-g.Near.Center.Y)
	}
	n, _ := v.AsInt64()
	return g.unit(geo.CellAngle(s2.CellID(n), g.Near.Center))
}

// Within tells of keys whether the place behind them can lie from low to high.
func (g *GeoNear) Within(low, high float64) func(key []byte) bool {
	if g.Index.Kind == index.Geo2D {
		return func([]byte) bool { return true }
	}
	in := geo.InRing(g.Near.Center, g.radians(low), g.radians(high))
	return func(key []byte) bool {
		v, ok := g.place(key)
		n, exact := v.AsInt64()
		return !ok || !exact || in(s2.CellID(n))
	}
}
