package query

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// maxViewDepth is how many views may stand on one another.
const maxViewDepth = 20

// Aggregate is what an aggregate asks for.
type Aggregate struct {
	// NS has no Coll for {aggregate: 1}.
	NS       namespace.NS
	Pipeline bson.Value // an array of stages
	Hint     bson.Value
	// ReadConcern is the level asked for, "" when none was.
	ReadConcern string
	// Replicated says that the server is a member of a replica set, which has all levels.
	Replicated bool
	// MapReduce, when not nil, is what happens to the documents of Pipeline.
	MapReduce *pipeline.MapReduce
}

// Aggregate opens a pipeline. The caller closes what it returns.
func (e *Engine) Aggregate(ctx context.Context, a Aggregate, call *Call) (*Running, error) {
	e.settle(call, a.NS, func() string { return pipelineShape(a, call) })
	if err := call.rejected(); err != nil {
		return nil, err
	}
	return e.aggregate(ctx, a, call)
}

// aggregate is Aggregate with what is set for the operation known.
func (e *Engine) aggregate(ctx context.Context, a Aggregate, call *Call) (*Running, error) {
	pl, lang, err := e.parseAggregate(ctx, a, call)
	if err != nil {
		return nil, err
	}
	r := e.newRunning(pl.NS.DB, call, lang, e.views(call))
	if changes := pl.Changes(); changes != nil {
		if err := e.openChanges(r, pl, changes); err != nil {
			return nil, err
		}
		return r, nil
	}
	if stage := pl.Expiring(); stage != nil {
		if err := e.openExpiring(ctx, r, pl, stage, call); err != nil {
			return nil, err
		}
		return r, nil
	}
	if r.Iterator, err = e.openPipeline(ctx, r.op, pl, a.Hint, r.views, call); err != nil {
		r.memory.Close()
		r.views.release()
		return nil, err
	}
	r.PlanSummary = call.PlanSummary
	return r, nil
}

// parseAggregate is a's pipeline over the collection that it reads in the end.
func (e *Engine) parseAggregate(ctx context.Context, a Aggregate, call *Call) (*pipeline.Pipeline, *language, error) {
	if err := checkFusion(e.catalog(call), a.NS, a.Pipeline); err != nil {
		return nil, nil, err
	}
	watches := e.watches()
	if watches && asksOfItself(a.Pipeline, "$changeStream") {
		if err := e.checkWatched(a.NS, call); err != nil {
			return nil, nil, err
		}
	}
	if err := call.Expected.checkIn(e.catalog(call)); err != nil { // again where a collection is read; not all read one, and a view is none
		return nil, nil, err
	}
	ns, fused, stages, coll, err := e.resolve(a.NS, a.Pipeline, call)
	if err != nil {
		return nil, nil, err
	}
	if watches && asksOfItself(a.Pipeline, "$changeStream") {
		coll = nil // whose collation is not that of its events
	}
	lang, err := e.language(ctx, call, coll)
	if err != nil {
		return nil, nil, err
	}
	if call.Stable {
		if err := pipeline.CheckStableNames(a.Pipeline); err != nil {
			return nil, nil, err
		}
	}
	if a.ReadConcern != "" {
		if err := pipeline.CheckReadConcern(stages, a.ReadConcern); err != nil {
			return nil, nil, err
		}
	}
	if call.Txn != nil {
		if err := pipeline.CheckTransactionNames(stages); err != nil {
			return nil, nil, err
		}
	}
	pl, err := e.pipelineParser(lang).ParseMapReduce(stages, a.MapReduce, pipeline.Options{NS: ns, Fused: fused, Scope: lang.scope, Watches: watches})
	if err != nil {
		return nil, nil, err
	}
	if err := e.checkCollations(pl, lang.collation, call); err != nil {
		return nil, nil, err
	}
	if call.Txn != nil {
		if err := pl.CheckTransaction(); err != nil {
			return nil, nil, err
		}
	}
	if !a.Replicated && (a.ReadConcern == "snapshot" || a.ReadConcern == "linearizable") {
		return nil, nil, NeedsReplicaSet(a.ReadConcern)
	}
	if call.Stable {
		if err := pl.CheckStable(); err != nil {
			return nil, nil, err
		}
	}
	if ns.Coll == "" && !pl.HasSource() {
		return nil, nil, mongoerr.New(mongoerr.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", stageName(pl))
	}
	return pl, lang, nil
}

// NeedsReplicaSet refuses a level of read concern that a server by itself does not have.
func NeedsReplicaSet(level string) error {
	return mongoerr.New(mongoerr.NotAReplicaSet, "node needs to be a replica set member to use read concern: %s", level)
}

func stageName(pl *pipeline.Pipeline) string {
	if s := pl.First(); s != nil {
		return s.Name()
	}
	return ""
}

// resolve follows views down to the collection and puts their pipelines in front of stages. A view has its own collation,
// which a command may repeat but not change. A $rankFusion or $scoreFusion has to be the first stage: a view that it is asked
// of is fused, and the inputs read it.
func (e *Engine) resolve(ns namespace.NS, stages bson.Value, call *Call) (base, fused namespace.NS, all bson.Value, coll *catalog.Collection, err error) {
	if ns.Coll == "" || asksOfItself(stages, "$collStats") {
		return ns, fused, stages, nil, nil
	}
	for depth := 0; ; depth++ {
		coll := e.lookup(ns, call)
		if coll == nil || !coll.IsView() {
			return ns, fused, stages, coll, nil
		}
		if depth == maxViewDepth {
			return ns, fused, stages, nil, mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth limit exceeded; maximum depth is %d", maxViewDepth)
		}
		own, err := viewCollation(coll)
		if err != nil {
			return ns, fused, stages, nil, err
		}
		if call.Collated && !collation.Equal(own, call.Collation) {
			return ns, fused, stages, nil, mongoerr.New(mongoerr.OptionNotSupportedOnView, "Cannot override a view's default collation: %s", ns)
		}
		call.Collation, call.Collated = own, true
		if fused.Coll == "" && fusion(stages) != "" {
			fused = ns
		}
		if fused.Coll == "" {
			stages = concat(coll.Options.Pipeline, stages.Doc())
		}
		if ns = below(coll); ns.Coll == "" || asksOfItself(stages, "$collStats") {
			return ns, fused, stages, nil, nil
		}
	}
}

// checkCollations refuses pl if a view that its stages read has another collation than it has, whether they come to read it or not.
func (e *Engine) checkCollations(pl *pipeline.Pipeline, c *collation.Collation, call *Call) error {
	for _, ns := range pl.Namespaces() {
		view := e.catalog(call).Collection(ns)
		if view == nil || !view.IsView() {
			continue
		}
		own, err := viewCollation(view)
		if err != nil {
			return err
		}
		if !collation.Equal(own, c) {
			return mongoerr.New(mongoerr.OptionNotSupportedOnView, "Cannot override a view's default collation: %s", ns)
		}
	}
	return nil
}

// asksOfItself says whether stages begin with the one named, which is about what is called so and not about documents.
func asksOfItself(stages bson.Value, name string) bool {
	first := stages.Doc().Index(0)
	return first.Type == bson.TypeObject && first.Doc().FirstKey() == name
}

func viewCollation(view *catalog.Collection) (*collation.Collation, error) {
	if view.Options.Collation == nil {
		return nil, nil
	}
	return collation.Parse(view.Options.Collation)
}

func concat(a, b bson.Doc) bson.Value {
	return bson.ArrayOf(b.Values(a.Values(nil))...)
}

// openPipeline opens pl over the collection that it is parsed for: the plan takes over what it can of its front.
func (e *Engine) openPipeline(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, hint bson.Value, v *views, call *Call) (exec.Iterator, error) {
	if stage, ok := pl.First().(*pipeline.Search); ok {
		return e.openSearch(ctx, op, pl, stage, v, call)
	}
	if pl.HasSource() {
		return exec.Build(op, pl, nil)
	}
	if stage, ok := pl.First().(*pipeline.VectorSearch); ok {
		return e.openVectorSearch(ctx, op, pl, stage, v, call)
	}
	p, err := e.planPipeline(ctx, op, pl, hint, v, call)
	if err != nil {
		return nil, err
	}
	records, err := p.open(ctx, e, op, call, &call.Seen)
	if err != nil {
		return nil, err
	}
	op.Leaf(records)
	found := exec.WithDistance(op, p.plan, p.near, exec.WithScore(op, p.plan, records, records))
	sorted := p.lead.Sort
	if !p.plan.Ordered {
		sorted = nil
	}
	return exec.Build(op, p.rest, exec.WithRecordMeta(op, p.asked, records, sorted, found))
}

// plannedPipeline is a pipeline's plan and the stages that it leaves to do.
type plannedPipeline struct {
	choice *choice
	plan   *planner.Plan // the choice's
	src    exec.Source   // nil: there is no such collection
	lead   pipeline.Leading
	near   *pipeline.GeoNear // at the front; nil: there is none
	rest   *pipeline.Pipeline
	asked  exec.RecordMeta
}

// open opens the plan over its collection.
func (p *plannedPipeline) open(ctx context.Context, e *Engine, op *exec.Op, call *Call, seen *exec.Examined) (*exec.Records, error) {
	records, err := p.choice.open(ctx, e, call, exec.Opening{Source: p.src, Env: op.Env, Seen: seen, Op: op, IndexKeys: p.asked.IndexKey})
	p.plan = p.choice.plan
	return records, err
}

func (e *Engine) planPipeline(ctx context.Context, op *exec.Op, pl *pipeline.Pipeline, hint bson.Value, v *views, call *Call) (p plannedPipeline, err error) {
	view, err := v.open(ctx)
	if err != nil {
		return p, err
	}
	coll := view.Catalog().Collection(pl.NS)
	if err := call.Expected.check(pl.NS, coll, view.Catalog()); err != nil {
		return p, err
	}
	if err := call.checkSnapshot(coll); err != nil {
		return p, err
	}
	p.lead = pl.Leading()
	if stage, ok := pl.First().(*pipeline.GeoNear); ok {
		return e.planNear(ctx, op, view, pl, stage, hint, v, call)
	}
	q := planner.Query{Filter: p.lead.Filter, Interrupt: interruptOf(ctx), Collation: op.Parser.Collation, Env: op.Env, Order: orderOf(p.lead.Sort), Hint: hint, Limit: p.lead.Limit,
		TextScore: slices.Contains(p.lead.Needs.Meta, textScore)}
	if q.TextScore && q.Filter.Text() == nil {
		return p, noTextScore()
	}
	if op.TextScores && q.Filter.Text() != nil {
		p.lead.Needs.Meta = append(p.lead.Needs.Meta, textScore)
		q.TextScore = true
	}
	p.asked = exec.RecordMetaOf(p.lead.Needs.Meta)
	q.Skip, q.Counts, q.IDs = p.lead.Skip, true, p.asked.RecordID
	if sort, ok := pl.From(p.lead.Filtered).First().(*pipeline.Sort); ok && len(sort.Pattern.Meta()) == 0 {
		q.Sort, q.SortLimit, q.Memory = sort.Pattern, sort.Limit, op.SortMemory()
	}
	if p.asked == (exec.RecordMeta{}) {
		q.Express = planner.ExpressByField
	}
	p.choice = only(planner.Nothing())
	if r, ok := view.Collection(pl.NS); ok {
		if p.choice, err = e.chooseLeading(call, r, pl, p.lead, q); err != nil {
			return p, err
		}
		if p.choice.shape != nil {
			p.choice.shape = func() string {
				return aggregateShape(&language{collation: op.Parser.Collation}, p.lead, pl.From(p.lead.Filtered))
			}
		}
		p.src = &collSource{views: v, id: r.Catalog().ID, ns: pl.NS}
	}
	p.plan = p.choice.plan
	done := p.lead.Filtered
	if p.lead.Sort == nil || p.plan.Ordered {
		done = p.lead.Sorted
		if p.plan.Counted {
			done = p.lead.Counted
		}
	}
	p.rest = pl.From(done)
	return p, nil
}

// chooseLeading is the plan for what stands at the front of pl, out of keys where the stages behind read no more.
func (e *Engine) chooseLeading(call *Call, r *storage.Reader, pl *pipeline.Pipeline, lead pipeline.Leading, q planner.Query) (*choice, error) {
	if !lead.Needs.Whole && len(lead.Needs.Meta) == 0 {
		q.Fields, q.Projection = append([]string{}, lead.Needs.Fields...), fieldsSpec(lead.Needs.Fields)
	}
	if (lead.Distinct || lead.Firsts != "") && len(lead.Needs.Meta) == 0 && call.setting == nil {
		leaps := q
		if lead.Lasts { // they are the first ones the other way round
			leaps.Order = reversed(q.Order)
		}
		if plan, ok, err := e.chooseDistinct(r, leaps, lead.Firsts, lead.Lasts, false); ok || err != nil {
			return only(plan), err
		}
	}
	made, err := e.chooseSet(call, r, pl.NS, q, lead.Sort, nil)
	if err == nil && q.Fields != nil && len(q.Fields) == 0 {
		made.count()
	}
	return made, err
}

func reversed(order []planner.OrderField) (out []planner.OrderField) {
	for _, f := range order {
		out = append(out, planner.OrderField{Path: f.Path, Descending: !f.Descending})
	}
	return out
}

// fieldsSpec is the projection that leaves the fields alone.
func fieldsSpec(fields []string) bson.Doc {
	b, id := bson.Build(), int32(0)
	for _, path := range fields {
		if path == "_id" {
			id = 1
			continue
		}
		b.Int32(path, 1)
	}
	return b.Int32("_id", id).Doc()
}

// findOnView runs a find as a pipeline over what the view shows.
func (e *Engine) findOnView(ctx context.Context, f Find, call *Call) (*Running, error) {
	if f.Tailable {
		return nil, mongoerr.New(mongoerr.InvalidPipelineOperator, "Option tailable not supported in aggregation.")
	}
	stages, err := f.stages()
	if err != nil {
		return nil, err
	}
	return e.aggregate(ctx, Aggregate{NS: f.NS, Pipeline: stages, Hint: f.Hint}, call)
}

// stages is a find as a pipeline.
func (f *Find) stages() (bson.Value, error) {
	if f.ReturnKey || f.ShowRecordID || f.Min != nil || f.Max != nil {
		return bson.Missing, mongoerr.New(mongoerr.InvalidPipelineOperator, "Option not supported in aggregation: returnKey, showRecordId, min and max cannot be used on a view")
	}
	var stages []bson.Value
	add := func(b *bson.Builder) { stages = append(stages, b.Doc().Value()) }
	if !f.Filter.IsEmpty() {
		add(bson.Build().Document("$match", f.Filter))
	}
	if !f.Sort.IsEmpty() && f.Sort.Lookup("$natural").IsMissing() {
		add(bson.Build().Document("$sort", f.Sort))
	}
	if f.Skip > 0 {
		add(bson.Build().Int64("$skip", f.Skip))
	}
	if f.Limit > 0 {
		add(bson.Build().Int64("$limit", f.Limit))
	}
	if !f.Projection.IsEmpty() {
		add(bson.Build().Document("$project", f.Projection))
	}
	return bson.ArrayOf(stages...), nil
}
