package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/update"
)

// ExplainUpdate tells how an update is run and what it would change.
func (e *Engine) ExplainUpdate(ctx context.Context, u Update, call *Call, v Verbosity) (*Explanation, error) {
	shape := findShape("update", Find{NS: u.NS, Filter: u.Filter, Sort: u.Sort}, call)
	if err := u.sortNaturally(); err != nil {
		return nil, err
	}
	x, err := e.explainUpdate(ctx, u, call, v)
	if err != nil {
		return nil, err
	}
	return x.explanation(shape), nil
}

// ExplainDelete tells how a delete is run and what it would remove.
func (e *Engine) ExplainDelete(ctx context.Context, d Delete, call *Call, v Verbosity) (*Explanation, error) {
	x, err := e.explainDelete(ctx, d, call, v)
	if err != nil {
		return nil, err
	}
	return x.explanation(findShape("delete", Find{NS: d.NS, Filter: d.Filter, Sort: d.Sort}, call)), nil
}

// ExplainFindAndModify tells how a findAndModify is run and what it would do.
func (e *Engine) ExplainFindAndModify(ctx context.Context, f FindAndModify, call *Call, v Verbosity) (*Explanation, error) {
	shape := findShape("findAndModify", Find{NS: f.NS, Filter: f.Filter, Sort: f.Sort, Projection: f.Projection}, call)
	fields, err := e.returnedFields(ctx, e.lookup(f.NS, call), f, call)
	if err == nil {
		err = f.sortNaturally()
	}
	if err != nil {
		return nil, err
	}
	var x *explainedWrite
	if f.Remove {
		x, err = e.explainDelete(ctx, Delete{NS: f.NS, Filter: f.Filter, Sort: f.Sort, Hint: f.Hint, projected: fields.project != nil}, call, v)
	} else {
		f.projected = fields.project != nil
		x, err = e.explainUpdate(ctx, f.Update, call, v)
	}
	if err != nil {
		return nil, err
	}
	if x.returned = x.matched; f.New && x.upserted > 0 {
		x.returned = 1
	}
	if fields.project != nil && x.coll != nil {
		x.steps = x.steps.above(&planner.Projection{Spec: f.Projection}, nil)
	}
	return x.explanation(shape), nil
}

// explainedWrite is a write that is planned, and run but for the writing.
type explainedWrite struct {
	explained
	order   *sortpattern.Pattern
	multi   bool
	express planner.ExpressMode
	// change says what becomes of a document.
	change func(doc bson.Doc, details *match.Details) (changed bool, err error)

	matched, changed, upserted int64
}

func (e *Engine) explainUpdate(ctx context.Context, u Update, call *Call, v Verbosity) (*explainedWrite, error) {
	x := &explainedWrite{explained: explained{engine: e, verbosity: v, ns: u.NS}, multi: u.Multi, express: u.express()}
	err := x.explain(ctx, u.Hint, call, func() error {
		p, err := e.parseUpdate(x.lang, u, call)
		if err != nil {
			return err
		}
		x.filter, x.order = p.filter, p.order
		x.change = func(doc bson.Doc, details *match.Details) (bool, error) {
			_, changed, err := p.change.Apply(nil, doc, e.updateArgs(p, call, details))
			return changed || p.change.Kind() == update.Replacement, err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if x.matched == 0 && u.Upsert && x.runs() && x.err == nil {
		x.upserted = 1
	}
	x.above(stageCounts{"UPDATE", [3]int64{x.matched, x.changed, x.upserted}})
	return x, nil
}

func (e *Engine) explainDelete(ctx context.Context, d Delete, call *Call, v Verbosity) (*explainedWrite, error) {
	x := &explainedWrite{explained: explained{engine: e, verbosity: v, ns: d.NS}, multi: d.Multi, express: d.express()}
	err := x.explain(ctx, d.Hint, call, func() (err error) {
		x.filter, x.order, err = e.parseDelete(x.lang, d)
		x.change = func(bson.Doc, *match.Details) (bool, error) { return true, nil }
		return err
	})
	if err != nil {
		return nil, err
	}
	x.above(stageCounts{"DELETE", [3]int64{x.changed}})
	return x, nil
}

// explain opens the collection, has parse say what is to be found and done, and finds it.
func (x *explainedWrite) explain(ctx context.Context, hint bson.Value, call *Call, parse func() error) error {
	vs := x.engine.views(call)
	defer vs.release()
	view, err := vs.open(ctx)
	if err != nil {
		return err
	}
	if x.coll = view.Catalog().Collection(x.ns); x.coll != nil && x.coll.IsView() {
		return notOnView(x.ns)
	}
	if x.lang, err = x.engine.language(ctx, call, x.coll); err != nil {
		return err
	}
	if err := parse(); err != nil {
		return err
	}
	return x.find(ctx, view, hint, call)
}

// above puts the step that writes above those that find, if there is a collection.
func (x *explainedWrite) above(counts stageCounts) {
	if x.coll == nil {
		return
	}
	if express, ok := x.steps.node.(*planner.Express); ok {
		x.steps = &step{node: writing(express, counts.stage), ran: counts.printExpress, stats: func() *exec.Stats {
			s := flat(x.stats)
			s.Advanced = x.returned
			return s
		}}
		return
	}
	x.steps = x.steps.above(named(counts.stage), x.written)
	x.steps.ran = counts.print
}

// written are the counts of a step that gives no documents.
func (x *explainedWrite) written() *exec.Stats {
	return &exec.Stats{Works: x.matched + 1, Advanced: x.returned, NeedTime: x.matched - x.returned, EOF: true}
}

// find plans the search for the documents to write, and runs it.
func (x *explainedWrite) find(ctx context.Context, view *storage.View, hint bson.Value, call *Call) error {
	q := (&search{filter: x.filter, order: x.order, hint: hint, express: x.express}).query(x.lang)
	if !x.multi {
		q.Limit = 1
	}
	x.choice = only(planner.Nothing())
	var src exec.Source
	if r, ok := view.Collection(x.ns); ok {
		var err error
		if x.choice, err = x.engine.choose(r, q, x.order, nil); err != nil {
			return err
		}
		src = fixed{r}
	}
	x.command = planShape(x.filter, x.order, nil, x.lang.collation)
	x.shape = x.command
	details := &match.Details{}
	if x.choice.plan.Filter == nil {
		details.Position = -1
	}
	x.choice.explains = true
	records, err := x.choice.open(ctx, x.engine, call, exec.Opening{Source: src, Env: x.lang.env, Seen: &x.seen, Details: details, Enough: q.Limit})
	if err != nil {
		return err
	}
	x.plan = x.choice.plan
	defer records.Close()
	x.stats = records.Stats()
	x.steps = x.access()
	if x.order != nil && !x.plan.Ordered {
		x.steps = x.steps.above(&planner.Sort{Pattern: x.order, Limit: 1, Memory: exec.DefaultMaxMemory}, x.sorted)
	}
	if !x.runs() {
		return nil
	}
	err = x.run(ctx, func() error { return x.walk(ctx, records, details) })
	call.Seen = x.seen
	return err
}

// sorted are the counts of the sort, which gives one document at most.
func (x *explainedWrite) sorted() *exec.Stats {
	return &exec.Stats{Works: x.stats.Works + 1, Advanced: x.matched, NeedTime: x.stats.Works}
}

func (x *explainedWrite) walk(ctx context.Context, records *exec.Records, details *match.Details) error {
	if x.order != nil && !x.plan.Ordered {
		rec, details, found, err := least(ctx, records, details, x.order, x.lang)
		if err != nil || !found {
			return err
		}
		return x.write(rec.Doc, details)
	}
	for {
		rec, ok, err := records.NextRecord(ctx)
		if err != nil || !ok {
			return err
		}
		if err := x.write(rec.Doc, details); err != nil || !x.multi {
			return err
		}
	}
}

func (x *explainedWrite) write(doc bson.Doc, details *match.Details) error {
	x.matched++
	changed, err := x.change(doc, details)
	if changed && err == nil {
		x.changed++
	}
	return err
}
