package planner

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// GeoNear gives documents by their distance from a point, nearest first. It walks a geospatial index ring by ring.
type GeoNear struct {
	Index Index
	Near  *match.GeoNear
	// Filter is what else a document must match.
	Filter *match.Filter
	// Bounds has the values that each field of the index is held to, all for that of the place.
	Bounds []Intervals
	// field is the place's in the key pattern.
	field int
}

// Stage implements Node.
func (g *GeoNear) Stage() string {
	if g.Index.Kind == index.Geo2D {
		return "GEO_NEAR_2D"
	}
	return "GEO_NEAR_2DSPHERE"
}

// besideNear is what the filter demands besides the search; nil for nothing.
func (g *GeoNear) besideNear() *match.Filter {
	if g.Filter == nil || g.Filter.Near() == nil {
		return g.Filter
	}
	and, ok := g.Filter.Root.(*match.And)
	if !ok {
		return nil
	}
	var rest []match.Node
	for _, c := range and.Children {
		if _, near := c.(*match.GeoNear); !near {
			rest = append(rest, c)
		}
	}
	switch len(rest) {
	case 0:
		return nil
	case 1:
		return &match.Filter{Root: rest[0], Collation: g.Filter.Collation}
	}
	return &match.Filter{Root: &match.And{Children: rest}, Collation: g.Filter.Collation}
}

// Children implements Node.
func (*GeoNear) Children() []Node { return nil }

// Describe implements Node.
func (g *GeoNear) Describe(b *bson.Builder) {
	b.Document("keyPattern", g.Index.Key).String("indexName", g.Index.Name).Int32("indexVersion", g.Index.Version())
}

// near plans a search by distance: by the first index that can serve it, or the hinted one.
func (p *Plan) near(c Collection, q Query, near *match.GeoNear) error {
	if q.Hint.Type == bson.TypeObject && q.Hint.Doc().FirstKey() == "$natural" {
		return mongoerr.New(mongoerr.BadValue, "geoNear expression not allowed with $natural hint")
	}
	if q.Min != nil || q.Max != nil {
		return noNearIndex(q)
	}
	indexes := c.Indexes
	if !q.Hint.IsNullish() {
		x, err := hintedIndex(c, q)
		if err != nil {
			return err
		}
		indexes = []Index{x}
	}
	var demands []predicate
	if q.Filter != nil {
		demands = predicates(q.Filter.Root)
	}
	var best *GeoNear
	for _, x := range indexes {
		if x.Hidden || !x.Built() || x.Partial() != nil && !implies(demands, x.Partial().Root, q.Collation) {
			continue
		}
		if field := x.measures(near, demands); field >= 0 {
			g := &GeoNear{Index: x, Near: near, Filter: p.Filter, Bounds: x.besidesPlace(field, demands, q), field: field}
			if best == nil || g.bound() > best.bound() {
				best = g
			}
		}
	}
	if best == nil {
		return noNearIndex(q)
	}
	p.Root, p.Ordered = best, len(q.Order) == 0
	return best.Index.checkCenter(near)
}

// besidesPlace bounds all fields but that of the place.
func (x Index) besidesPlace(place int, demands []predicate, q Query) []Intervals {
	p, bounds, fields := &planning{q: q}, make([]Intervals, len(x.Fields)), make([]boundField, len(x.Fields))
	for i := range bounds {
		fields[i].bounds = All()
		if i != place {
			fields[i] = p.boundsOf(x, i, demands, fields[:i], 0)
		}
		bounds[i] = fields[i].bounds
	}
	return bounds
}

// bound is how many fields before that of the place are held to single values.
func (g *GeoNear) bound() int {
	for i, b := range g.Bounds[:g.field] {
		if !b.ArePoints() {
			return i
		}
	}
	return g.field
}

func noNearIndex(q Query) error {
	return q.unplanned(mongoerr.NoQueryExecutionPlans, "unable to find index for $geoNear query")
}

// measures is the field of x that has the places that near asks for, in a system in which it measures; -1 when there is none.
// Fields before it must be bound by the filter.
func (x Index) measures(near *match.GeoNear, demands []predicate) int {
	for i, f := range x.Fields {
		if f.Path == near.Path.String() {
			if f.Kind == index.Geo2D && !near.Meters || f.Kind == index.Geo2DSphere && near.Spherical {
				return i
			}
			return -1
		}
		if f.Kind != index.Geo2DSphere && !demanded(f.Path, demands) {
			return -1
		}
	}
	return -1
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
	if !x.Grid().Holds(near.Center) {
		return mongoerr.New(16433, "point not in interval of [ %v, %v ] :: caused by :: [ %v, %v ]", x.Grid().Min, x.Grid().Max, near.Center.X, near.Center.Y)
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
