package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/projection"
)

// explainedPipeline is an aggregate that is planned, and perhaps run. A write at its end is left out of the run.
type explainedPipeline struct {
	explained
	op *exec.Op
	pl *pipeline.Pipeline
	// stages are those that are not part of the plan: the run of the i-th has the counts of op.Counts[i+first].
	stages []pipeline.Stage
	first  int
}

// ExplainAggregate tells how an aggregate is run: a plan alone where that does all of it, and otherwise a list of stages of
// which the first is the plan.
func (e *Engine) ExplainAggregate(ctx context.Context, a Aggregate, call *Call, v Verbosity) (*Explanation, error) {
	shape := pipelineShape(a, call)
	e.settle(call, a.NS, func() string { return shape })
	pl, lang, err := e.parseAggregate(ctx, a, call)
	if err != nil {
		return nil, err
	}
	vs := e.views(call)
	defer vs.release()
	x := &explainedPipeline{pl: pl, explained: explained{engine: e, verbosity: v, ns: pl.NS, lang: lang, setting: call.setting}}
	x.op = e.newRunning(pl.NS.DB, call, lang, vs).op
	defer x.op.Memory.Close()
	x.op.Explain = true
	if err := x.checkWrite(ctx); err != nil {
		return nil, err
	}
	it, err := x.open(ctx, a.Hint, vs, call)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if x.runs() {
		if err := x.run(ctx, func() error { return exec.Each(ctx, it, x.count) }); err != nil {
			return nil, err
		}
		call.Seen = x.seen
	}
	return &Explanation{Fields: x.fields(), Shape: shape}, nil
}

// checkWrite finds out whether a $merge could begin at all.
func (x *explainedPipeline) checkWrite(ctx context.Context) error {
	stage, ok := x.pl.Last().(*pipeline.Merge)
	if !ok {
		return nil
	}
	w, err := x.op.Catalog.Merge(ctx, x.op, stage)
	if err == nil {
		w.Abort(ctx)
	}
	return err
}

// open builds the iterators, and what is to be told of them.
func (x *explainedPipeline) open(ctx context.Context, hint bson.Value, vs *views, call *Call) (exec.Iterator, error) {
	if stage := x.pl.Expiring(); stage != nil {
		x.stages = x.pl.Stages
		leaf, err := x.engine.expiring(ctx, x.op, x.pl, stage, vs, &x.seen, call)
		if err != nil {
			return nil, err
		}
		return exec.Build(x.op, reading(x.pl), leaf)
	}
	if stage, ok := x.pl.First().(*pipeline.Search); ok {
		x.stages = x.pl.Stages
		return x.engine.openSearch(ctx, x.op, reading(x.pl), stage, vs, call)
	}
	if x.pl.HasSource() {
		x.stages = x.pl.Stages
		return exec.Build(x.op, reading(x.pl), nil)
	}
	if stage, ok := x.pl.First().(*pipeline.VectorSearch); ok {
		x.stages = x.pl.Stages
		return x.engine.openVectorSearch(ctx, x.op, reading(x.pl), stage, vs, call)
	}
	x.coll = x.engine.lookup(x.pl.NS, call)
	p, err := x.engine.planPipeline(ctx, x.op, x.pl, hint, vs, call)
	if err != nil {
		return nil, err
	}
	p.choice.explains = true
	records, err := p.open(ctx, x.engine, x.op, call, &x.seen)
	if err != nil {
		return nil, err
	}
	x.plan, x.choice, x.filter = p.plan, p.choice, p.lead.Filter
	x.op.Leaf(records)
	x.stats = records.Stats()
	leaf := &exec.Counted{Iterator: records}
	x.op.Counts = append(x.op.Counts, leaf)
	it, err := exec.Build(x.op, reading(p.rest), exec.WithDistance(x.op, p.plan, p.near, leaf))
	if err != nil {
		return nil, err
	}
	x.command = planShape(p.lead.Filter, p.lead.Sort, nil, x.lang.collation)
	x.shape = aggregateShape(x.lang, p.lead, x.pl.From(p.lead.Filtered))
	x.absorb(p.rest)
	return it, nil
}

// reading is pl without a write at its end.
func reading(pl *pipeline.Pipeline) *pipeline.Pipeline {
	if !pl.Writes() {
		return pl
	}
	read := *pl
	read.Stages = pl.Stages[:len(pl.Stages)-1]
	return &read
}

// absorb makes steps of the stages that a plan can have: a sort, counts and a projection. The others stay stages.
func (x *explainedPipeline) absorb(rest *pipeline.Pipeline) {
	x.steps = x.access()
	express, _ := x.steps.node.(*planner.Express)
	sorted := false
	for n, stage := range rest.Stages {
		stats := func() *exec.Stats { return x.op.Counts[n+1].Counters.Stats() }
		switch s := stage.(type) {
		case *pipeline.Sort:
			if n > 0 {
				x.leave(rest, n)
				return
			}
			sorted = true
			x.steps = x.steps.above(&planner.Sort{Pattern: s.Pattern, Limit: s.Limit, Memory: exec.DefaultMaxMemory}, stats)
		case *pipeline.Skip:
			x.steps = x.steps.above(&planner.Skip{N: s.N}, stats)
		case *pipeline.Limit:
			if express == nil && !sorted || rest.Stages[0].(*pipeline.Sort).Limit == 0 {
				x.steps = x.steps.above(&planner.Limit{N: s.N}, stats)
			}
		case *pipeline.Project:
			if s.Projection.Kind() == projection.Addition || s.Spec().Type != bson.TypeObject {
				x.leave(rest, n)
				return
			}
			if express != nil && !isSimple(s.Spec().Doc()) {
				x.leave(rest, n)
				return
			}
			if express != nil {
				x.steps.node = projecting(express, s.Spec().Doc())
				x.leave(rest, n+1)
				return
			}
			if !covered(x.plan.Root) || s.Projection.Expressive() {
				x.steps = x.steps.above(&planner.Projection{Spec: s.Spec().Doc()}, stats)
			}
			x.leave(rest, n+1)
			return
		default:
			x.leave(rest, n)
			return
		}
	}
}

func (x *explainedPipeline) leave(rest *pipeline.Pipeline, n int) {
	x.stages, x.first = rest.Stages[n:], n+1
}

func (x *explainedPipeline) fields() bson.Doc {
	b := bson.Build()
	if len(x.stages) == 0 && x.steps != nil {
		x.print(b)
		return b.Doc()
	}
	b.Array("stages")
	i := 0
	if x.steps != nil {
		if x.first > 0 { // what the plan gave is what the first stage behind it got
			x.returned = x.steps.counted().Advanced
		}
		b.Object("0").Object(x.cursor())
		x.print(b)
		b.End().End()
		i++
	}
	for k, s := range x.stages {
		b.Object(bson.IndexKey(i + k))
		ifRoom(b, s.Name(), s.Spec(), maxExplained)
		if n := x.first + k; x.runs() && n < len(x.op.Counts) {
			b.Int64("nReturned", x.op.Counts[n].Counters.Returned).Int64("executionTimeMillisEstimate", 0)
		}
		b.End()
	}
	return b.End().Doc()
}

// cursor is what the plan is called as a stage.
func (x *explainedPipeline) cursor() string {
	if x.plan.Near() != nil {
		return "$geoNearCursor"
	}
	return "$cursor"
}
