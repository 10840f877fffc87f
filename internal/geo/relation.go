package geo

import (
	"math"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// CanContain says whether g has an inside.
func (g *Geometry) CanContain() bool {
	switch g.Kind {
	case Box, Circle, Ring, Cap:
		return true
	}
	return len(g.Polygons) > 0
}

// CanMeet says whether Intersects can be asked of g.
func (g *Geometry) CanMeet() bool { return g.CRS != Flat && g.Kind != Cap }

// Contains says whether all of o lies in g; borders count. Shapes that cannot be where g is never do.
func (g *Geometry) Contains(o *Geometry) bool {
	o, ok := o.onto(g.CRS)
	if !ok || o.CRS == StrictSphere {
		return false
	}
	if g.CRS == Flat {
		return o.Kind == PointKind && g.flatContains(o.At)
	}
	for _, p := range o.Points {
		if !g.containsPoint(p) {
			return false
		}
	}
	for _, l := range o.Lines {
		if !g.containsLine(l, o.reader) {
			return false
		}
	}
	for _, p := range o.Polygons {
		if !g.containsPolygon(p, o.reader) {
			return false
		}
	}
	return true
}

func (g *Geometry) flatContains(p Point) bool {
	switch g.Kind {
	case Box:
		return p.X >= g.Corners[0].X && p.X <= g.Corners[1].X && p.Y >= g.Corners[0].Y && p.Y <= g.Corners[1].Y
	case Circle:
		return circleContains(g.At, g.Radius, p)
	case Ring:
		return ringContains(g.Corners, p)
	}
	return false
}

// circleContains says whether p lies in a circle. A point straight above or beside the center is in when the circle's edge,
// added up, reaches it, as in MongoDB: [52, 0] lies within 0.0001 of [51.9999, 0], though their difference is a little more.
func circleContains(center Point, radius float64, p Point) bool {
	switch dx, dy := p.X-center.X, p.Y-center.Y; {
	case dx == 0:
		return max(p.Y, center.Y) <= min(p.Y, center.Y)+radius
	case dy == 0:
		return max(p.X, center.X) <= min(p.X, center.X)+radius
	default:
		return math.Sqrt(float64(dx*dx)+float64(dy*dy)) <= radius
	}
}

// ringContains counts the edges to the right of p. Points on the border are in or out by MongoDB's rule: corners and points
// on edges along the axes are inside; any other edge counts for points above its lower end up to its upper one.
func ringContains(ring []Point, p Point) bool {
	in := false
	a := ring[0]
	for i := 1; i <= len(ring); i++ {
		b := ring[i%len(ring)]
		if p == a || p == b || a.Y == b.Y && p.Y == a.Y && p.X >= min(a.X, b.X) && p.X <= max(a.X, b.X) {
			return true
		}
		if p.Y > min(a.Y, b.Y) && p.Y <= max(a.Y, b.Y) && p.X <= max(a.X, b.X) {
			switch {
			case a.X == p.X && b.X == p.X:
				return true
			case a.X == b.X || p.X <= (p.Y-a.Y)*(b.X-a.X)/(b.Y-a.Y)+a.X:
				in = !in
			}
		}
		a = b
	}
	return in
}

func polygonContainsPoint(polygon *s2.Polygon, p s2.Point) bool {
	return polygon.ContainsPoint(p) || polygon.IntersectsCell(s2.CellFromPoint(p))
}

func (g *Geometry) containsPoint(p s2.Point) bool {
	if g.Kind == Cap {
		return g.cap.ContainsPoint(p) || g.cap.IntersectsCell(s2.CellFromPoint(p))
	}
	for _, polygon := range g.Polygons {
		if polygonContainsPoint(polygon, p) {
			return true
		}
	}
	return false
}

func (g *Geometry) containsLine(l *s2.Polyline, r Reader) bool {
	if g.Kind == Cap {
		return g.capContainsEdges(l)
	}
	for _, polygon := range g.Polygons {
		if polygonContainsLine(polygon, l, r) {
			return true
		}
	}
	return false
}

// farthest is the point opposite of a cap's center.
func (g *Geometry) farthest() s2.Point { return s2.Point{Vector: g.cap.Center().Mul(-1)} }

// capContainsEdges says whether all of the edges lie in the cap: none comes nearer to the point opposite of the center than
// the cap's edge. Ends alone do not tell; a cap larger than half of the sphere may contain both and not what is between.
func (g *Geometry) capContainsEdges(shape s2.Shape) bool {
	opposite, free := g.farthest(), s1.Angle(math.Pi)-g.cap.Radius()
	for i := range shape.NumEdges() {
		if e := shape.Edge(i); s2.DistanceFromSegment(opposite, e.V0, e.V1) < free {
			return false
		}
	}
	return true
}

// polygonContainsLine: all corners are inside, and no edge leaves.
func polygonContainsLine(polygon *s2.Polygon, l *s2.Polyline, r Reader) bool {
	if slices.ContainsFunc(*l, func(p s2.Point) bool { return !polygonContainsPoint(polygon, p) }) {
		return false
	}
	within := newBorder(polygon)
	for i := range l.NumEdges() {
		if r.over(i) || !within.containsEdge(l.Edge(i)) {
			return false
		}
	}
	return true
}

func (g *Geometry) containsPolygon(o *s2.Polygon, r Reader) bool {
	if g.Kind == Cap {
		return g.capContainsEdges(o) && (g.cap.IsFull() || !o.ContainsPoint(g.farthest()))
	}
	for _, polygon := range g.Polygons {
		if polygonContains(polygon, o, r) {
			return true
		}
	}
	return false
}

// Intersects says whether g and o have a point in common; both are on the sphere.
func (g *Geometry) Intersects(o *Geometry) bool {
	o, ok := o.onto(g.CRS)
	if !ok || o.CRS == StrictSphere {
		return false
	}
	for _, p := range o.Points {
		if g.meetsPoint(p) {
			return true
		}
	}
	for _, l := range o.Lines {
		if g.meetsLine(l, o.reader) {
			return true
		}
	}
	for _, p := range o.Polygons {
		if g.meetsPolygon(p, o.reader) {
			return true
		}
	}
	return false
}

func (g *Geometry) meetsPoint(p s2.Point) bool {
	cell := s2.CellFromPoint(p)
	for _, q := range g.Points {
		if cell.ContainsPoint(q) {
			return true
		}
	}
	for _, l := range g.Lines {
		if pointOnLine(p, l) {
			return true
		}
	}
	return len(g.Polygons) > 0 && g.containsPoint(p)
}

// onLine is how near a point lies to a line that it is on: about the size of s2's smallest cells.
const onLine = s1.Angle(1e-9)

func pointOnLine(p s2.Point, l *s2.Polyline) bool {
	for i := range l.NumEdges() {
		if e := l.Edge(i); s2.DistanceFromSegment(p, e.V0, e.V1) <= onLine {
			return true
		}
	}
	return false
}

func (g *Geometry) meetsLine(l *s2.Polyline, r Reader) bool {
	for _, p := range g.Points {
		if pointOnLine(p, l) {
			return true
		}
	}
	for _, own := range g.Lines {
		if linesMeet(own, l, r) {
			return true
		}
	}
	for _, polygon := range g.Polygons {
		if polygonMeetsLine(polygon, l, r) {
			return true
		}
	}
	return false
}

// linesMeet also finds lines that touch in the middle of an edge, which s2 does not call crossing.
func linesMeet(a, b *s2.Polyline, r Reader) bool {
	if a.Intersects(b) {
		return true
	}
	for i, p := range *a {
		if r.over(i) || pointOnLine(p, b) {
			return true
		}
	}
	for i, p := range *b {
		if r.over(i) || pointOnLine(p, a) {
			return true
		}
	}
	return false
}

func polygonMeetsLine(polygon *s2.Polygon, l *s2.Polyline, r Reader) bool {
	for _, p := range *l {
		if polygonContainsPoint(polygon, p) {
			return true
		}
	}
	return lineCrosses(l, polygon, r)
}

func (g *Geometry) meetsPolygon(o *s2.Polygon, r Reader) bool {
	for _, p := range g.Points {
		if polygonContainsPoint(o, p) {
			return true
		}
	}
	for _, l := range g.Lines {
		if polygonMeetsLine(o, l, r) {
			return true
		}
	}
	for _, polygon := range g.Polygons {
		if polygonsMeet(polygon, o, r) {
			return true
		}
	}
	return false
}

// FlatDistance is how far a legacy or GeoJSON point lies from p on the plane; other shapes are not there.
func FlatDistance(p Point, o *Geometry) (float64, bool) {
	o, ok := o.onto(Flat)
	if !ok || o.Kind != PointKind {
		return 0, false
	}
	dx, dy := p.X-o.At.X, p.Y-o.At.Y
	switch {
	case dx == 0:
		return math.Abs(dy), true
	case dy == 0:
		return math.Abs(dx), true
	}
	return math.Sqrt(float64(dx*dx) + float64(dy*dy)), true
}

// SphereDistance is how far the nearest part of o lies from p, in radians.
func SphereDistance(p Point, o *Geometry) (float64, bool) {
	o, ok := o.onto(Sphere)
	if !ok {
		return 0, false
	}
	from, best := p.spherical(), s1.InfAngle()
	for _, q := range o.Points {
		best = min(best, angle(from, q))
	}
	for _, l := range o.Lines {
		for i := range l.NumEdges() {
			best = min(best, s2.DistanceFromSegment(from, l.Edge(i).V0, l.Edge(i).V1))
		}
	}
	for _, polygon := range o.Polygons {
		if polygon.ContainsPoint(from) {
			return 0, true
		}
		for i := range polygon.NumEdges() {
			best = min(best, s2.DistanceFromSegment(from, polygon.Edge(i).V0, polygon.Edge(i).V1))
		}
	}
	return best.Radians(), best != s1.InfAngle()
}

// What is missing from the double π and its half.
const (
	restOfPi     = 1.2246467991473532e-16
	restOfHalfPi = 6.123233995736766e-17
)

// angle is the angle between two points, which s2 does not give to the last bit where it is about a right angle or more.
func angle(a, b s2.Point) s1.Angle {
	y, x := a.Cross(b.Vector).Norm(), a.Dot(b.Vector)
	switch {
	case y > math.Abs(x):
		return s1.Angle(math.Pi/2 - (math.Atan(x/y) - restOfHalfPi))
	case x < 0:
		return s1.Angle(math.Pi - (math.Atan(y/-x) - restOfPi))
	}
	return s1.Angle(math.Atan2(y, x))
}
