package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/projection"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
)

// Find is what a find asks for.
type Find struct {
	NS                       namespace.NS
	Filter, Sort, Projection bson.Doc
	Hint                     bson.Value
	Min, Max                 bson.Doc
	Skip, Limit              int64
	ReturnKey, ShowRecordID  bool
	// Tailable has the end of a capped collection be no end.
	Tailable bool
	// Batched says that the client asks for batches of some size.
	Batched bool
}

// prepared is a find that is parsed and planned but not opened.
type prepared struct {
	Find
	call    *Call
	lang    *language
	coll    *catalog.Collection // nil: there is no such collection
	filter  *match.Filter
	order   *sortpattern.Pattern
	project *projection.Projection
	asked   exec.RecordMeta
	choice  *choice
	plan    *planner.Plan // the choice's
	views   *views
	// counted has the iterators count, for explain; the first count is of the records found.
	counted bool
	// counting: only how many documents there are is asked, up to enough when that is not 0.
	counting bool
	enough   int64
	// distinct is the path whose values are asked for, nothing else; "" when it is not so.
	distinct string
}

// Find opens a find. The caller closes what it returns, whose documents are valid until the next one is asked for, or until it is
// parked.
func (e *Engine) Find(ctx context.Context, f Find, call *Call) (*Running, error) {
	e.settle(call, f.NS, func() string { return findShape("find", f, call) })
	r, err := e.find(ctx, f, call)
	if err != nil {
		return nil, err
	}
	r.lend()
	return r, nil
}

// find is Find with what is set for the operation known.
func (e *Engine) find(ctx context.Context, f Find, call *Call) (*Running, error) {
	if err := call.rejected(); err != nil {
		return nil, err
	}
	if series := e.catalog(call).BehindBuckets(f.NS); series != nil {
		return e.findBuckets(ctx, f, call, series)
	}
	if coll := e.lookup(f.NS, call); coll != nil && coll.IsView() {
		call.OnView = true
		return e.findOnView(ctx, f, call)
	}
	p, err := e.prepare(ctx, f, call)
	if err != nil {
		return nil, err
	}
	return e.open(ctx, p)
}

// prepare parses f and chooses its plan.
func (e *Engine) prepare(ctx context.Context, f Find, call *Call) (*prepared, error) {
	return e.prepareFor(ctx, &prepared{Find: f, call: call})
}

// prepareFor is prepare with what is asked of the documents said by p.
func (e *Engine) prepareFor(ctx context.Context, p *prepared) (*prepared, error) {
	f, call := p.Find, p.call
	p.views = e.views(call)
	view, err := p.views.open(ctx)
	if err != nil {
		return nil, err
	}
	coll := view.Catalog().Collection(f.NS)
	err = call.Expected.check(f.NS, coll, view.Catalog())
	if err == nil {
		err = call.checkSnapshot(coll)
	}
	if err == nil {
		err = p.parse(ctx, e, coll)
	}
	if err != nil {
		p.views.release()
		return nil, err
	}
	if p.coll == nil {
		p.choice = only(planner.Nothing())
		return p, nil
	}
	r, ok := view.CollectionByID(p.coll.ID)
	if !ok {
		p.views.release()
		return nil, notOnView(f.NS)
	}
	if f.Tailable {
		err = p.chooseTail(describe(r))
	} else {
		p.choice, err = p.choose(e, r)
	}
	if err != nil {
		p.views.release()
		return nil, err
	}
	return p, nil
}

// choose finds the plan for what is asked.
func (p *prepared) choose(e *Engine, r *storage.Reader) (*choice, error) {
	q := p.query()
	switch {
	case p.counting:
		q.Fields = []string{}
	case p.distinct != "":
		q.Fields, q.Projection = []string{p.distinct}, bson.Build().Int32("_id", 0).Int32(p.distinct, 1).Doc()
		if p.call.setting == nil {
			if plan, ok, err := e.chooseDistinct(r, q, "", false, true); ok || err != nil {
				return only(plan), err
			}
		}
	}
	made, err := e.chooseSet(p.call, r, p.NS, q, p.order, p.Projection)
	if err == nil && p.counting {
		made.count()
	}
	return made, err
}

func (p *prepared) parse(ctx context.Context, e *Engine, coll *catalog.Collection) (err error) {
	p.coll = coll
	if p.lang, err = e.language(ctx, p.call, coll); err != nil {
		return err
	}
	if p.filter, err = p.lang.filter(e, p.Filter); err != nil {
		return err
	}
	if coll != nil && coll.IsTimeSeries() && p.filter.Near() != nil {
		return mongoerr.New(5626500, "$near and $nearSphere are not supported on time-series collections; use the aggregation stage $geoNear instead")
	}
	if !sameFields(p.Min, p.Max) {
		return mongoerr.New(51176, "min and max must have the same field names")
	}
	if !p.Sort.IsEmpty() {
		if err = p.parseSort(); err != nil {
			return err
		}
	}
	if !p.Projection.IsEmpty() {
		p.project, err = e.projections.Parse(p.Projection, projection.Options{Mode: projection.Find, Exprs: p.lang.exprs, Scope: p.lang.scope, Collation: p.lang.collation, Filter: p.filter.Source})
		if err != nil {
			return err
		}
	}
	if p.scored() && p.filter.Text() == nil {
		return noTextScore()
	}
	return p.askOfRecords(e)
}

// askOfRecords notes what the projection asks of records besides their fields. Of one beside returnKey that is all that counts.
func (p *prepared) askOfRecords(e *Engine) (err error) {
	if p.project != nil {
		p.asked = exec.RecordMetaOf(p.project.Dependencies().Meta)
	}
	if p.asked.SortKey && p.Sort.IsEmpty() {
		return mongoerr.New(mongoerr.BadValue, "cannot use sortKey $meta projection without a sort")
	}
	if !p.ReturnKey {
		return nil
	}
	p.asked.IndexKey, p.asked.RecordID, p.project = true, false, nil
	if p.asked.SortKey {
		p.project, err = e.projections.Parse(sortKeysOf(p.Projection), projection.Options{Mode: projection.Find, Exprs: p.lang.exprs})
	}
	return err
}

func (p *prepared) parseSort() error {
	sort, hint, err := sortNaturally(p.Sort, p.Hint)
	if err != nil {
		return err
	}
	if p.Hint = hint; sort.IsEmpty() {
		return nil
	}
	if p.order, err = sortpattern.Parse(sort); err == nil && p.call.Stable {
		err = expr.CheckStableMeta(p.order.Meta()...)
	}
	return err
}

// sortKeysOf is what of a projection asks for the sort key.
func sortKeysOf(project bson.Doc) bson.Doc {
	b := bson.Build()
	for it := project.Iter(); it.Next(); {
		if v := it.Value(); v.Type == bson.TypeObject && v.Doc().Lookup("$meta").Type == bson.TypeString && v.Doc().Lookup("$meta").Str() == "sortKey" {
			b.Value(it.Key(), v)
		}
	}
	return b.Doc()
}

func (p *prepared) query() planner.Query {
	q := planner.Query{Filter: p.filter, Interrupt: p.lang.interrupted, Collation: p.lang.collation, Hint: p.Hint, Min: p.Min, Max: p.Max, Limit: p.Limit}
	q.Order, q.TextScore = orderOf(p.order), p.scored()
	q.Skip, q.Counts, q.Express = p.Skip, true, p.express()
	if p.order != nil && len(p.order.Meta()) == 0 {
		q.Sort, q.Memory, q.IDs = p.order, exec.DefaultMaxMemory, p.ShowRecordID || p.asked.RecordID
	}
	if p.project != nil && !p.ReturnKey {
		if d := p.project.Dependencies(); !d.Whole && len(d.Meta) == 0 {
			q.Fields, q.Projection = append([]string{}, d.Fields...), p.Projection
		}
	}
	return q
}

// orderOf is a sort as the planner takes it. A sort by metadata has no path that any index could serve.
func orderOf(p *sortpattern.Pattern) []planner.OrderField {
	if p == nil {
		return nil
	}
	var fields []planner.OrderField
	for _, part := range p.Parts {
		if part.Meta != "" {
			fields = append(fields, planner.OrderField{Path: "\x00meta"})
			continue
		}
		fields = append(fields, planner.OrderField{Path: part.Path.String(), Descending: part.Desc})
	}
	return fields
}

// open puts the iterators of a prepared find together: records, sort, skip, limit, projection. Where it fails, by a panic too, it lets go of the store.
func (e *Engine) open(ctx context.Context, p *prepared) (*Running, error) {
	r := e.newRunning(p.NS.DB, p.call, p.lang, p.views)
	opened := false
	defer func() {
		if !opened {
			r.memory.Close()
			p.views.release()
		}
	}()
	src := exec.Source(nil)
	if p.coll != nil {
		src = &collSource{views: p.views, id: p.coll.ID, ns: p.NS}
	}
	records, err := p.choice.open(ctx, e, p.call, exec.Opening{Source: src, Env: p.lang.env, Seen: r.Seen, Op: r.op, Enough: p.enough, IndexKeys: p.asked.IndexKey})
	if err != nil {
		return nil, err
	}
	p.plan, r.PlanSummary = p.choice.plan, p.call.PlanSummary
	p.call.execution.find, p.call.execution.op = p, r.op
	_, r.Empty = p.plan.Root.(*planner.EOF)
	r.Sorted = p.plan.Sorts() || p.order != nil && !p.plan.Ordered
	r.op.Leaf(records)
	r.records = records
	if p.Tailable && p.coll != nil {
		records.Tail()
		r.tail = &tail{store: e.Store, collection: p.coll.ID, tailing: records.Tailing}
	}
	r.Iterator = records
	if p.ShowRecordID {
		r.Iterator = &withRecordID{records: records}
	}
	if p.counted {
		leaf := &exec.Counted{Iterator: r.Iterator}
		r.op.Explain, r.op.Counts, r.Iterator = true, append(r.op.Counts, leaf), leaf
	}
	r.Iterator = exec.WithDistance(r.op, p.plan, nil, exec.WithScore(r.op, p.plan, records, r.Iterator))
	sorted := p.order
	if !p.plan.Ordered {
		sorted = nil
	}
	r.Iterator = exec.WithRecordMeta(r.op, p.asked, records, sorted, r.Iterator)
	tail, err := p.tail()
	if err != nil {
		return nil, err
	}
	if len(tail) > 0 {
		pl, err := r.op.Parser.ParseDocs(tail, pipeline.Options{NS: p.NS, Scope: p.lang.scope})
		if err != nil {
			return nil, err
		}
		if r.Iterator, err = exec.Build(r.op, pl, r.Iterator); err != nil {
			return nil, err
		}
	}
	if p.project != nil || p.ReturnKey || p.ShowRecordID {
		env := p.lang.exprs.NewEnv()
		it := &projected{in: r.Iterator, p: p, env: env}
		if r.Iterator == exec.Iterator(records) && p.project != nil && !p.ReturnKey && p.project.Plain() {
			it.direct = records
		}
		env.Meta = r.op.Meta.Get
		r.Iterator = it
	}
	opened = true
	return r, nil
}

// tail is what is left to do behind the plan, as stages.
func (p *prepared) tail() ([]bson.Doc, error) {
	var stages []bson.Doc
	if p.order != nil && !p.plan.Ordered {
		stages = append(stages, bson.Build().Document("$sort", p.Sort).Doc())
	}
	if p.plan.Counted {
		return stages, nil
	}
	if p.Skip > 0 {
		stages = append(stages, bson.Build().Int64("$skip", p.Skip).Doc())
	}
	if p.Limit > 0 {
		stages = append(stages, bson.Build().Int64("$limit", p.Limit).Doc())
	}
	return stages, nil
}

// newRunning is an operation that still lacks its iterators.
func (e *Engine) newRunning(db string, call *Call, lang *language, v *views) *Running {
	op := &exec.Op{DB: db, Now: call.Now, MaxMemory: exec.DefaultMaxMemory, AllowDiskUse: call.AllowDiskUse, TempDir: e.TempDir,
		Parser: e.pipelineParser(lang), Env: lang.env}
	op.Catalog = &stageCatalog{engine: e, call: call, lang: lang, views: v}
	r := &Running{op: op, views: v, lang: lang, Seen: &call.Seen}
	r.memory.Open(e.Memory, memory.Operators)
	op.Memory = &r.memory
	return r
}

// recordIDField carries a record id behind a document's fields from the leaf to the projection.
const recordIDField = "$recordId"

type withRecordID struct {
	records *exec.Records
	buf     []byte
}

func (w *withRecordID) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := w.records.Next(ctx)
	if doc == nil || err != nil {
		return nil, err
	}
	w.buf = bson.BuildOn(w.buf[:0]).Fields(doc).Value(recordIDField, w.records.Record().ID.Value()).Bytes()
	return w.buf, nil
}

func (w *withRecordID) Close() error { return w.records.Close() }

// projected applies a find's projection, last of all.
type projected struct {
	in  exec.Iterator
	p   *prepared
	env *expr.Env
	// direct is in, where a document made of an index key has what the projection takes and nothing else; or nil.
	direct *exec.Records
	buf    []byte
	out    []byte
}

func (it *projected) Next(ctx context.Context) (bson.Doc, error) {
	doc, err := it.in.Next(ctx)
	if doc == nil || err != nil || it.direct != nil && it.direct.FromKey() {
		return doc, err
	}
	id := bson.Missing
	if it.p.ShowRecordID {
		id = doc.Lookup(recordIDField)
		doc = without(doc, recordIDField)
	}
	if it.p.ReturnKey {
		doc, id = it.key(), bson.Missing // which is told without an id
	}
	if it.p.project != nil {
		if doc, err = it.apply(doc); err != nil {
			return nil, err
		}
	}
	if !id.IsMissing() {
		it.out = bson.BuildOn(it.out[:0]).Fields(doc).Value(recordIDField, id).Bytes()
		doc = it.out
	}
	return doc, nil
}

func (it *projected) apply(doc bson.Doc) (bson.Doc, error) {
	var details *match.Details
	if it.p.project.Positional() {
		details = &match.Details{}
		if _, err := it.p.filter.MatchDetails(it.p.lang.env, doc, details); err != nil {
			return nil, err
		}
	}
	out, err := it.p.project.Apply(it.buf[:0], doc, it.env, details)
	if err == nil {
		err = exec.CheckDepth(out)
	}
	if err != nil {
		return nil, err
	}
	it.buf = out
	return out, nil
}

func (it *projected) Close() error { return it.in.Close() }

// key is the index key by which the document was found, {} without an index.
func (it *projected) key() bson.Doc {
	if v := it.env.Meta("indexKey"); v.Type == bson.TypeObject {
		return v.Doc()
	}
	return bson.EmptyDoc
}

func without(doc bson.Doc, name string) bson.Doc {
	b := bson.BuildOn(make([]byte, 0, len(doc)))
	for it := doc.Iter(); it.Next(); {
		if it.Key() != name {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Doc()
}

// sameFields says whether a and b name the same fields in the same order; empty ones name what the other does.
func sameFields(a, b bson.Doc) bool {
	if a.IsEmpty() || b.IsEmpty() {
		return true
	}
	at, bt := a.Iter(), b.Iter()
	for {
		more := at.Next()
		if bt.Next() != more {
			return false
		}
		if !more || at.Key() != bt.Key() {
			return !more
		}
	}
}
