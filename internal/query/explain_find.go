package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/planner"
)

// ExplainFind tells how a find is run.
func (e *Engine) ExplainFind(ctx context.Context, f Find, call *Call, v Verbosity) (*Explanation, error) {
	shape := findShape("find", f, call)
	e.settle(call, f.NS, func() string { return shape })
	if coll := e.lookup(f.NS, call); coll != nil && coll.IsView() {
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
	return x.explanation(shape), nil
}

// explainFind plans f, and runs it.
func (e *Engine) explainFind(ctx context.Context, f Find, call *Call, v Verbosity) (*explained, error) {
	return e.explainFor(ctx, &prepared{Find: f, call: call}, v)
}

// explainFor is explainFind with what is asked of the documents said by p.
func (e *Engine) explainFor(ctx context.Context, p *prepared, v Verbosity) (*explained, error) {
	f, call := p.Find, p.call
	p, err := e.prepareFor(ctx, p)
	if err != nil {
		return nil, err
	}
	defer p.views.release()
	p.counted, p.choice.explains = true, true
	r, err := e.open(ctx, p)
	if err != nil {
		return nil, err
	}
	x := &explained{engine: e, verbosity: v, ns: f.NS, coll: p.coll, lang: p.lang, filter: p.filter, plan: p.plan, choice: p.choice, setting: call.setting}
	x.stats = r.records.Stats()
	x.command = planShape(x.filter, p.order, f.Projection, x.lang.collation)
	x.shape = x.command
	x.steps = p.steps(x, r.op)
	if !x.runs() {
		return x, r.Close()
	}
	return x, x.run(ctx, func() error {
		var err error
		if p.counting {
			x.returned, err = r.records.Count(ctx, p.enough)
			_ = r.Close() // what was counted is counted
		} else {
			err = r.All(ctx, x.count)
		}
		x.seen = call.Seen
		return err
	})
}

// steps are those of a find. What was limited by a sort is not limited again.
func (p *prepared) steps(x *explained, op *exec.Op) *step {
	s := x.access()
	if express, ok := s.node.(*planner.Express); ok {
		s.node = projecting(express, p.Projection)
		return s
	}
	sorted := p.order != nil && !p.plan.Ordered
	if sorted {
		s = s.above(&planner.Sort{Pattern: p.order, Limit: limitedSort(p.Skip, p.Limit), Memory: exec.DefaultMaxMemory}, statsOf(op, "$sort"))
	}
	if p.plan.Counted {
		return p.shown(s)
	}
	if p.Skip > 0 {
		s = s.above(&planner.Skip{N: p.Skip}, statsOf(op, "$skip"))
	}
	s = p.shown(s)
	if p.Limit > 0 && !sorted {
		s = s.above(&planner.Limit{N: p.Limit}, statsOf(op, "$limit"))
	}
	return s
}

// shown is s below what gives documents their shape, which stands below a limit.
func (p *prepared) shown(s *step) *step {
	if _, limit := s.node.(*planner.Limit); limit {
		s.inputs[0] = p.shown(s.inputs[0])
		return s
	}
	switch {
	case p.ReturnKey:
		return s.above(&planner.ReturnKey{}, nil)
	case p.project != nil && !covered(s.node):
		return s.above(&planner.Projection{Spec: p.Projection}, nil)
	}
	return s
}

// covered says whether a plan's node has made documents of keys already.
func covered(n planner.Node) bool {
	p, ok := n.(*planner.Projection)
	return ok && p.Covered
}

// statsOf are what the stage called name has counted, once it has run.
func statsOf(op *exec.Op, name string) func() *exec.Stats {
	for _, c := range op.Counts {
		if c.Name == name {
			return c.Counters.Stats
		}
	}
	return nil
}

// ExplainCount tells how a count is run.
func (e *Engine) ExplainCount(ctx context.Context, c Count, call *Call, v Verbosity) (*Explanation, error) {
	f := Find{NS: c.NS, Filter: c.Filter, Hint: c.Hint}
	if coll := e.lookup(c.NS, call); coll != nil && coll.IsView() {
		return e.explainCountOnView(ctx, f, c, call, v)
	}
	x, err := e.explainFor(ctx, &prepared{Find: f, call: call, counting: true, enough: c.enough()}, v)
	if err != nil {
		return nil, err
	}
	counted := x.returned
	x.returned = 0 // a count gives no documents
	x.shape = "count " + x.shape
	shape := findShape("count", f, call)
	if c.all() && c.Hint.IsNullish() && x.coll != nil {
		x.plan, x.seen, x.steps = nil, exec.Examined{}, &step{node: named("RECORD_STORE_FAST_COUNT")}
	} else {
		x.steps = x.steps.above(named("COUNT"), nil)
	}
	works := counted + 1
	if x.stats != nil && x.plan != nil {
		works = max(x.stats.Works, 1)
	}
	x.steps.stats = func() *exec.Stats { return &exec.Stats{Works: works, NeedTime: works - 1, EOF: true} }
	x.steps.ran = stageCounts{"COUNT", [3]int64{clampCount(counted, c), min(c.Skip, counted)}}.print
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
	if coll := e.lookup(d.NS, call); coll != nil && coll.IsView() {
		return e.ExplainFind(ctx, f, call, v)
	}
	shape := findShape("distinct "+d.Key, f, call)
	e.settle(call, f.NS, func() string { return shape })
	x, err := e.explainFor(ctx, &prepared{Find: f, call: call, distinct: d.Key}, v)
	if err != nil {
		return nil, err
	}
	x.shape += " distinct " + d.Key
	return x.explanation(shape), nil
}
