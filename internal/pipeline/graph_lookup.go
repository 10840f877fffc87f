package pipeline

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// GraphLookup is $graphLookup.
type GraphLookup struct {
	written
	From     namespace.NS
	As       fieldpath.Path
	Start    expr.Expr
	Connect  fieldpath.Path // connectFromField
	To       fieldpath.Path // connectToField
	MaxDepth int64          // -1 for none
	Depth    fieldpath.Path // depthField; without components when not asked for
	Restrict *match.Filter  // restrictSearchWithMatch, nil without
}

func parseGraphLookup(p *parsing, arg bson.Value) ([]Stage, error) {
	if arg.Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the $graphLookup stage specification must be an object, but found %s", arg.Type)
	}
	if arg.Doc().Lookup("from").IsMissing() {
		return nil, mongoerr.New(mongoerr.FailedToParse, "missing 'from' option to $graphLookup stage specification: %s", arg)
	}
	g := &GraphLookup{written: written{"$graphLookup", arg}, From: namespace.NS{DB: p.NS.DB}, MaxDepth: -1}
	for it := arg.Doc().Iter(); it.Next(); {
		if err := g.read(p, it.Key(), it.Value()); err != nil {
			return nil, err
		}
	}
	switch {
	case g.From.Coll == "":
		return nil, mongoerr.New(40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	case g.As.Len() == 0 || g.Start == nil || g.Connect.Len() == 0 || g.To.Len() == 0:
		return nil, mongoerr.New(40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	}
	return one(g), nil
}

func (g *GraphLookup) read(p *parsing, name string, v bson.Value) (err error) {
	switch name {
	case "startWith":
		g.Start, err = p.Exprs.Parse(v, p.Scope)
		return err
	case "maxDepth":
		if !v.IsNumber() {
			return mongoerr.New(40100, "maxDepth requires numeric argument, found '%s'", v.Type)
		}
		n, exact := v.AsInt64()
		if n < 0 {
			return mongoerr.New(40101, "maxDepth requires a nonnegative argument, found: %s", v)
		}
		if !exact {
			return mongoerr.New(40102, "maxDepth could not be represented as a long long: %s", v)
		}
		g.MaxDepth = n
		return nil
	case "restrictSearchWithMatch":
		if v.Type != bson.TypeObject {
			return mongoerr.New(40185, "restrictSearchWithMatch requires an object, found '%s'", v.Type)
		}
		g.Restrict, err = p.filter(v.Doc(), match.AllowMatch)
		return err
	}
	to := map[string]*fieldpath.Path{"as": &g.As, "connectFromField": &g.Connect, "connectToField": &g.To, "depthField": &g.Depth}[name]
	if to == nil && name != "from" {
		return mongoerr.New(40104, "Unknown argument to $graphLookup: %s", name)
	}
	if v.Type != bson.TypeString {
		if name == "from" {
			return mongoerr.New(mongoerr.FailedToParse, "$graphLookup argument 'from: %s' must be a string or object, is type %s", v, v.Type)
		}
		return mongoerr.New(40103, "expected string as argument for %s, found: %s", name, v)
	}
	if name == "from" {
		g.From.Coll = v.Str()
		return g.From.Check()
	}
	*to, err = fieldpath.New(v.Str())
	return err
}

func (g *GraphLookup) needs(d *Dependencies) bool {
	d.exprs(g.Start)
	if g.Restrict != nil {
		d.random = d.random || g.Restrict.Dependencies().Random
	}
	return true
}
