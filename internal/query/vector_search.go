package query

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
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
	view, r, err := searched(ctx, pl.NS, v, call)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &listed{}, nil
	}
	q, search, err := vectorSearch(view, r.Catalog(), stage.Spec().Doc(), op.Explain)
	if err != nil {
		return nil, duringAggregation(op, err)
	}
	if search == nil {
		return &listed{}, nil
	}
	plans, err := e.candidates(ctx, r, q.Demands())
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

// searched is the collection that a search is in, nil where it is not there, and the view that it is in.
func searched(ctx context.Context, ns namespace.NS, v *views, call *Call) (*storage.View, *storage.Reader, error) {
	view, err := v.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	coll := view.Catalog().Collection(ns)
	if err := call.Expected.check(ns, coll, view.Catalog()); err != nil {
		return nil, nil, err
	}
	if err := call.checkSnapshot(coll); err != nil {
		return nil, nil, err
	}
	r, _ := view.Collection(ns)
	return view, r, nil
}

// candidates are the plans for the documents that a search may find: by an index, where there is one for what it demands.
func (e *Engine) candidates(ctx context.Context, r *storage.Reader, demands bson.Doc) (*choice, error) {
	filter, err := e.filters.Parse(demands, match.Options{})
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
	definition, kind, err := searchIndex(view, coll, q.Index)
	if err != nil || definition == nil {
		return nil, nil, err
	}
	if kind != VectorIndex {
		return nil, nil, mongoerr.New(mongoerr.UnknownError, "Cannot execute $vectorSearch over search index '%s'", q.Index)
	}
	d, err := vectorsearch.ParseDefinition(definition)
	if err != nil {
		return nil, nil, err
	}
	s, err := d.Search(q, explain)
	return q, s, err
}
