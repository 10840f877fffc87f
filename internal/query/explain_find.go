package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
)

// ExplainFind tells how a find is run.
func (e *Engine) ExplainFind(ctx context.Context, f Find, call *Call, v Verbosity) (*Explanation, error) {
	if coll := e.lookup(f.NS); coll != nil && coll.IsView() {
		stages, err := f.stages()
		if err != nil {
			return nil, err
		}
		return e.ExplainAggregate(ctx, Aggregate{NS: f.NS, Pipeline: stages, Hint: f.Hint}, call, v)
	}
	x, err := e.explainFind(ctx, f, call, v)
	if err != nil {
		return nil, err
	}
	return x.explanation(findShape("find", x, f)), nil
}

// explainFind plans f, and runs it.
func (e *Engine) explainFind(ctx context.Context, f Find, call *Call, v Verbosity) (*explained, error) {
	p, err := e.prepare(ctx, f, call)
	if err != nil {
		return nil, err
	}
	defer p.views.release()
	x := &explained{engine: e, verbosity: v, ns: f.NS, coll: p.coll, lang: p.lang, filter: p.filter, plan: p.plan}
	p.counted = true
	r, err := e.open(p)
	if err != nil {
		return nil, err
	}
	x.command = planShape(x.filter, p.order, f.Projection, x.lang.collation)
	x.shape = x.command
	x.steps = p.steps(x, r.op)
	if !x.runs() {
		return x, r.Close()
	}
	return x, x.run(ctx, func() error {
		err := r.All(ctx, func(bson.Doc) error { x.returned++; return nil })
		x.seen, x.found = call.Seen, r.op.Counts[0].Counters
		return err
	})
}

// steps are those of a find. What was limited by a sort is not limited again.
func (p *prepared) steps(x *explained, op *exec.Op) *step {
	s := x.access()
	sorted := p.order != nil && !p.plan.Ordered
	if sorted {
		limit := int64(0)
		if p.Limit > 0 {
			limit = p.Limit + p.Skip
		}
		s = sortStep(sortSpec(p.order), limit, countsOf(op, "$sort"), s)
	}
	if p.Skip > 0 {
		s = skipStep(p.Skip, countsOf(op, "$skip"), s)
	}
	switch {
	case p.ReturnKey:
		s = &step{name: "RETURN_KEY", input: s}
	case p.project != nil:
		s = projectStep(p.Projection, s)
	}
	if p.Limit > 0 && !sorted {
		s = limitStep(p.Limit, countsOf(op, "$limit"), s)
	}
	return s
}

// countsOf are what the stage called name has counted, once it has run.
func countsOf(op *exec.Op, name string) func() exec.Counters {
	for _, c := range op.Counts {
		if c.Name == name {
			return func() exec.Counters { return c.Counters }
		}
	}
	return nil
}

// ExplainCount tells how a count is run.
func (e *Engine) ExplainCount(ctx context.Context, c Count, call *Call, v Verbosity) (*Explanation, error) {
	f := Find{NS: c.NS, Filter: c.Filter, Hint: c.Hint}
	if coll := e.lookup(c.NS); coll != nil && coll.IsView() {
		return e.explainCountOnView(ctx, f, c, call, v)
	}
	x, err := e.explainFind(ctx, f, call, v)
	if err != nil {
		return nil, err
	}
	counted := x.returned
	x.returned = 0 // a count gives no documents
	x.shape = "count " + x.shape
	shape := findShape("count", x, f)
	if c.Filter.IsEmpty() && c.Hint.IsNullish() && x.coll != nil {
		x.plan, x.seen, x.steps = nil, exec.Examined{}, &step{name: "RECORD_STORE_FAST_COUNT"}
	} else {
		x.steps = &step{name: "COUNT", input: x.steps}
	}
	x.steps.counts = func() exec.Counters { return exec.Counters{Works: counted + 1, EOF: true} }
	x.steps.ran = func(b *bson.Builder) {
		b.Number("nCounted", clampCount(counted, c)).Number("nSkipped", min(c.Skip, counted))
	}
	return x.explanation(shape), nil
}

func (e *Engine) explainCountOnView(ctx context.Context, f Find, c Count, call *Call, v Verbosity) (*Explanation, error) {
	f.Skip, f.Limit = c.Skip, c.Limit
	stages, err := f.stages()
	if err != nil {
		return nil, err
	}
	count := bson.Build().String("$count", "count").Doc()
	return e.ExplainAggregate(ctx, Aggregate{NS: f.NS, Pipeline: bson.ArrayOf(append(stages.Doc().Values(nil), count.Value())...), Hint: f.Hint}, call, v)
}

// ExplainDistinct tells how a distinct is run.
func (e *Engine) ExplainDistinct(ctx context.Context, d Distinct, call *Call, v Verbosity) (*Explanation, error) {
	f := Find{NS: d.NS, Filter: d.Filter, Hint: d.Hint}
	if coll := e.lookup(d.NS); coll != nil && coll.IsView() {
		return e.ExplainFind(ctx, f, call, v)
	}
	x, err := e.explainFind(ctx, f, call, v)
	if err != nil {
		return nil, err
	}
	x.shape += " distinct " + d.Key
	return x.explanation(findShape("distinct "+d.Key, x, f)), nil
}
