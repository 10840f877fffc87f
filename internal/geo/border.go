package geo

import (
	"cmp"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// s2 decides exactly on which side of an edge a point lies, even when it lies on it: then by a rule that knows nothing of
// shapes. So a polygon whose edge is a part of another's edge may or may not cross it. Here points that lie on an edge,
// within onLine, are on it, and edges that only touch do not cross.

// border is the border of a polygon, made to be asked often which of its edges come near an edge.
type border struct {
	polygon *s2.Polygon
	query   *s2.EdgeQuery
}

// nearby is how far edges are looked for that may touch. Distances between edges are exact to about this much.
const nearby = 1e-7

func newBorder(polygon *s2.Polygon) *border {
	index := s2.NewShapeIndex()
	index.Add(polygon)
	limit := s1.ChordAngleFromAngle(nearby)
	return &border{polygon, s2.NewClosestEdgeQuery(index, s2.NewClosestEdgeQueryOptions().DistanceLimit(limit).IncludeInteriors(false))}
}

// near gives the border's edges that come near e.
func (b *border) near(e s2.Edge) []s2.Edge {
	var edges []s2.Edge
	for _, found := range b.query.FindEdges(s2.NewMinDistanceToEdgeTarget(e)) {
		edges = append(edges, b.polygon.Edge(int(found.EdgeID())))
	}
	return edges
}

func onEdge(p s2.Point, e s2.Edge) bool { return s2.DistanceFromSegment(p, e.V0, e.V1) <= onLine }

// onInside says whether p lies on e, and not at one of its ends.
func onInside(p s2.Point, e s2.Edge) bool {
	return onEdge(p, e) && p.Distance(e.V0) > onLine && p.Distance(e.V1) > onLine
}

// cross says whether e and f cross, and do not only touch.
func cross(e, f s2.Edge) bool {
	return s2.CrossingSign(e.V0, e.V1, f.V0, f.V1) == s2.Cross &&
		!onEdge(e.V0, f) && !onEdge(e.V1, f) && !onEdge(f.V0, e) && !onEdge(f.V1, e)
}

// containsEdge says whether all of e is in the polygon or on its border. Between the border's corners that lie on it, an edge
// that does not cross the border is inside or outside as a whole.
func (b *border) containsEdge(e s2.Edge) bool {
	stops := []s2.Point{e.V0, e.V1}
	for _, f := range b.near(e) {
		if cross(e, f) {
			return false
		}
		for _, corner := range [2]s2.Point{f.V0, f.V1} {
			if onInside(corner, e) {
				stops = append(stops, corner)
			}
		}
	}
	slices.SortFunc(stops, func(p, q s2.Point) int { return cmp.Compare(p.Distance(e.V0), q.Distance(e.V0)) })
	for i, stop := range stops[1:] {
		if !polygonContainsPoint(b.polygon, s2.Interpolate(0.5, stops[i], stop)) {
			return false
		}
	}
	return true
}

// leftOf is a point just to the left of e's middle, where the inside of a polygon with that edge is.
func leftOf(e s2.Edge) s2.Point {
	const step = 10 * float64(onLine)
	left := e.V0.PointCross(e.V1).Normalize().Mul(step)
	return s2.Point{Vector: s2.Interpolate(0.5, e.V0, e.V1).Add(left).Normalize()}
}

// touches says whether a corner of the border lies on e, or an end of e on the border, and not a corner on a corner.
func (b *border) touches(e s2.Edge) bool {
	return slices.ContainsFunc(b.near(e), func(f s2.Edge) bool {
		return onInside(f.V0, e) || onInside(f.V1, e) || onInside(e.V0, f) || onInside(e.V1, f)
	})
}

// polygonContains says whether all of o is in polygon; borders count.
func polygonContains(polygon, o *s2.Polygon, r Reader) bool {
	if polygon.Contains(o) {
		return true
	}
	// What s2 denies may hold where borders touch, but only when nothing of o lies outside.
	for _, loop := range o.Loops() {
		if slices.ContainsFunc(loop.Vertices(), func(p s2.Point) bool { return !polygonContainsPoint(polygon, p) }) {
			return false
		}
	}
	within := newBorder(polygon)
	for i := range o.NumEdges() {
		e := o.Edge(i)
		if r.over(i) || !within.containsEdge(e) {
			return false
		}
		if p := leftOf(e); o.ContainsPoint(p) && !polygonContainsPoint(polygon, p) { // o fills a hole
			return false
		}
	}
	around := newBorder(o)
	for i := range polygon.NumEdges() { // a hole of polygon may lie in o
		e := polygon.Edge(i)
		if r.over(i) {
			return false
		}
		if o.ContainsPoint(e.V0) && !slices.ContainsFunc(around.near(s2.Edge{V0: e.V0, V1: e.V0}), func(f s2.Edge) bool { return onEdge(e.V0, f) }) {
			return false
		}
	}
	return true
}

// polygonsMeet says whether two polygons have a place in common. Polygons beside one another that share corners or whole edges
// have none, by s2's rule that each place on a border belongs to one of them, which MongoDB follows; with a part of an edge
// they meet.
func polygonsMeet(a, b *s2.Polygon, r Reader) bool {
	if a.Intersects(b) {
		return true
	}
	const margin = 2 * nearby
	if !a.CapBound().Expanded(margin).Intersects(b.CapBound()) {
		return false
	}
	if a.NumEdges() > b.NumEdges() {
		a, b = b, a
	}
	border := newBorder(b)
	for i := range a.NumEdges() {
		if r.over(i) || border.touches(a.Edge(i)) {
			return true
		}
	}
	return false
}
