package query

import (
	"context"
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/vectorsearch"
)

// openVectorSearch opens a pipeline that begins with $vectorSearch. All documents are looked at that may meet its filter: those that are hidden because
// they have expired are none of them, so what has expired is not found.
func (e *Engine) openVectorSearch(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, stage *pipeline.VectorSearch, v *views, call *Call) (exec.Iterator, error) {
	behind := *pl.From(1)
	if slices.Contains(behind.Dependencies().Meta, textScore) {
		return nil, noTextScore()
	}
	leaf, err := e.vectorLeaf(ctx, op, pl, stage, v, call)
	if err != nil {
		return nil, err
	}
	behind.Stages = append([]pipeline.Stage{stage.Best()}, behind.Stages...)
	return exec.Build(op, &behind, leaf)
}

// vectorLeaf gives the documents that the search finds, each with its score.
func (e *Engine) vectorLeaf(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, stage *pipeline.VectorSearch, v *views, call *Call) (exec.Iterator, error) {
	view, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	coll := view.Catalog().Collection(pl.NS)
	if err := call.Expected.check(pl.NS, coll, view.Catalog()); err != nil {
		return nil, err
	}
	if err := call.checkSnapshot(coll); err != nil {
		return nil, err
	}
	r, ok := view.Collection(pl.NS)
	if !ok {
		return &listed{}, nil
	}
	q, search, err := vectorSearch(view, coll, stage.Spec().Doc(), op.Explain)
	if err != nil {
		return nil, mongoerr.During("PlanExecutor error during aggregation", err)
	}
	if search == nil {
		return &listed{}, nil
	}
	plans, err := e.vectorPlans(ctx, r, q)
	if err != nil {
		return nil, err
	}
	src := &collSource{views: v, id: r.Catalog().ID, ns: pl.NS}
	records, err := plans.open(ctx, e, call, exec.Opening{Source: src, Env: op.Env, Seen: &call.Seen, Op: op})
	if err != nil {
		return nil, err
	}
	op.Leaf(records)
	return exec.WithVectorScore(op, search, records), nil
}

// vectorPlans are the plans for the documents that a search may find: by an index, where there is one for what its filter demands.
func (e *Engine) vectorPlans(ctx context.Context, r *storage.Reader, q *vectorsearch.Query) (*choice, error) {
	filter, err := e.filters.Parse(q.Demands(), match.Options{})
	if err != nil {
		return nil, err
	}
	plans, err := planner.Candidates(describe(r), planner.Query{Filter: filter, Interrupt: interruptOf(ctx)})
	if err != nil {
		return nil, err
	}
	return &choice{plans: plans, plan: plans[0], reader: r}, nil
}

// vectorSearch is what a $vectorSearch asks for by the index that it names; nil where there is no such index, and so nothing is found.
func vectorSearch(view *storage.View, coll *catalog.Collection, spec bson.Doc, explain bool) (*vectorsearch.Query, *vectorsearch.Search, error) {
	q, err := vectorsearch.ParseQuery(spec, explain)
	if err != nil {
		return nil, nil, err
	}
	stored, err := storedSearchIndex(view, SearchIndexID(coll, q.Index))
	if err != nil || stored == nil {
		return nil, nil, err
	}
	d, err := vectorsearch.ParseDefinition(stored.Lookup("definition").Doc())
	if err != nil {
		return nil, nil, err
	}
	s, err := d.Search(q, explain)
	return q, s, err
}

// SearchIndexID is the _id of what is kept of a search index. It has the collection's UUID: the index lives as long as that, whatever the
// collection is called.
func SearchIndexID(coll *catalog.Collection, name string) bson.Value {
	return bson.Build().Binary("collection", 4, coll.UUID[:]).String("name", name).Doc().Value()
}

// storedSearchIndex is what is kept of a search index, nil where there is none.
func storedSearchIndex(view *storage.View, id bson.Value) (bson.Doc, error) {
	r, ok := view.Collection(catalog.SearchIndexesNS)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.GetByID(id)
	if !ok || err != nil {
		return nil, err
	}
	if rec.Doc.Lookup("definition").Type != bson.TypeObject {
		return nil, mongoerr.New(mongoerr.FailedToParse, "what %s has of a search index is none of its definitions", catalog.SearchIndexesNS)
	}
	return rec.Doc.Clone(), nil
}

// SearchIndexes are what is kept of search indexes, of all collections.
func (e *Engine) SearchIndexes(ctx context.Context) (found []bson.Doc, err error) {
	_, err = e.readSetting(ctx, catalog.SearchIndexesNS, func(r *storage.Reader) (_ bson.Doc, err error) {
		c, err := r.Scan(storage.RecordScan{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		for c.Next() {
			found = append(found, c.Record().Doc.Clone())
		}
		return nil, c.Err()
	})
	return found, err
}
