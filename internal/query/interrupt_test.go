package query

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// countedContext is a context that counts how often it is asked whether it has ended.
type countedContext struct {
	context.Context
	times atomic.Int64
}

func (a *countedContext) Err() error {
	a.times.Add(1)
	return a.Context.Err()
}

// TestPlanningAsks: while a filter of many parts is planned it is asked again and again whether to go on, whatever the filter is for.
func TestPlanningAsks(t *testing.T) {
	x := openSkewed(t)
	const n = 30_000
	filter := func(n int) bson.Doc {
		b := bson.Build().Array("$and")
		for i := range n {
			b.Document(bson.IndexKey(i), bson.MustDoc(fmt.Sprintf("{a: {$gt: %d}}", -i)))
		}
		return b.End().Doc()
	}
	for name, plan := range map[string]func(context.Context, bson.Doc) error{
		"find": func(ctx context.Context, f bson.Doc) error {
			_, err := x.engine.ExplainFind(ctx, Find{NS: x.ns, Filter: f}, x.call(), QueryPlanner)
			return err
		},
		"aggregate": func(ctx context.Context, f bson.Doc) error {
			pipeline := bson.Build().Object("0").Document("$match", f).End().Doc()
			r, err := x.engine.Aggregate(ctx, Aggregate{NS: x.ns, Pipeline: bson.ArrayOf(pipeline.Lookup("0"))}, x.call())
			if err != nil {
				return err
			}
			return r.Close()
		},
		"update": func(ctx context.Context, f bson.Doc) error {
			_, err := x.engine.ExplainUpdate(ctx, Update{NS: x.ns, Filter: f, Change: bson.MustDoc("{$set: {c: 1}}").Value()}, x.call(), QueryPlanner)
			return err
		},
	} {
		few, many := &countedContext{Context: context.Background()}, &countedContext{Context: context.Background()}
		x.must(plan(few, filter(2)))
		x.must(plan(many, filter(n)))
		if more := many.times.Load() - few.times.Load(); more < 2*n/1024 { // once in 1024 parts is asked while they are parsed
			t.Errorf("%s: asked %d times more for %d parts", name, more, n)
		}
	}
}
