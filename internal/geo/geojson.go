package geo

import (
	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/bson"
)

func kindNamed(name string) (Kind, bool) {
	switch name {
	case "Point":
		return PointKind, true
	case "LineString":
		return LineString, true
	case "Polygon":
		return Polygon, true
	case "MultiPoint":
		return MultiPoint, true
	case "MultiLineString":
		return MultiLineString, true
	case "MultiPolygon":
		return MultiPolygon, true
	case "GeometryCollection":
		return Collection, true
	}
	return 0, false
}

func isGeoJSON(d bson.Doc) bool {
	v := d.Lookup("type")
	if v.Type != bson.TypeString {
		return false
	}
	_, known := kindNamed(v.Str())
	return known
}

// ParseGeoJSON parses a GeoJSON document.
func ParseGeoJSON(d bson.Doc) (*Geometry, error) { return Reader{}.parseGeoJSON(d) }

func (r Reader) parseGeoJSON(d bson.Doc) (*Geometry, error) {
	if !isGeoJSON(d) {
		return nil, badValue("unknown GeoJSON type: %s", d)
	}
	kind, _ := kindNamed(d.Lookup("type").Str())
	crs, err := parseCRS(d)
	if err != nil {
		return nil, err
	}
	if crs == StrictSphere && kind != Polygon {
		return nil, badValue("Strict winding order is only supported by polygons: %s", d)
	}
	g := &Geometry{Kind: kind, CRS: crs, reader: r}
	if kind == Collection {
		return g, g.parseCollection(d)
	}
	v := d.Lookup("coordinates")
	if v.Type != bson.TypeArray && !(kind == PointKind && v.Type == bson.TypeObject) {
		return nil, badValue("%s coordinates must be an array: %s", d.Lookup("type").Str(), d)
	}
	switch kind {
	case PointKind:
		g.At, err = g.addPoint(v)
	case LineString:
		err = g.addLine(v)
	case Polygon:
		err = g.addPolygon(v)
	case MultiPoint:
		err = g.each(v, func(v bson.Value) error { _, err := g.addPoint(v); return err })
	case MultiLineString:
		err = g.each(v, g.addLine)
	case MultiPolygon:
		err = g.each(v, g.addPolygon)
	}
	return g, err
}

func (g *Geometry) each(v bson.Value, add func(bson.Value) error) error {
	if v.Doc().IsEmpty() {
		return badValue("coordinates must have at least 1 element: %s", v)
	}
	n := 0
	for it := v.Doc().Iter(); it.Next(); n++ {
		if g.reader.over(n) {
			return errOver
		}
		if err := add(it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (g *Geometry) parseCollection(d bson.Doc) error {
	v := d.Lookup("geometries")
	switch {
	case v.Type != bson.TypeArray:
		return badValue("GeometryCollection geometries must be an array: %s", d)
	case v.Doc().IsEmpty():
		return badValue("GeometryCollection geometries must have at least 1 element: %s", d)
	}
	for it := v.Doc().Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return badValue("Element %s of \"geometries\" is not an object", it.Key())
		}
		part, err := g.reader.parseGeoJSON(it.Value().Doc())
		switch {
		case err != nil:
			return err
		case part.Kind == Collection:
			return badValue("GeometryCollections cannot be nested: %s", d)
		case part.CRS != Sphere:
			return badValue("Strict winding order is not supported in a GeometryCollection: %s", d)
		}
		g.Points = append(g.Points, part.Points...)
		g.Lines = append(g.Lines, part.Lines...)
		g.Polygons = append(g.Polygons, part.Polygons...)
	}
	return nil
}

func parseCRS(d bson.Doc) (CRS, error) {
	crs := d.Lookup("crs")
	if crs.IsMissing() {
		return Sphere, nil
	}
	if crs.Type != bson.TypeObject {
		return Sphere, badValue("GeoJSON CRS must be an object: %s", d)
	}
	if t := crs.Doc().Lookup("type"); t.Type != bson.TypeString || t.Str() != "name" {
		return Sphere, badValue("GeoJSON CRS must have field \"type\": \"name\": %s", d)
	}
	properties := crs.Doc().Lookup("properties")
	if properties.Type != bson.TypeObject {
		return Sphere, badValue("CRS must have field \"properties\" which is an object: %s", d)
	}
	name := properties.Doc().Lookup("name")
	if name.Type != bson.TypeString {
		return Sphere, badValue("In CRS, \"properties.name\" must be a string: %s", d)
	}
	switch name.Str() {
	case "urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326":
		return Sphere, nil
	case "urn:x-mongodb:crs:strictwinding:EPSG:4326":
		return StrictSphere, nil
	}
	return Sphere, badValue("Unknown CRS name: %s", name.Str())
}

func parsePosition(v bson.Value) (Point, error) {
	p, err := parsePoint(v, true)
	if err == nil && !p.OnSphere() {
		err = outOfBounds(p)
	}
	return p, err
}

func (g *Geometry) addPoint(v bson.Value) (Point, error) {
	p, err := parsePosition(v)
	if err == nil {
		g.Points = append(g.Points, p.spherical())
	}
	return p, err
}

// positions are the points of an array without repetitions in a row.
func (r Reader) positions(v bson.Value) (points []s2.Point, closed bool, err error) {
	if v.Type != bson.TypeArray {
		return nil, false, badValue("GeoJSON coordinates must be an array of coordinates: %s", v)
	}
	var first, last Point
	n := 0
	for it := v.Doc().Iter(); it.Next(); n++ {
		if r.over(n) {
			return nil, false, errOver
		}
		if last, err = parsePosition(it.Value()); err != nil {
			return nil, false, err
		}
		p := last.spherical()
		if points == nil {
			first = last
		}
		if at := len(points); at == 0 || points[at-1] != p {
			points = append(points, p)
		}
	}
	return points, first == last, nil
}

func (g *Geometry) addLine(v bson.Value) error {
	points, _, err := g.reader.positions(v)
	if err != nil {
		return err
	}
	if len(points) < 2 {
		return badValue("GeoJSON LineString must have at least 2 vertices: %s", v)
	}
	line := s2.Polyline(points)
	if err := line.Validate(); err != nil {
		return badValue("GeoJSON LineString is invalid: %s: %s", v, err)
	}
	g.Lines = append(g.Lines, &line)
	return nil
}

// maxLoops is how many loops a polygon may have: s2 finds out how they nest by holding each against each.
const maxLoops = 10_000

func (g *Geometry) addPolygon(v bson.Value) error {
	if v.Type != bson.TypeArray || v.Doc().IsEmpty() {
		return badValue("Polygon has no loops.")
	}
	if g.CRS == StrictSphere && v.Doc().Count() > 1 {
		return badValue("Only one simple loop is allowed in a big polygon: %s", v)
	}
	if n := v.Doc().Count(); n > maxLoops {
		return badValue("Polygon isn't valid: it has %d loops, which are more than %d", n, maxLoops)
	}
	var loops []*s2.Loop
	for it := v.Doc().Iter(); it.Next(); {
		loop, err := g.parseLoop(it.Value())
		if err != nil {
			return err
		}
		loops = append(loops, loop)
	}
	for i, hole := range loops[1:] {
		if g.reader.over(i) {
			return errOver
		}
		if !loops[0].Contains(hole) || loops[0].Equal(hole) {
			return badValue("Secondary loops not contained by first exterior loop - secondary loops must be holes: %s first loop: %s",
				v.Doc().Index(i+1), v.Doc().Index(0))
		}
	}
	if err := checkCrossings(loops, g.reader); err != nil {
		return badValue("Polygon isn't valid: %s: %s", err, v)
	}
	polygon := s2.PolygonFromLoops(loops)
	if err := polygon.Validate(); err != nil {
		return badValue("Polygon isn't valid: %s: %s", err, v)
	}
	for i := 1; i < polygon.NumLoops(); i++ { // in the order of nesting, the outer loop first
		if polygon.LastDescendant(i) > i {
			return badValue("Polygon interior loops cannot be nested: %s", v)
		}
	}
	if err := checkSharedVertices(polygon); err != nil {
		return badValue("%s: %s", err, v)
	}
	g.Polygons = append(g.Polygons, polygon)
	return nil
}

func (g *Geometry) parseLoop(v bson.Value) (*s2.Loop, error) {
	points, closed, err := g.reader.positions(v)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 || !closed {
		return nil, badValue("Loop is not closed: %s", v)
	}
	if len(points) > 1 && points[0] == points[len(points)-1] {
		points = points[:len(points)-1]
	}
	if len(points) < 3 {
		return nil, badValue("Loop must have at least 3 different vertices: %s", v)
	}
	loop := s2.LoopFromPoints(points)
	if err := loop.Validate(); err != nil {
		return nil, badValue("Loop is not valid: %s: %s", v, err)
	}
	if g.CRS != StrictSphere {
		loop.Normalize()
	}
	return loop, nil
}
