package geo

import (
	"math"

	"github.com/golang/geo/r1"
	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// OnGrid says whether g can be covered by the cells of a Grid: it is a shape of the plane, a point, or a circle on the sphere.
func (g *Geometry) OnGrid() bool { return g.CRS == Flat || g.Kind == Cap || g.Kind == PointKind }

// GridOverlap is how a rectangle and g lie, which is OnGrid.
func (g *Geometry) GridOverlap(r Rect) Overlap {
	switch g.Kind {
	case PointKind:
		return r.overlapBox(g.At, g.At)
	case Box:
		return r.overlapBox(g.Corners[0], g.Corners[1])
	case Circle:
		return FlatRing(g.At, 0, g.Radius)(r)
	case Cap:
		return SphereRing(g.At, 0, g.Radius)(r)
	}
	return r.overlapCorners(g.Corners)
}

func (r Rect) overlapBox(low, high Point) Overlap {
	switch {
	case r.High.X < low.X || r.Low.X > high.X || r.High.Y < low.Y || r.Low.Y > high.Y:
		return Apart
	case r.Low.X >= low.X && r.High.X <= high.X && r.Low.Y >= low.Y && r.High.Y <= high.Y:
		return Inside
	}
	return Partly
}

// overlapCorners is how r lies with a polygon's inside: edges that meet r, or else r's middle, tell.
func (r Rect) overlapCorners(corners []Point) Overlap {
	for i, a := range corners {
		if r.meetsEdge(a, corners[(i+1)%len(corners)]) {
			return Partly
		}
	}
	if ringContains(corners, Point{(r.Low.X + r.High.X) / 2, (r.Low.Y + r.High.Y) / 2}) {
		return Inside
	}
	return Apart
}

// meetsEdge clips the edge from a to b to r's stripes; what nearly meets does.
func (r Rect) meetsEdge(a, b Point) bool {
	blur := (r.High.X - r.Low.X + r.High.Y - r.Low.Y) * 0x1p-20
	from, to := 0.0, 1.0
	clip := func(a, b, low, high float64) bool {
		low, high = low-blur, high+blur
		d := b - a
		if d == 0 {
			return a >= low && a <= high
		}
		enter, leave := (low-a)/d, (high-a)/d
		from, to = max(from, min(enter, leave)), min(to, max(enter, leave))
		return true
	}
	return clip(a.X, b.X, r.Low.X, r.High.X) && clip(a.Y, b.Y, r.Low.Y, r.High.Y) && from <= to+0x1p-30
}

// FlatRing is the overlap with the points of the plane that lie from low to high from center.
func FlatRing(center Point, low, high float64) func(Rect) Overlap {
	return func(r Rect) Overlap {
		near := math.Hypot(outside(center.X, r.Low.X, r.High.X), outside(center.Y, r.Low.Y, r.High.Y))
		far := math.Hypot(max(center.X-r.Low.X, r.High.X-center.X), max(center.Y-r.Low.Y, r.High.Y-center.Y))
		// Points straight above or beside the center are in by sums of coordinates, which may be much larger than far.
		blur := far*0x1p-40 + (math.Abs(center.X)+math.Abs(center.Y)+high)*0x1p-48
		switch {
		case near-blur > high || far+blur < low:
			return Apart
		case near-blur >= low && far+blur <= high:
			return Inside
		}
		return Partly
	}
}

// outside is how far at lies outside of the interval from low to high.
func outside(at, low, high float64) float64 { return max(low-at, at-high, 0) }

// SphereRing is FlatRing for points of the plane that are longitudes and latitudes, and a distance on the sphere in radians.
func SphereRing(center Point, low, high float64) func(Rect) Overlap {
	at := s2.LatLngFromDegrees(center.Y, center.X)
	opposite := s2.LatLngFromPoint(s2.Point{Vector: center.spherical().Mul(-1)})
	return func(r Rect) Overlap {
		square, ok := r.onSphere()
		if !ok {
			return Apart
		}
		near := square.DistanceToLatLng(at).Radians() - ringBlur
		far := math.Pi - square.DistanceToLatLng(opposite).Radians() + ringBlur
		switch {
		case near > high || far < low:
			return Apart
		case near >= low && far <= high:
			return Inside
		}
		return Partly
	}
}

// onSphere is the part of r that has longitudes and latitudes.
func (r Rect) onSphere() (s2.Rect, bool) {
	low, high := Point{max(r.Low.X, -180), max(r.Low.Y, -90)}, Point{min(r.High.X, 180), min(r.High.Y, 90)}
	if low.X > high.X || low.Y > high.Y {
		return s2.Rect{}, false
	}
	radians := func(degrees float64) float64 { return (s1.Angle(degrees) * s1.Degree).Radians() }
	lng := s1.IntervalFromEndpoints(radians(low.X), radians(high.X))
	if high.X-low.X >= 360 {
		lng = s1.FullInterval()
	}
	return s2.Rect{Lat: r1.Interval{Lo: radians(low.Y), Hi: radians(high.Y)}, Lng: lng}, true
}
