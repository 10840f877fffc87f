package fulltext

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
	"github.com/ebbdb/ebb/internal/geo"
)

// within is geoWithin: points in a box, a circle or polygons; and geoShape: shapes that lie so to another.
type within struct {
	name  string
	paths []string
	holds func(g *geo.Geometry) bool
}

func parseGeoWithin(p *parser, a *spec.Reader) operator {
	w := &within{name: "geoWithin", paths: readFieldPaths(a, "path")}
	shape := a.OneOf("circle", "box", "geometry")
	for _, name := range []string{"circle", "box", "geometry"} {
		sub := a.Inner(name)
		if sub == nil || name != shape {
			continue
		}
		switch name {
		case "circle":
			w.holds = readCircle(sub)
		case "box":
			w.holds = readBox(sub)
		default:
			g := readGeometry(sub)
			if g == nil {
				break
			}
			if g.Kind != geo.Polygon && g.Kind != geo.MultiPolygon {
				sub.Refuse("Geometry must be a Polygon")
			}
			w.holds = func(o *geo.Geometry) bool { return o.Kind == geo.PointKind && g.Contains(o) }
		}
	}
	return w
}

func readCircle(a *spec.Reader) func(*geo.Geometry) bool {
	center := readPoint(a.RequiredInner("center"))
	radius := a.RequiredNumber("radius")
	if radius < 0 {
		a.RefuseField("radius", "cannot be negative")
	}
	a.Done()
	return func(o *geo.Geometry) bool {
		if o.Kind != geo.PointKind {
			return false
		}
		angle, ok := geo.SphereDistance(*center, o)
		return ok && angle*geo.EarthRadiusMeters <= radius
	}
}

func readBox(a *spec.Reader) func(*geo.Geometry) bool {
	low, high := readPoint(a.RequiredInner("bottomLeft")), readPoint(a.RequiredInner("topRight"))
	switch {
	case a.Err() != nil:
	case low.X >= high.X:
		a.Refuse("bottomLeft.longitude must be smaller than topRight.longitude")
	case low.Y >= high.Y:
		a.Refuse("bottomLeft.latitude must be smaller than topRight.latitude")
	}
	a.Done()
	return func(o *geo.Geometry) bool {
		return o.Kind == geo.PointKind && o.At.X >= low.X && o.At.X <= high.X && o.At.Y >= low.Y && o.At.Y <= high.Y
	}
}

func parseGeoShape(p *parser, a *spec.Reader) operator {
	w := &within{name: "geoShape", paths: readFieldPaths(a, "path")}
	relation := a.Enum("relation", "", "contains", "disjoint", "intersects", "within")
	sub := a.RequiredInner("geometry")
	g := readGeometry(sub)
	if g == nil {
		return w
	}
	if relation == "within" {
		switch {
		case len(g.Points) > 0:
			a.Refuse("cannot use relation 'within' with points")
		case len(g.Lines) > 0:
			a.Refuse("cannot use relation 'within' with lines")
		}
	}
	w.holds = func(o *geo.Geometry) bool {
		switch relation {
		case "contains":
			return o.Contains(g)
		case "disjoint":
			return !g.Intersects(o)
		case "intersects":
			return g.Intersects(o)
		}
		return g.Contains(o)
	}
	return w
}

func (w *within) resolve(r *resolver) (node, error) {
	s := r.scope
	var nodes []node
	for _, p := range w.paths {
		f := s.field(p)
		switch {
		case w.name == "geoShape" && (f == nil || f.Geo == nil || !f.Geo.Shapes):
			return nil, spec.Wrong("geoShape requires path '%s' to be indexed as 'geo' with indexShapes=true", p)
		case f == nil || f.Geo == nil:
			return nil, spec.Wrong("geoWithin requires path '%s' to be indexed as 'geo'", p)
		}
		at := s.values(p)
		nodes = append(nodes, &constant{slot: r.slot(), name: w.name + ":" + p, holds: func() bool {
			return shapesHold(at.Eval(s.view.doc), w.holds)
		}})
	}
	return r.either(nodes), nil
}

// shapesHold says whether a shape, or one of an array of them, passes.
func shapesHold(v bson.Value, holds func(*geo.Geometry) bool) bool {
	if v.Type == bson.TypeArray {
		for it := v.Doc().Iter(); it.Next(); {
			if e := it.Value(); e.Type == bson.TypeObject && shapesHold(e, holds) {
				return true
			}
		}
		return false
	}
	g, ok := shapeOf(v)
	return ok && holds(g)
}
