package query

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/fulltext"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// openSearch opens a pipeline that begins with $search or $searchMeta. All documents are looked at: those that are hidden because they have
// expired are none of them, so what has expired is not found, and does not count.
func (e *Engine) openSearch(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, stage *pipeline.Search, v *views, call *Call) (exec.Iterator, error) {
	if slices.Contains(pl.From(1).Dependencies().Meta, textScore) {
		return nil, noTextScore()
	}
	leaf, err := e.searchLeaf(ctx, op, pl, stage, v, call)
	if err != nil {
		return nil, err
	}
	return exec.Build(op, pl, leaf)
}

// searchLeaf gives the documents that the search finds with their scores, or for $searchMeta what is known of them.
func (e *Engine) searchLeaf(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, stage *pipeline.Search, v *views, call *Call) (exec.Iterator, error) {
	view, r, err := searched(ctx, pl.NS, v, call)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &listed{}, nil
	}
	search, demands, err := textSearch(ctx, view, r.Catalog(), stage)
	switch {
	case err != nil:
		return nil, duringAggregation(op, err)
	case search == nil && stage.Meta():
		return &listed{docs: []bson.Doc{fulltext.EmptyMeta()}}, nil
	case search == nil:
		op.SearchMeta(fulltext.EmptyMeta())
		return &listed{}, nil
	}
	plans, err := e.searchPlans(ctx, r, demands)
	if err != nil {
		return nil, err
	}
	src := &collSource{views: v, id: r.Catalog().ID, ns: pl.NS}
	scan := func(ctx context.Context) (exec.Iterator, error) {
		records, err := plans.open(ctx, e, call, exec.Opening{Source: src, Env: op.Env, Seen: &call.Seen, Op: op})
		if err != nil {
			return nil, err
		}
		records.Lend()
		op.Leaf(records)
		return records, nil
	}
	return exec.OpenSearch(ctx, op, stage.Name(), search, scan, src, stage.Meta())
}

// searchPlans are the plans for the documents that a search may find: by an index, where there is one for what it demands. All are looked at where
// there is none, so that words are weighed by how common they are in all of them.
func (e *Engine) searchPlans(ctx context.Context, r *storage.Reader, demands bson.Doc) (*choice, error) {
	plans, err := e.candidates(ctx, r, demands)
	if err != nil || demands.IsEmpty() {
		return plans, err
	}
	if _, all := plans.plan.Root.(*planner.CollScan); all {
		return e.candidates(ctx, r, bson.EmptyDoc)
	}
	return plans, nil
}

// textSearch is what a $search or $searchMeta asks for by the index that it names, and what it demands of documents; nil where there is no such
// index.
func textSearch(ctx context.Context, view *storage.View, coll *catalog.Collection, stage *pipeline.Search) (*fulltext.Search, bson.Doc, error) {
	q, err := fulltext.ParseQuery(stage.Spec().Doc(), stage.Meta())
	if err != nil {
		return nil, nil, err
	}
	definition, kind, err := searchIndex(view, coll, q.Index)
	if err != nil || definition == nil {
		return nil, nil, err
	}
	if kind != TextIndex {
		return nil, nil, mongoerr.New(mongoerr.UnknownError, "Cannot execute $search over vectorSearch index '%s'", q.Index)
	}
	d, err := mapping.Parse(definition)
	if err != nil {
		return nil, nil, err
	}
	q.Synonyms = synonymsIn(ctx, view, coll.NS.DB)
	s, err := fulltext.New(d, q)
	return s, q.Demands(d), err
}

// synonymsIn shows the documents of a database's collections as a view has them. What has expired is none of them, and the server's own collections
// have none.
func synonymsIn(ctx context.Context, view *storage.View, db string) fulltext.SynonymSource {
	return func(collection string, take func(bson.Doc) error) (err error) {
		ns := namespace.NS{DB: db, Coll: collection}
		r, ok := view.Collection(ns)
		if !ok || ns.IsSystem() {
			return nil
		}
		c, err := r.Scan(storage.RecordScan{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		interrupted := interruptOf(ctx)
		for c.Next() {
			if err := interrupted(); err != nil {
				return err
			}
			if err := take(c.Record().Doc); err != nil {
				return err
			}
		}
		return c.Err()
	}
}

// SynonymFaults says what is wrong with the documents of each of the synonym mappings of a search index for texts, in the order of their names:
// "" where nothing is. It says nothing of a definition that is wrong itself.
func (e *Engine) SynonymFaults(ctx context.Context, db string, definition bson.Doc) (faults []string, err error) {
	d, err := mapping.Parse(definition)
	if err != nil || len(d.Synonyms) == 0 {
		return nil, nil
	}
	view, err := e.Store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	source := synonymsIn(ctx, view, db)
	for _, name := range slices.Sorted(maps.Keys(d.Synonyms)) {
		fault, err := fulltext.SynonymFault(d.Synonyms[name], source)
		if err != nil {
			return nil, err
		}
		faults = append(faults, fault)
	}
	return faults, nil
}

// duringAggregation is err, of what the search process would say, as the end of a plan. Where that of a pipeline inside of another one is opened,
// the outer plan runs already, and says so.
func duringAggregation(op *exec.Op, err error) error {
	if op.Inside() {
		return err
	}
	return mongoerr.During("PlanExecutor error during aggregation", err)
}
