package query

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
)

// choose finds the plan of q over r, by those indexes that its shape may use. order and project are the other parts
// of the shape.
func (e *Engine) choose(r *storage.Reader, q planner.Query, order *sortpattern.Pattern, project bson.Doc) (*planner.Plan, error) {
	c := describe(r)
	if f := e.indexFilter(r.Catalog(), q.Filter, order, project, q.Collation); f != nil {
		c.Indexes = slices.DeleteFunc(c.Indexes, func(x planner.Index) bool { return !f.Allows(x.Name, x.Key) })
		q.Hint = bson.Missing
	}
	return planner.Choose(c, q)
}

// chooseDistinct is the plan that leaps from value to value of q's only field; ok is false when there is none.
func (e *Engine) chooseDistinct(r *storage.Reader, q planner.Query) (plan *planner.Plan, ok bool, err error) {
	c := describe(r)
	if e.indexFilter(r.Catalog(), q.Filter, nil, nil, q.Collation) != nil {
		return nil, false, nil
	}
	return planner.Distinct(c, q)
}

// chooseSet is choose for the operations that settings are for.
func (e *Engine) chooseSet(call *Call, r *storage.Reader, ns namespace.NS, q planner.Query, order *sortpattern.Pattern, project bson.Doc) (*planner.Plan, error) {
	if call.setting != nil {
		if plan, ok := call.setting.heed(ns, describe(r), q); ok {
			return plan, nil
		}
	}
	return e.choose(r, q, order, project)
}

// indexFilter is the index filter that holds for operations of the shape, nil when there is none.
func (e *Engine) indexFilter(coll *catalog.Collection, filter *match.Filter, order *sortpattern.Pattern, project bson.Doc, l *collation.Collation) *plancache.Filter {
	cache := e.Plans.Of(coll.ID)
	if !cache.HasFilters() {
		return nil
	}
	return cache.Filter(plancache.ShapeOf(planShape(filter, order, project, l)))
}
