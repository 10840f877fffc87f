package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// GeoNear is $geoNear. The plan answers it; it cannot be built as a stage.
type GeoNear struct {
	written
	// Near comes to a GeoJSON point or a legacy pair; MinDistance and MaxDistance to numbers, nil when not given.
	Near                     expr.Expr
	MinDistance, MaxDistance expr.Expr
	// DistanceField and IncludeLocs are where the distance and the place go; without components when not asked for.
	DistanceField, IncludeLocs fieldpath.Path
	Multiplier                 float64
	Spherical                  bool
	// Query also has to match, nil when nothing is asked.
	Query *match.Filter
	// Key is the indexed field, "" for the only one.
	Key string
}

const (
	maxGeoKeyParts    = 180
	maxGeoOutputParts = 199
	maxNearElements   = 3 // x, y and the largest distance
)

func parseGeoNear(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject && arg.Type != bson.TypeArray {
		return nil, mongoerr.New(10065, "invalid parameter: expected an object ($geoNear)")
	}
	g := &GeoNear{written: written{"$geoNear", arg}, Multiplier: 1}
	if err := refuseFormer(arg.Doc()); err != nil {
		return nil, err
	}
	if arg.Type == bson.TypeArray || arg.Doc().Lookup("near").IsMissing() {
		return nil, mongoerr.New(5860400, "$geoNear requires a 'near' argument")
	}
	for it := arg.Doc().Iter(); it.Next(); {
		if err := g.read(p, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	return one(g), nil
}

// refuseFormer refuses the options that the command geoNear had, and $geoNear once.
func refuseFormer(d bson.Doc) error {
	for _, former := range []struct {
		name string
		code mongoerr.Code
		text string
	}{
		{"collation", 40227, "$geoNear does not accept the 'collation' parameter. Instead, specify a collation for the entire aggregation command."},
		{"limit", 50858, "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead."},
		{"num", 50857, "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead."},
		{"start", 50856, "$geoNear no longer supports the 'start' argument."},
	} {
		if !d.Lookup(former.name).IsMissing() {
			return mongoerr.New(former.code, "%s", former.text)
		}
	}
	return nil
}

func (g *GeoNear) read(p *parsing, name string, v bson.Value) (err error) {
	switch name {
	case "near":
		return g.readNear(p, v)
	case "minDistance":
		g.MinDistance, err = readDistance(p, name, 7555701, v)
	case "maxDistance":
		g.MaxDistance, err = readDistance(p, name, 7555702, v)
	case "distanceField":
		if v.Type != bson.TypeString {
			return mongoerr.New(16606, "$geoNear requires that the 'distanceField' option is a String")
		}
		g.DistanceField, err = outputPath(v.Str())
	case "includeLocs":
		if v.Type != bson.TypeString {
			return mongoerr.New(16607, "$geoNear requires that 'includeLocs' option is a String")
		}
		g.IncludeLocs, err = outputPath(v.Str())
	case "distanceMultiplier":
		if !v.IsNumber() {
			return mongoerr.New(mongoerr.TypeMismatch, "distanceMultiplier must be a number")
		}
		if g.Multiplier = v.AsDouble(); !(g.Multiplier >= 0) {
			return mongoerr.New(mongoerr.BadValue, "distanceMultiplier must be nonnegative")
		}
	case "spherical":
		g.Spherical = v.Truthy()
	case "query":
		if v.Type != bson.TypeObject {
			return mongoerr.New(mongoerr.TypeMismatch, "query must be an object")
		}
		g.Query, err = p.filter(v.Doc(), match.AllowMatch)
	case "key":
		return g.readKey(v)
	case "uniqueDocs": // means nothing any more
	default:
		return mongoerr.New(mongoerr.BadValue, "Unknown argument to $geoNear: %s", name)
	}
	return err
}

// outputPath is a path that is set in each document, which may be one component less deep than what is read.
func outputPath(text string) (fieldpath.Path, error) {
	path, err := fieldpath.New(text)
	if err == nil && path.Len() > maxGeoOutputParts {
		err = mongoerr.New(5984700, "Invalid field path: it has more than %d components", maxGeoOutputParts)
	}
	return path, err
}

// readNear reads what distances are from. Whether that is a place is looked at by NearQuery, once it is known that there is an index.
func (g *GeoNear) readNear(p *parsing, v bson.Value) (err error) {
	g.Near, err = p.Exprs.Parse(v, p.Scope)
	return err
}

func checkNear(v bson.Value) error {
	switch {
	case v.Type != bson.TypeObject && v.Type != bson.TypeArray:
		return mongoerr.New(5860401, "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)")
	case v.Type == bson.TypeObject && v.Doc().Lookup("type").Type == bson.TypeString:
		return checkPoint(v.Doc())
	case v.Type == bson.TypeObject && v.Doc().Lookup("coordinates").Type == bson.TypeArray:
		return nil // read as a GeoJSON point later on
	case v.Type == bson.TypeArray && v.Doc().Count() > maxNearElements:
		return mongoerr.New(mongoerr.BadValue, "invalid argument in geo near query: %s", v)
	}
	n := 0
	for it := v.Doc().Iter(); it.Next() && n < 2; n++ {
		if !it.Value().IsNumber() {
			return mongoerr.New(mongoerr.BadValue, "invalid argument in geo near query: %s", v)
		}
	}
	if n < 2 {
		return mongoerr.New(mongoerr.BadValue, "invalid argument in geo near query: %s", v)
	}
	return nil
}

func checkPoint(d bson.Doc) error {
	at := d.Lookup("coordinates")
	if d.Lookup("type").Str() != "Point" || at.Type != bson.TypeArray && at.Type != bson.TypeObject || at.Doc().Count() < 2 ||
		!at.Doc().Index(0).IsNumber() || !at.Doc().Index(1).IsNumber() {
		return mongoerr.New(mongoerr.BadValue, "$near must be a point: %s", d)
	}
	if lon, lat := at.Doc().Index(0).AsDouble(), at.Doc().Index(1).AsDouble(); !(lon >= -180 && lon <= 180 && lat >= -90 && lat <= 90) {
		return mongoerr.New(mongoerr.BadValue, "longitude/latitude is out of bounds, lng: %g lat: %g", lon, lat)
	}
	return nil
}

func readDistance(p *parsing, name string, code mongoerr.Code, v bson.Value) (expr.Expr, error) {
	e, err := p.Exprs.Parse(v, p.Scope)
	if err != nil {
		return nil, err
	}
	if needs := expr.DependenciesOf(e); len(needs.Fields) > 0 || needs.Whole {
		return nil, mongoerr.New(code, "$geoNear requires $%s to evaluate to a constant number", name)
	}
	if c, constant := expr.Constant(e); constant {
		return e, checkDistance(name, c)
	}
	return e, nil
}

func checkDistance(name string, v bson.Value) error {
	if !v.IsNumber() {
		return mongoerr.New(mongoerr.TypeMismatch, "$geoNear requires $%s to evaluate to a number", name)
	}
	if !(v.AsDouble() >= 0) {
		return mongoerr.New(mongoerr.BadValue, "%s must be nonnegative", name)
	}
	return nil
}

// NearQuery evaluates what is asked of distances, as a filter has it behind a path.
func (g *GeoNear) NearQuery(env *expr.Env) (bson.Doc, error) {
	if needs := expr.DependenciesOf(g.Near); len(needs.Fields) > 0 || needs.Whole {
		return nil, mongoerr.New(5860402, "$geoNear requires a constant near argument")
	}
	v, err := g.Near.Eval(env)
	if err == nil {
		err = checkNear(v)
	}
	if err != nil {
		return nil, err
	}
	b := bson.Build()
	if g.Spherical {
		b.Value("$nearSphere", v)
	} else {
		b.Value("$near", v)
	}
	for _, bound := range []struct {
		name string
		e    expr.Expr
	}{{"minDistance", g.MinDistance}, {"maxDistance", g.MaxDistance}} {
		if bound.e == nil {
			continue
		}
		if v, err = bound.e.Eval(env); err == nil {
			err = checkDistance(bound.name, v)
		}
		if err != nil {
			return nil, err
		}
		b.Value("$"+bound.name, v)
	}
	return b.Doc(), nil
}

func (g *GeoNear) readKey(v bson.Value) error {
	if v.Type != bson.TypeString {
		return mongoerr.New(mongoerr.TypeMismatch, "$geoNear parameter 'key' must be of type string but found type: %s", v.Type)
	}
	if v.Str() == "" {
		return mongoerr.New(mongoerr.BadValue, "$geoNear parameter 'key' cannot be the empty string")
	}
	path, err := fieldpath.New(v.Str())
	if err != nil {
		return err
	}
	if path.Len() > maxGeoKeyParts {
		return mongoerr.New(5729100, "$geoNear 'key' has too many components: %d, the limit is %d", path.Len(), maxGeoKeyParts)
	}
	g.Key = v.Str()
	return nil
}

func (g *GeoNear) needs(d *Dependencies) bool {
	if g.Query != nil {
		d.filter(g.Query)
	}
	return d.everything()
}
