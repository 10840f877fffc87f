package command

import (
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/query"
)

func planCacheCommands() []*Command {
	return []*Command{
		{Name: "planCacheClear", Needs: Needs{OnCollection: actions(privilege.PlanCacheWrite)}, Doc: "Forgets the plans remembered for a collection, or for one shape of queries.", Run: planCacheClear},
		{Name: "planCacheClearFilters", Needs: Needs{OnCollection: actions(privilege.PlanCacheIndexFilter)}, Doc: "Removes the index filters of a collection, or of one shape of queries.", Run: planCacheClearFilters},
		{Name: "planCacheListFilters", Needs: Needs{OnCollection: actions(privilege.PlanCacheIndexFilter)}, Doc: "Lists the index filters of a collection.", Run: planCacheListFilters},
		{Name: "planCacheSetFilter", Needs: Needs{OnCollection: actions(privilege.PlanCacheIndexFilter)}, Doc: "Sets which indexes queries of a shape may use.", Run: planCacheSetFilter},
	}
}

// cached is the collection whose plan cache op is about: nil when there is none, which is no error to all of these commands.
func (op *Op) cached() (*catalog.Collection, error) {
	ns := op.Args.Collection(op.DB)
	op.Args.ignoreRest()
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if err := readable(ns); err != nil {
		return nil, err
	}
	coll := op.Query.Store.Catalog().Collection(ns)
	if coll != nil && (coll.IsView() || coll.IsTimeSeries()) {
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return coll, nil
}

// planned is the query that the fields of a plan cache command tell of.
type planned struct {
	shape                              plancache.Shape
	query, sort, projection, collation bson.Doc
}

func (op *Op) plannedShape(coll *catalog.Collection) (p planned, err error) {
	doc := op.Args.Document()
	if p.query, err = docField(doc, "query", "required"); err != nil {
		return p, err
	}
	if p.query == nil {
		return p, mongoerr.New(mongoerr.BadValue, "required field query missing")
	}
	for _, f := range []struct {
		name string
		to   *bson.Doc
	}{{"sort", &p.sort}, {"projection", &p.projection}, {"collation", &p.collation}} {
		if *f.to, err = docField(doc, f.name, "optional"); err != nil {
			return p, err
		}
	}
	p.shape, err = op.shapeOf(coll, &p)
	return p, err
}

// shapeOf parses p, as any query is parsed.
func (op *Op) shapeOf(coll *catalog.Collection, p *planned) (plancache.Shape, error) {
	call := op.call()
	if p.collation != nil {
		if p.collation.IsEmpty() {
			return plancache.Shape{}, mongoerr.New(mongoerr.BadValue, "optional field collation cannot be an empty object")
		}
		parsed, err := collation.Parse(p.collation)
		if err != nil {
			return plancache.Shape{}, err
		}
		call.Collation, call.Collated = parsed, true
		p.collation = parsed.Doc()
	}
	return op.Query.Shape(op.Ctx, coll, query.Find{NS: coll.NS, Filter: p.query, Sort: p.sort, Projection: p.projection}, call)
}

// docField is a field that is a document or, as an old command takes it for one, an array; nil when it is absent.
func docField(d bson.Doc, key, need string) (bson.Doc, error) {
	switch v := d.Lookup(key); v.Type {
	case bson.TypeMissing:
		return nil, nil
	case bson.TypeObject, bson.TypeArray:
		return v.Doc(), nil
	}
	return nil, mongoerr.New(mongoerr.BadValue, "%s field %s must be an object", need, key)
}

// wholeCollection says that no shape is named, so that all of a collection is meant.
func (op *Op) wholeCollection() (bool, error) {
	doc := op.Args.Document()
	if !doc.Lookup("query").IsMissing() {
		return false, nil
	}
	for _, key := range []string{"sort", "projection", "collation"} {
		if !doc.Lookup(key).IsMissing() {
			return false, mongoerr.New(mongoerr.BadValue, "sort, projection, or collation provided without query")
		}
	}
	return true, nil
}

func planCacheClear(op *Op) (bson.Doc, error) {
	return op.clearCache((*plancache.Cache).Clear, (*plancache.Cache).ClearShape)
}

func planCacheClearFilters(op *Op) (bson.Doc, error) {
	return op.clearCache((*plancache.Cache).ClearFilters, (*plancache.Cache).ClearFilter)
}

// clearCache does one of the two, by whether a shape is named.
func (op *Op) clearCache(all func(*plancache.Cache), one func(*plancache.Cache, plancache.Shape)) (bson.Doc, error) {
	coll, err := op.cached()
	if coll == nil || err != nil {
		return bson.EmptyDoc, err
	}
	whole, err := op.wholeCollection()
	if err != nil {
		return nil, err
	}
	if whole {
		all(op.Query.Plans.Of(coll.ID))
		return bson.EmptyDoc, nil
	}
	p, err := op.plannedShape(coll)
	if err != nil {
		return nil, err
	}
	one(op.Query.Plans.Of(coll.ID), p.shape)
	return bson.EmptyDoc, nil
}

func planCacheListFilters(op *Op) (bson.Doc, error) {
	coll, err := op.cached()
	if err != nil {
		return nil, err
	}
	b := bson.Build().Array("filters")
	if coll == nil {
		return b.End().Doc(), nil
	}
	for i, f := range op.Query.Plans.Of(coll.ID).Filters() {
		b.Object(bson.IndexKey(i)).Document("query", f.Query).Document("sort", orEmpty(f.Sort)).Document("projection", orEmpty(f.Projection))
		if f.Collation != nil {
			b.Document("collation", f.Collation)
		}
		b.Value("indexes", f.Indexes.ArrayValue()).End()
	}
	return b.End().Doc(), nil
}

func orEmpty(d bson.Doc) bson.Doc {
	if d == nil {
		return bson.EmptyDoc
	}
	return d
}

func planCacheSetFilter(op *Op) (bson.Doc, error) {
	coll, err := op.cached()
	if err != nil {
		return nil, err
	}
	if coll == nil {
		return nil, mongoerr.New(mongoerr.BadValue, "no such collection")
	}
	indexes, err := indexList(op.Args.Document().Lookup("indexes"))
	if err != nil {
		return nil, err
	}
	p, err := op.plannedShape(coll)
	if err != nil {
		return nil, err
	}
	f := plancache.Filter{Shape: p.shape, Query: p.query.Clone(), Sort: p.sort.Clone(), Projection: p.projection.Clone(), Collation: p.collation.Clone(), Indexes: indexes.Clone()}
	if !op.Query.Plans.Of(coll.ID).SetFilter(f) {
		return nil, mongoerr.New(mongoerr.BadValue, "a collection cannot have more than %d index filters", plancache.MaxFilters)
	}
	return bson.EmptyDoc, nil
}

// indexList checks a list of index names and key patterns.
func indexList(v bson.Value) (bson.Doc, error) {
	switch {
	case v.IsMissing():
		return nil, mongoerr.New(mongoerr.BadValue, "required field indexes missing")
	case v.Type != bson.TypeArray:
		return nil, mongoerr.New(mongoerr.BadValue, "required field indexes must be an array")
	case v.Doc().IsEmpty():
		return nil, mongoerr.New(mongoerr.BadValue, "required field indexes must contain at least one index")
	}
	for it := v.Doc().Iter(); it.Next(); {
		switch w := it.Value(); {
		case w.Type == bson.TypeObject && w.Doc().IsEmpty():
			return nil, mongoerr.New(mongoerr.BadValue, "index specification cannot be empty")
		case w.Type != bson.TypeObject && w.Type != bson.TypeString:
			return nil, mongoerr.New(mongoerr.BadValue, "each item in indexes must be an object or a string")
		}
	}
	return v.Doc(), nil
}
