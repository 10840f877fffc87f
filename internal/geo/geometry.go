// Package geo holds shapes on the plane and on the sphere: MongoDB's legacy coordinates and GeoJSON, parsed with MongoDB's
// errors, and what contains, meets and lies near what. It knows nothing of queries, indexes and documents around a shape.
package geo

import (
	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// EarthRadiusMeters is the radius that turns angles into meters.
const EarthRadiusMeters = 6378100.0

// Kind is what a Geometry is.
type Kind uint8

// The kinds. Box, Circle and Ring are shapes on the plane, Cap is a circle on the sphere.
const (
	PointKind Kind = iota
	LineString
	Polygon
	MultiPoint
	MultiLineString
	MultiPolygon
	Collection
	Box
	Circle
	Ring
	Cap
)

// CRS is where a shape lies.
type CRS uint8

// The reference systems. StrictSphere is the sphere with polygons that may be larger than half of it.
const (
	Flat CRS = iota
	Sphere
	StrictSphere
)

// Point is a position: longitude and latitude in degrees on the sphere.
type Point struct{ X, Y float64 }

// Geometry is a shape. Those on the sphere are the union of their points, lines and polygons, or a cap.
type Geometry struct {
	Kind Kind
	CRS  CRS
	// At is the position of a point, and the center of a Circle and a Cap.
	At Point
	// Radius is that of a Circle in its plane's units, and of a Cap in radians.
	Radius float64
	// Corners are two opposite ones of a Box, the lower left one first, and all of a Ring.
	Corners []Point

	Points   []s2.Point
	Lines    []*s2.Polyline
	Polygons []*s2.Polygon
	cap      s2.Cap
	reader   Reader // that has read it
}

func badValue(format string, args ...any) error {
	return mongoerr.New(mongoerr.BadValue, format, args...)
}

// spherical is p on the sphere.
func (p Point) spherical() s2.Point {
	return s2.PointFromLatLng(s2.LatLngFromDegrees(p.Y, p.X))
}

// OnSphere says whether p is a longitude and a latitude.
func (p Point) OnSphere() bool { return p.X >= -180 && p.X <= 180 && p.Y >= -90 && p.Y <= 90 }

// SphericalCap is the Cap as S2 has it.
func (g *Geometry) SphericalCap() s2.Cap { return g.cap }

// onto is g as it takes part in an operation with shapes of the given system, and whether it can: a point can be on either,
// other shapes only where they are.
func (g *Geometry) onto(crs CRS) (*Geometry, bool) {
	if crs == StrictSphere {
		crs = Sphere
	}
	switch {
	case g.CRS == crs:
		return g, true
	case g.Kind != PointKind:
		return nil, false
	case crs == Flat:
		return &Geometry{Kind: PointKind, At: g.At}, true
	case !g.At.OnSphere():
		return nil, false
	}
	return &Geometry{Kind: PointKind, CRS: Sphere, At: g.At, Points: []s2.Point{g.At.spherical()}}, true
}

// ParseStored parses a shape as documents hold it: GeoJSON, or a legacy point as an array or as a document of two numbers.
func ParseStored(v bson.Value) (*Geometry, error) { return Reader{}.parseStored(v) }

func (r Reader) parseStored(v bson.Value) (*Geometry, error) {
	switch {
	case v.Type == bson.TypeObject && isGeoJSON(v.Doc()):
		return r.parseGeoJSON(v.Doc())
	case v.Type == bson.TypeObject || v.Type == bson.TypeArray:
		p, err := parsePoint(v, true)
		return &Geometry{Kind: PointKind, At: p}, err
	}
	return nil, badValue("geo element must be an array or object: %s", v)
}

// ParseQuery parses what stands behind $geometry.
func ParseQuery(v bson.Value) (*Geometry, error) { return Reader{}.parseQuery(v) }

func (r Reader) parseQuery(v bson.Value) (*Geometry, error) {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return nil, badValue("$geometry must be an object, found %s", v.Type)
	}
	if v.Type == bson.TypeObject && !v.Doc().Lookup("type").IsMissing() {
		return r.parseGeoJSON(v.Doc())
	}
	p, err := parsePoint(v, false)
	if err != nil {
		return nil, badValue("unknown GeoJSON type: %s", v)
	}
	if !p.OnSphere() {
		return nil, outOfBounds(p)
	}
	g, _ := (&Geometry{Kind: PointKind, At: p}).onto(Sphere)
	return g, nil
}

// ParseShape parses what stands behind $box, $center, $centerSphere and $polygon.
func ParseShape(name string, v bson.Value) (*Geometry, error) {
	if v.Type != bson.TypeArray && v.Type != bson.TypeObject {
		return nil, badValue("unknown geo specifier: %s: %s", name, v)
	}
	switch name {
	case "$box":
		return parseBox(v.Doc())
	case "$center":
		return parseCircle(v.Doc(), Circle)
	case "$centerSphere":
		return parseCircle(v.Doc(), Cap)
	case "$polygon":
		return parseRing(v.Doc())
	}
	return nil, badValue("unknown geo specifier: %s: %s", name, v)
}

// ParsePoint parses the center of a search by distance: a GeoJSON point, or a legacy one, behind which further fields may
// stand.
func ParsePoint(v bson.Value) (*Geometry, error) {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return nil, badValue("Point must be an array or object, instead got type %s", v.Type)
	}
	if v.Type == bson.TypeArray || v.Doc().Index(0).IsNumber() {
		p, err := parsePoint(v, true)
		return &Geometry{Kind: PointKind, At: p}, err
	}
	if d := v.Doc(); d.Lookup("type").IsMissing() && d.Lookup("coordinates").Type == bson.TypeArray {
		p, err := parsePosition(d.Lookup("coordinates"))
		return &Geometry{Kind: PointKind, CRS: Sphere, At: p, Points: []s2.Point{p.spherical()}}, err
	}
	g, err := ParseGeoJSON(v.Doc())
	if err == nil && g.Kind != PointKind {
		return nil, badValue("Point must be of type Point: %s", v)
	}
	return g, err
}

// parsePoint reads the first two elements of an array or a document as numbers; more says whether others may follow.
func parsePoint(v bson.Value, more bool) (Point, error) {
	var p Point
	if v.Type != bson.TypeArray && v.Type != bson.TypeObject {
		return p, badValue("Point must be an array or object, instead got type %s", v.Type)
	}
	it := v.Doc().Iter()
	for _, to := range [2]*float64{&p.X, &p.Y} {
		if !it.Next() || !it.Value().IsNumber() {
			return p, badValue("Point must only contain numeric elements: %s", v)
		}
		*to = it.Value().AsDouble()
	}
	if !more && it.Next() {
		return p, badValue("Point must only contain two numeric elements: %s", v)
	}
	if !finite(p.X) || !finite(p.Y) {
		return p, badValue("Point coordinates must be finite numbers: %s", v)
	}
	return p, nil
}

func finite(f float64) bool { return f-f == 0 }

func outOfBounds(p Point) error {
	return badValue("Longitude/latitude is out of bounds, lng: %v lat: %v", p.X, p.Y)
}

func parseBox(d bson.Doc) (*Geometry, error) {
	corners, err := parseCorners(d)
	if err != nil {
		return nil, err
	}
	if len(corners) < 2 {
		return nil, badValue("$box needs two corners: %s", d)
	}
	a, b := corners[0], corners[1]
	return &Geometry{Kind: Box, Corners: []Point{{min(a.X, b.X), min(a.Y, b.Y)}, {max(a.X, b.X), max(a.Y, b.Y)}}}, nil
}

func parseRing(d bson.Doc) (*Geometry, error) {
	corners, err := parseCorners(d)
	if err != nil {
		return nil, err
	}
	if len(corners) < 3 {
		return nil, badValue("Polygon must have at least 3 points")
	}
	return &Geometry{Kind: Ring, Corners: corners}, nil
}

func parseCorners(d bson.Doc) ([]Point, error) {
	var corners []Point
	for it := d.Iter(); it.Next(); {
		p, err := parsePoint(it.Value(), false)
		if err != nil {
			return nil, err
		}
		corners = append(corners, p)
	}
	return corners, nil
}

func parseCircle(d bson.Doc, kind Kind) (*Geometry, error) {
	vs := d.Values(nil)
	if len(vs) == 0 {
		return nil, badValue("Point must be an array or object")
	}
	center, err := parsePoint(vs[0], false)
	if err != nil {
		return nil, err
	}
	if len(vs) < 2 || !vs[1].IsNumber() || !(vs[1].AsDouble() >= 0) {
		return nil, badValue("radius must be a non-negative number")
	}
	if len(vs) > 2 {
		return nil, badValue("Only 2 fields allowed for circular region")
	}
	g := &Geometry{Kind: kind, At: center, Radius: vs[1].AsDouble()}
	if kind == Cap {
		if !center.OnSphere() {
			return nil, outOfBounds(center)
		}
		g.CRS = Sphere
		g.cap = s2.CapFromCenterAngle(center.spherical(), s1.Angle(g.Radius))
	}
	return g, nil
}
