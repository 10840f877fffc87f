package planner

import (
	"cmp"
	"slices"

	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// maxGridCells is about how many cells of a 2d index's grid cover a shape.
const maxGridCells = 16

// isGeo says whether x is an index of places: it has keys for documents with any, and a place's key is a cell.
func (x Index) isGeo() bool { return x.Kind == index.Geo2D || x.Kind == index.Geo2DSphere }

// findsPlaces says whether every document that the filter wants has keys in x, since it demands something of a place.
func findsPlaces(x Index, demands []predicate) bool {
	for i, f := range x.Fields {
		if f.Kind != x.Kind {
			continue
		}
		for _, d := range demands {
			if d.path == f.Path && x.covers(i, d.node) {
				return true
			}
		}
	}
	return false
}

// placesIn is the shape that n holds places to, nil when it does not.
func placesIn(n match.Node) *geo.Geometry {
	switch n := n.(type) {
	case *match.GeoWithin:
		return n.Shape
	case *match.GeoIntersects:
		return n.Shape
	}
	return nil
}

// covers says whether n holds the i-th field to a shape that x can cover.
func (x Index) covers(i int, n match.Node) bool {
	shape := placesIn(n)
	if shape == nil {
		return false
	}
	switch x.Fields[i].Kind {
	case index.Geo2DSphere:
		return shape.OnSphere()
	case index.Geo2D:
		return shape.OnGrid()
	}
	return false
}

// placeBounds bounds the i-th field of an index of places, which is one itself or stands behind a point of the plane. A
// document may have several places, which meet the demands each on its own, so that one demand bounds.
func (x Index) placeBounds(i int, demands []predicate) (Intervals, match.Node) {
	for _, d := range demands {
		if d.path == x.Fields[i].Path && x.covers(i, d.node) {
			if x.Fields[i].Kind == index.Geo2D {
				return gridIntervals(x.Grid().Cover(placesIn(d.node).GridOverlap, maxGridCells)), d.scope
			}
			return x.cellIntervals(placesIn(d.node).QueryCells()), d.scope
		}
	}
	return All(), nil
}

// cellIntervals are the keys of the places that are in or around cells of the sphere: those of the cells within, and of the
// larger ones about them.
func (x Index) cellIntervals(cells []s2.CellID) Intervals {
	var all Intervals
	around := map[s2.CellID]bool{}
	for _, c := range cells {
		all = append(all, Interval{cellKey(c.RangeMin()), cellKey(c.RangeMax()), true, true})
		for level := c.Level() - 1; level >= x.CoarsestCells(); level-- {
			if p := c.Parent(level); !around[p] {
				around[p] = true
				all = append(all, Point(cellKey(p)))
			}
		}
	}
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.Low.Int64(), b.Low.Int64()) })
	return withoutOverlaps(all)
}

func cellKey(c s2.CellID) bson.Value { return bson.Int64(int64(c)) }

// withoutOverlaps drops the single cells that lie in a span before them. Spans of one covering lie apart.
func withoutOverlaps(all Intervals) Intervals {
	out := Intervals{}
	for _, i := range all {
		if n := len(out); n == 0 || i.Low.Int64() > out[n-1].High.Int64() {
			out = append(out, i)
		}
	}
	return out
}

func gridIntervals(cells []geo.GridCell) Intervals {
	out := Intervals{}
	for _, c := range cells {
		out = append(out, Interval{index.GridKey(c.Hash), index.GridKey(c.High()), true, true})
	}
	return out
}
