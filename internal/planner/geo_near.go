package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// GeoNear gives documents by their distance from a point, nearest first. It stands for a geospatial index, whose definition
// it demands; as long as such indexes have no entries it looks at all documents.
type GeoNear struct {
	Index  Index
	Near   *match.GeoNear
	Filter *match.Filter
}

// Stage implements Node.
func (g *GeoNear) Stage() string {
	if g.Index.Kind == index.Geo2D {
		return "GEO_NEAR_2D"
	}
	return "GEO_NEAR_2DSPHERE"
}

// Children implements Node.
func (*GeoNear) Children() []Node { return nil }

// Describe implements Node.
func (g *GeoNear) Describe(b *bson.Builder) {
	b.Document("keyPattern", g.Index.Key).String("indexName", g.Index.Name).Int32("indexVersion", 2)
}

// near plans a search by distance: by the first index that can serve it, or the hinted one.
func (p *Plan) near(c Collection, q Query, near *match.GeoNear) error {
	if q.Hint.Type == bson.TypeObject && q.Hint.Doc().FirstKey() == "$natural" || q.Min != nil || q.Max != nil {
		return noNearIndex()
	}
	indexes := c.Indexes
	if !q.Hint.IsNullish() {
		x, err := hintedIndex(c, q.Hint)
		if err != nil {
			return err
		}
		indexes = []Index{x}
	}
	var demands []predicate
	if q.Filter != nil {
		demands = predicates(q.Filter.Root)
	}
	for _, x := range indexes {
		if !x.Hidden && x.measures(near, demands) && (x.Partial() == nil || implies(demands, x.Partial().Root, q.Collation)) {
			p.Root, p.Ordered = &GeoNear{Index: x, Near: near, Filter: p.Filter}, len(q.Order) == 0
			return x.checkCenter(near)
		}
	}
	return noNearIndex()
}

func noNearIndex() error {
	return mongoerr.New(mongoerr.NoQueryExecutionPlans, "error processing query: planner returned error :: caused by :: unable to find index for $geoNear query")
}

// measures says whether x has the places that near asks for, in a system in which it measures; fields before them must be
// bound by the filter.
func (x Index) measures(near *match.GeoNear, demands []predicate) bool {
	for _, f := range x.Fields {
		if f.Path == near.Path.String() {
			return f.Kind == index.Geo2D && !near.Meters || f.Kind == index.Geo2DSphere && near.Spherical
		}
		if f.Kind != index.Geo2DSphere && !demanded(f.Path, demands) {
			return false
		}
	}
	return false
}

func demanded(path string, demands []predicate) bool {
	for _, d := range demands {
		if d.path == path {
			return true
		}
	}
	return false
}

// checkCenter holds the center to the part of the plane that a 2d index covers.
func (x Index) checkCenter(near *match.GeoNear) error {
	if x.Kind != index.Geo2D {
		return nil
	}
	low, high := -180.0, 180.0
	if v := x.Spec.Lookup("min"); v.IsNumber() {
		low = v.AsDouble()
	}
	if v := x.Spec.Lookup("max"); v.IsNumber() {
		high = v.AsDouble()
	}
	for _, at := range []float64{near.Center.X, near.Center.Y} {
		if !(at >= low && at <= high) {
			return mongoerr.New(16433, "point not in interval of [ %v, %v ]", low, high)
		}
	}
	return nil
}

// GeoField is the one field that a search by distance without a path can mean: that of the only 2d index, or else of the
// only 2dsphere index.
func GeoField(c Collection) (string, error) {
	for _, kind := range []index.Kind{index.Geo2D, index.Geo2DSphere} {
		var found []string
		for _, x := range c.Indexes {
			if x.Hidden {
				continue
			}
			for _, f := range x.Fields {
				if f.Kind == kind {
					found = append(found, f.Path)
					break
				}
			}
		}
		if len(found) > 1 {
			return "", mongoerr.New(mongoerr.IndexNotFound, "There is more than one %s index; unsure which to use for $geoNear", kind)
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", mongoerr.New(mongoerr.IndexNotFound, "$geoNear requires a 2d or 2dsphere index, but none were found")
}
