package fulltext

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// near scores by how close a number, a date or a place is to another.
type near struct {
	paths  []string
	origin bson.Value
	place  *geo.Point // of the origin, where that is a place
	pivot  float64
}

func parseNear(p *parser, a *spec.Reader) operator {
	n := &near{paths: readFieldPaths(a, "path"), origin: a.Required("origin").Clone()}
	switch n.origin.Type {
	case bson.TypeMissing, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble, bson.TypeDate:
	case bson.TypeObject:
		n.place = readPoint(a.Inside(a.Path("origin"), n.origin))
	case bson.TypeString, bson.TypeBool, bson.TypeObjectID:
		a.RefuseField("origin", "Unsupported type: %s", strings.ToUpper(n.origin.Type.String()))
	default:
		a.RefuseField("origin", "Type is not supported: %s", strings.ToUpper(n.origin.Type.String()))
	}
	n.pivot = a.RequiredNumber("pivot")
	if n.pivot <= 0 {
		a.RefuseField("pivot", "must be positive")
	}
	return n
}

func (n *near) resolve(r *resolver) (node, error) {
	var nodes []node
	for _, p := range n.paths {
		f := r.scope.field(p)
		if n.place != nil {
			if f == nil || f.Geo == nil {
				return nil, spec.Wrong("near with a geo point origin requires path '%s' to be indexed as 'geo'", p)
			}
		} else if !indexes(f, kindOf(n.origin)) {
			continue
		}
		nodes = append(nodes, n.at(r, p, f))
	}
	return r.either(nodes), nil
}

func (n *near) at(r *resolver, path string, f *mapping.Field) node {
	s, at := r.scope, r.scope.values(path)
	return &measured{slot: r.slot(), name: "Distance score, computed as pivot / (pivot + abs(value - origin)) for " + path, measure: func() (best float64, ok bool) {
		look := func(v bson.Value) {
			if d, found := n.distance(f, v); found {
				score := n.pivot / (n.pivot + d)
				if math.IsNaN(score) {
					score = 0
				}
				best, ok = max(best, score), true
			}
		}
		if n.place != nil {
			at.Values(s.view.doc, fieldpath.Names, look)
		} else {
			look(at.Get(s.view.doc)) // numbers and dates in arrays have no distance
		}
		return best, ok
	}}
}

// distance is how far a value is from the origin.
func (n *near) distance(f *mapping.Field, v bson.Value) (float64, bool) {
	if n.place != nil {
		return placeDistance(*n.place, v)
	}
	v, ok := indexed(f, v)
	if !ok || kindOf(v) != kindOf(n.origin) {
		return 0, false
	}
	if v.Type == bson.TypeDate {
		return math.Abs(float64(v.Millis()) - float64(n.origin.Millis())), true
	}
	return math.Abs(v.AsDouble() - n.origin.AsDouble()), true
}

// placeDistance is how far a GeoJSON point is from another, in meters.
func placeDistance(from geo.Point, v bson.Value) (float64, bool) {
	g, ok := shapeOf(v)
	if !ok || g.Kind != geo.PointKind {
		return 0, false
	}
	angle, ok := geo.SphereDistance(from, g)
	return angle * geo.EarthRadiusMeters, ok
}

// shapeOf is a GeoJSON shape that a document holds. Others are not indexed.
func shapeOf(v bson.Value) (*geo.Geometry, bool) {
	if v.Type != bson.TypeObject {
		return nil, false
	}
	g, err := geo.ParseGeoJSON(v.Doc())
	return g, err == nil
}

// point reads a GeoJSON point.
func readPoint(a *spec.Reader) *geo.Point {
	g := readGeometry(a)
	if g == nil {
		return &geo.Point{}
	}
	if g.Kind != geo.PointKind {
		a.Refuse("must be a GeoJSON Point")
	}
	return &g.At
}

// geometry reads a GeoJSON shape, nil where it is none.
func readGeometry(a *spec.Reader) *geo.Geometry {
	if a.Err() != nil {
		return nil
	}
	parts := "coordinates"
	if v := a.Required("type"); v.Type == bson.TypeString && v.Str() == "GeometryCollection" {
		parts = "geometries"
	}
	a.Required(parts)
	if a.Err() != nil {
		return nil
	}
	g, err := geo.ParseGeoJSON(a.Doc())
	if err != nil {
		a.Refuse("%s", mongoerr.From(err).Message)
		return nil
	}
	a.Done()
	return g
}
