package query

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
)

// choice are the plans that an operation may go by, and the one that it does.
type choice struct {
	plans []*planner.Plan
	// plan is the first of plans until the operation is opened.
	plan *planner.Plan
	// reader is the collection's at the time of the choice, nil when there is none.
	reader *storage.Reader
	// command and shape say what is remembered of the winner, and filtered that an index filter holds; nil shape: nothing is.
	command, shape func() string
	filtered       bool
	description    func() bson.Doc
	// explains has plans race whatever is remembered, and leaves no trace.
	explains bool
	// racers took part in the race, when there was one; winner is the place of plan among them.
	racers []exec.Racer
	winner int
}

// only is the choice of one plan.
func only(p *planner.Plan) *choice { return &choice{plans: []*planner.Plan{p}, plan: p} }

// count is for somebody who reads nothing of the documents.
func (c *choice) count() {
	for _, plan := range c.plans {
		plan.Root, plan.Express = planner.Counted(plan.Root), nil
	}
}

// choose finds the plans of q over r, by those indexes that its shape may use. order and project are the other parts
// of the shape.
func (e *Engine) choose(r *storage.Reader, q planner.Query, order *sortpattern.Pattern, project bson.Doc) (*choice, error) {
	c := describe(r)
	filter := e.indexFilter(r.Catalog(), q.Filter, order, project, q.Collation)
	if filter != nil {
		c.Indexes = slices.DeleteFunc(c.Indexes, func(x planner.Index) bool { return !filter.Allows(x.Name, x.Key) })
		q.Hint = bson.Missing
	}
	c.NoTableScan = e.forbidsScans(r.Catalog().NS)
	q.Told = told(r.Catalog().NS, order, project)
	plans, err := planner.Candidates(c, q)
	if err != nil {
		return nil, err
	}
	made := &choice{plans: plans, plan: plans[0], reader: r, filtered: filter != nil}
	if q.Hint.IsNullish() && q.Min == nil && q.Max == nil {
		made.command = func() string { return planShape(q.Filter, order, project, q.Collation) }
		made.shape = made.command
		made.description = func() bson.Doc { return describeQuery(q, order, project) }
	}
	return made, nil
}

// told is what messages tell of a query of ns.
func told(ns namespace.NS, order *sortpattern.Pattern, project bson.Doc) planner.Told {
	t := planner.Told{NS: ns, Projection: project}
	if order != nil {
		t.Sort = order.Source()
	}
	return t
}

// forbidsScans says whether a query of ns needs an index. The server's own collections do not.
func (e *Engine) forbidsScans(ns namespace.NS) bool {
	if e.NoTableScan == nil || !e.NoTableScan() {
		return false
	}
	switch ns.DB {
	case "admin", "config", "local":
		return false
	}
	return !strings.HasPrefix(ns.Coll, "system.")
}

// chooseDistinct is the plan that leaps from value to value of q's only field, with unwinds to elements of arrays as well, or to
// the first documents of each value at firsts when that is not "", which may be the last ones in an order turned round; ok is false when there is none.
func (e *Engine) chooseDistinct(r *storage.Reader, q planner.Query, firsts string, lasts, unwinds bool) (plan *planner.Plan, ok bool, err error) {
	c := describe(r)
	if e.indexFilter(r.Catalog(), q.Filter, nil, nil, q.Collation) != nil {
		return nil, false, nil
	}
	if firsts != "" {
		return planner.Firsts(c, q, firsts, lasts)
	}
	return planner.Distinct(c, q, unwinds)
}

// chooseSet is choose for the operations that settings are for.
func (e *Engine) chooseSet(call *Call, r *storage.Reader, ns namespace.NS, q planner.Query, order *sortpattern.Pattern, project bson.Doc) (*choice, error) {
	if call.setting != nil {
		if plan, ok := call.setting.heed(ns, describe(r), q); ok {
			return only(plan), nil
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
