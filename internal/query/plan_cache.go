package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/plancache"
)

// Shape is the shape that the plan cache and index filters know finds of f's filter, sort and projection by, on the
// collection coll.
func (e *Engine) Shape(ctx context.Context, coll *catalog.Collection, f Find, call *Call) (plancache.Shape, error) {
	p := &prepared{Find: f, call: call}
	if err := p.parse(ctx, e, coll); err != nil {
		return plancache.Shape{}, err
	}
	return plancache.ShapeOf(planShape(p.filter, p.order, f.Projection, p.lang.collation)), nil
}

// PlanCacheStats tells of the plans remembered for a collection, as $planCacheStats does.
func (e *Engine) PlanCacheStats(coll *catalog.Collection, host string) []bson.Doc {
	var docs []bson.Doc
	for _, entry := range e.Plans.Of(coll.ID).Entries() {
		docs = append(docs, printEntry(entry, host))
	}
	return docs
}

func printEntry(e *plancache.Entry, host string) bson.Doc {
	b := bson.Build().String("version", "1").String("queryHash", e.Shape.String()).String("planCacheShapeHash", e.Shape.String()).
		String("planCacheKey", e.Key.String()).Bool("isActive", e.Active).Int64("works", e.Works).String("worksType", "works").
		Date("timeOfCreation", e.Created)
	if e.Described() {
		b.Document("createdFromQuery", e.Query)
	}
	if e.Plan != nil {
		b.Document("cachedPlan", e.Plan)
	}
	if e.Described() {
		b.Array("creationExecStats")
		for i, s := range e.Stats {
			b.Document(bson.IndexKey(i), s)
		}
		b.End().Array("candidatePlanScores")
		for i, s := range e.Scores {
			b.Double(bson.IndexKey(i), s)
		}
		b.End()
	}
	return b.Bool("indexFilterSet", e.FilterSet).Int64("estimatedSizeBytes", e.Bytes()).String("host", host).Doc()
}
