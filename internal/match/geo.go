package match

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/geo"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

func geoOperators() []Operator {
	return []Operator{
		{Name: "$geoWithin", Doc: "Matches shapes that lie wholly inside of another.", Since: "2.4", field: parseGeoWithin},
		{Name: "$within", Doc: "Is the old name of $geoWithin.", Since: "1.4", field: parseGeoWithin},
		{Name: "$geoIntersects", Doc: "Matches shapes that have a point in common with another.", Since: "2.4", field: parseGeoIntersects},
		{Name: "$near", Doc: "Gives documents by their distance from a point.", Since: "1.4", field: parseNearBeside},
		{Name: "$nearSphere", Doc: "Gives documents by their distance from a point on the sphere.", Since: "1.8", field: parseNearBeside},
		{Name: "$geoNear", Doc: "Is another name of $near.", Since: "2.4", field: parseNearBeside},
	}
}

// GeoWithin matches shapes inside of Shape.
type GeoWithin struct {
	Path   fieldpath.Path
	Shape  *geo.Geometry
	Source bson.Value // what stood behind $geoWithin
}

func (n *GeoWithin) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

// test takes what is no shape as lying nowhere.
func (n *GeoWithin) test(c run, v bson.Value) (bool, error) {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return false, nil
	}
	g, err := geo.Reader{Ask: c.ask()}.ParseStored(v)
	return err == nil && n.Shape.Contains(g), c.ended()
}

func (n *GeoWithin) print(b *bson.Builder) {
	b.Object(n.Path.String()).Value("$geoWithin", n.Source).End()
}

// GeoIntersects matches shapes that have a point in common with Shape.
type GeoIntersects struct {
	Path   fieldpath.Path
	Shape  *geo.Geometry
	Source bson.Value // what stood behind $geoIntersects
}

func (n *GeoIntersects) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *GeoIntersects) test(c run, v bson.Value) (bool, error) {
	if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
		return false, nil
	}
	g, err := geo.Reader{Ask: c.ask()}.ParseStored(v)
	return err == nil && n.Shape.Intersects(g), c.ended()
}

func (n *GeoIntersects) print(b *bson.Builder) {
	b.Object(n.Path.String()).Value("$geoIntersects", n.Source).End()
}

func parseGeoWithin(p *parsing, path fieldpath.Path, arg bson.Value, beside bson.Doc) (Node, error) {
	shape, err := p.parseShape(arg, beside)
	if err != nil {
		return nil, err
	}
	if !shape.CanContain() {
		return nil, badValue("$geoWithin not supported with provided geometry: %s", beside)
	}
	return &GeoWithin{path, shape, arg}, nil
}

func parseGeoIntersects(p *parsing, path fieldpath.Path, arg bson.Value, beside bson.Doc) (Node, error) {
	shape, err := p.parseShape(arg, beside)
	if err != nil {
		return nil, err
	}
	if !shape.CanMeet() {
		return nil, badValue("$geoIntersects not supported with provided geometry: %s", beside)
	}
	return &GeoIntersects{path, shape, arg}, nil
}

// parseShape parses what stands behind $geoWithin and $geoIntersects: one shape, beside which the outdated $uniqueDocs may
// stand. Nothing may stand beside the operator itself.
func (p *parsing) parseShape(arg bson.Value, beside bson.Doc) (*geo.Geometry, error) {
	if beside.Count() > 1 {
		return nil, badValue("can't parse extra field: %s", beside)
	}
	if arg.Type != bson.TypeObject && arg.Type != bson.TypeArray {
		return nil, badValue("geo query doesn't have any geometry: %s", beside)
	}
	var shape *geo.Geometry
	reader := geo.Reader{Ask: p.Exprs.Interrupt()}
	for it := arg.Doc().Iter(); it.Next(); {
		if it.Key() == "$uniqueDocs" {
			continue
		}
		if shape != nil {
			return nil, badValue("can't parse extra field: %s", arg)
		}
		var err error
		if it.Key() == "$geometry" {
			shape, err = reader.ParseQuery(it.Value())
		} else {
			shape, err = geo.ParseShape(it.Key(), it.Value())
		}
		if reader.Ask != nil {
			if ended := reader.Ask(); ended != nil {
				return nil, ended
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if shape == nil {
		return nil, badValue("geo query doesn't have any geometry: %s", beside)
	}
	return shape, nil
}

// GeoNear matches shapes by their distance from Center. Its order is the plan's business, who asks Nearest.
type GeoNear struct {
	Path   fieldpath.Path
	Center geo.Point
	// Spherical says that distances are on the sphere; else they are on the plane, in its units.
	Spherical bool
	// Meters says that Min and Max are meters; else those on the sphere are radians.
	Meters bool
	// Min and Max bound the distance.
	Min, Max float64
	// Source is all that stood behind the path.
	Source bson.Doc
}

func (n *GeoNear) match(c run, s subject) (bool, error) {
	return matchPath(n, c, n.Path, fieldpath.Traverse, s)
}

func (n *GeoNear) test(c run, v bson.Value) (bool, error) {
	raw, ok := n.raw(v, c.ask())
	return ok && n.inside(raw), c.ended()
}

func (n *GeoNear) print(b *bson.Builder) { b.Document(n.Path.String(), n.Source) }

// parseNearBeside refuses $near and its like behind other operators; where they come first, near has read them.
func parseNearBeside(_ *parsing, _ fieldpath.Path, _ bson.Value, beside bson.Doc) (Node, error) {
	return nil, badValue("near must be first in: %s", beside)
}

// near parses the operators behind a path when the first is $near or its like, which alone may have others beside.
func (p *parsing) near(path fieldpath.Path, d bson.Doc) (Node, error) {
	name := d.FirstKey()
	if name != "$near" && name != "$nearSphere" && name != "$geoNear" {
		return nil, nil
	}
	if first := d.Index(0); first.Type != bson.TypeObject && first.Type != bson.TypeArray {
		return nil, nil
	}
	if p.Allow&AllowNear == 0 {
		return nil, mongoerr.New(5626500, "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. "+
			"If you do not need sort, consider using $geoWithin instead. Check out https://dochub.mongodb.org/core/near-sort-operation and "+
			"https://dochub.mongodb.org/core/nearSphere-sort-operationfor more details.")
	}
	n := &GeoNear{Path: path, Max: maxDistance, Source: d}
	legacy, err := n.parseLegacy(d)
	if err != nil || legacy {
		return n, err
	}
	return n, n.parseGeoJSON(d)
}

const maxDistance = 1.7976931348623157e308

// parseLegacy reads { $near: [ x, y ], $maxDistance: … }; false when the center is not there but, maybe, inside.
func (n *GeoNear) parseLegacy(d bson.Doc) (bool, error) {
	found := false
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "$near", "$nearSphere", "$geoNear":
			if v.Type != bson.TypeObject && v.Type != bson.TypeArray {
				return false, badValue("near requires a point, given %s", v)
			}
			ok, err := n.center(v, it.Key() == "$nearSphere")
			if err != nil {
				return false, err
			}
			found = found || ok
		case "$minDistance":
			if err := distance(&n.Min, it.Key(), v, 16893, 16894); err != nil {
				return false, err
			}
		case "$maxDistance":
			if err := distance(&n.Max, it.Key(), v, 16895, 16896); err != nil {
				return false, err
			}
		case "$uniqueDocs":
		default:
			return false, mongoerr.New(34413, "invalid argument in geo near query: %s", it.Key())
		}
	}
	return found, nil
}

// center takes v as the center when it is a point; a legacy point may have the largest distance as its third element.
func (n *GeoNear) center(v bson.Value, sphere bool) (bool, error) {
	g, err := geo.ParsePoint(v)
	if err != nil {
		return false, nil
	}
	n.Center, n.Spherical, n.Meters = g.At, sphere || g.CRS == geo.Sphere, g.CRS == geo.Sphere
	if n.Spherical && !g.At.OnSphere() {
		return false, badValue("Legacy point is out of bounds for spherical query")
	}
	if third := v.Doc().Index(2); g.CRS == geo.Flat && third.IsNumber() {
		return true, distance(&n.Max, "max distance", third, 18522, 18522)
	}
	return true, nil
}

func distance(to *float64, name string, v bson.Value, notNumber, negative mongoerr.Code) error {
	if !v.IsNumber() {
		return mongoerr.New(notNumber, "%s must be a number", name)
	}
	f := v.AsDouble()
	if !(f >= 0) {
		return mongoerr.New(negative, "%s must be non-negative", name)
	}
	*to = f
	return nil
}

// parseGeoJSON reads { $near: { $geometry: …, $maxDistance: … } }.
func (n *GeoNear) parseGeoJSON(d bson.Doc) error {
	if d.Count() > 1 {
		return badValue("geo near accepts just one argument when querying for a GeoJSON point. Extra field found: %s", d)
	}
	found := false
	for it := d.Index(0).Doc().Iter(); it.Next(); {
		v := it.Value()
		switch it.Key() {
		case "$geometry":
			g, err := geo.ParsePoint(v)
			if err != nil {
				return badValue("invalid point in geo near query $geometry argument: %s  %s", v, err)
			}
			if g.CRS != geo.Sphere {
				return badValue("$near requires geojson point, given %s", v)
			}
			n.Center, n.Spherical, n.Meters, found = g.At, true, true, true
		case "$minDistance":
			if err := distance(&n.Min, it.Key(), v, mongoerr.BadValue, mongoerr.BadValue); err != nil {
				return err
			}
		case "$maxDistance":
			if err := distance(&n.Max, it.Key(), v, mongoerr.BadValue, mongoerr.BadValue); err != nil {
				return err
			}
		default:
			return badValue("invalid argument in geo near query: %s", it.Key())
		}
	}
	if n.Min > maxDistance || n.Max > maxDistance {
		return badValue("$minDistance and $maxDistance must be finite: %s", d)
	}
	if !found {
		return badValue("$geometry is required for geo near query")
	}
	return nil
}
