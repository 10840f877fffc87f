// Package query runs reads and writes over namespaces: it finds the collection or resolves the view, has the query parsed
// and planned, and pulls documents through the plan or changes them. Commands are its callers; it knows nothing of how they
// are spelled or answered.
package query

import (
	"context"
	"crypto/rand"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/changestream"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/projection"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/update"
)

// Engine runs queries over one store.
type Engine struct {
	Store *storage.Store
	// DDL changes the store's indexes and options of collections.
	DDL *indexddl.DDL
	// TempDir is where stages spill to.
	TempDir string
	// Memory is what operations take theirs from; nil: they take what they like.
	Memory *memory.Governor
	// Server answers the stages that look at the server itself ($currentOp …).
	Server ServerStages
	// Plans are the plans remembered and the index filters set.
	Plans plancache.Caches
	// Settings are what is set for queries by their shape.
	Settings Settings
	// Scripts is where JavaScript runs; nil refuses it.
	Scripts *javascript.Engine
	// NoTableScan says whether queries need an index; nil: they do not.
	NoTableScan func() bool
	// Streams counts what change streams do.
	Streams changestream.Counts

	filters     *match.Parser
	projections *projection.Parser
	updates     *update.Parser
	stages      pipeline.Table
	ids         ids
	uses        indexUses
}

// ServerStages gives what stages such as $currentOp look at.
type ServerStages interface {
	// Documents are the results of the stage name with the argument spec on ns.
	Documents(ctx context.Context, ns namespace.NS, name string, spec bson.Value) ([]bson.Doc, error)
}

// New returns an Engine over store, whose indexes ddl changes; their partial filters are read by filters, which it shares.
func New(store *storage.Store, ddl *indexddl.DDL, filters *match.Parser) *Engine {
	e := &Engine{Store: store, DDL: ddl, filters: filters}
	e.projections = projection.NewParser(filters)
	e.updates = update.NewParser(filters, e.projections)
	e.stages = pipeline.NewTable()
	e.uses.started = store.Now()
	_, _ = rand.Read(e.ids.process[:]) // never fails
	return e
}

// pipelineParser reads pipelines in l.
func (e *Engine) pipelineParser(l *language) *pipeline.Parser {
	return pipeline.NewParser(e.stages, l.exprs, e.filters, e.projections, l.collation)
}

// Call is what one command brings to all that it parses, evaluates and writes.
type Call struct {
	// Now is the operation's one time in milliseconds since the epoch.
	Now int64
	// Collation is what the command asked for; Collated says that it asked, so that a nil Collation is the simple one.
	Collation *collation.Collation
	Collated  bool
	// Server answers the stages that look at the server, in the place of the engine's; nil for that.
	Server ServerStages
	// Let defines variables.
	Let          bson.Doc
	AllowDiskUse bool
	// Durability is that of each commit; Committed, unless nil, is given the number of the last one.
	Durability kv.Durability
	Committed  *uint64
	// Patience is how long commits are waited for that others have to have first; nil: as long as need be.
	Patience *kv.Patience
	// Txn is the transaction of several statements that the call is one of; nil: it is none of any.
	Txn *storage.Txn
	// Past is the state that is read in the place of the present; nil for that. Snapshot says that the level of the read concern is "snapshot", of the transaction's
	// in one.
	Past     *storage.Past
	Snapshot bool
	// Retry is the retryable write that the call is of, nil for none, and Statement which of its statements it is, or the first of
	// several.
	Retry     *Retry
	Statement int
	Seen      exec.Examined
	// Keys counts what was put into indexes and taken out.
	Keys indexwrite.KeyCount
	// Conflicts, unless nil, counts how often other writes were in the way.
	Conflicts *atomic.Int64
	// NoNow and Definition say that expressions have no $$NOW, $$CLUSTER_TIME and $$USER_ROLES, or are kept for later; see expr.Options.
	NoNow, Definition bool
	// Validator says that expressions are a validator's, see expr.Options.
	Validator bool
	// Stable refuses what is outside of the first version of the stable API.
	Stable bool
	// ClusterTime is $$CLUSTER_TIME, the seconds in its upper half; 0 where there is none.
	ClusterTime uint64
	// UserRoles is $$USER_ROLES; Missing where there is none.
	UserRoles bson.Value
	// Globals are variables that JavaScript sees.
	Globals bson.Doc
	// Bypass skips the collection's validator.
	Bypass bool
	// KeepTimestamps leaves empty timestamps of what is inserted or put in the place of another document as they are.
	KeepTimestamps bool
	// Expected, unless nil, is the collection that the client means.
	Expected *Expected
	// PlanSummary is set to what the (last) plan is called, and Told, unless nil, is told of it when it is chosen.
	PlanSummary string
	Told        interface{ SetPlanSummary(string) }
	// OnView is set when what was read is a view.
	OnView bool
	// Executing is set when the plan of a write or of a distinct is run: an error is then one of that.
	Executing bool

	// image is what is kept of the document that a retryable write changes.
	image oplog.Image
	// setting is what is set for the operation; nil: nothing.
	setting   *Setting
	execution execution
}

// patiently is ctx for changes of definitions that the call waits for as long as for its writes.
func (c *Call) patiently(ctx context.Context) context.Context {
	if c.Patience == nil {
		return ctx
	}
	return kv.WithPatience(ctx, c.Patience)
}

// chose notes the plan that an operation goes by.
func (e *Engine) chose(c *Call, p *planner.Plan) {
	c.PlanSummary = p.Summary()
	if c.Told != nil {
		c.Told.SetPlanSummary(c.PlanSummary)
	}
	e.uses.add(p)
}

// language is a Call's share of the language: expressions that know its time and variables.
type language struct {
	exprs     *expr.Parser
	scope     *expr.Scope
	env       *expr.Env
	collation *collation.Collation
	ctx       context.Context
	engine    *Engine
	// db is where StoredScripts are looked for, at now.
	db  string
	now int64
}

// language prepares parsing and evaluation against coll, which may be nil.
func (e *Engine) language(ctx context.Context, c *Call, coll *catalog.Collection) (*language, error) {
	l := &language{ctx: ctx, collation: c.Collation, engine: e, now: c.Now}
	if !c.Collated && coll != nil && coll.Options.Collation != nil {
		def, err := collation.Parse(coll.Options.Collation)
		if err != nil {
			return nil, err
		}
		l.collation = def
	}
	opts := expr.Options{Scripts: e.Scripts, Now: c.Now, NoNow: c.NoNow, ClusterTime: c.ClusterTime, UserRoles: c.UserRoles, Definition: c.Definition, Validator: c.Validator, Stable: c.Stable, Globals: c.Globals, Interrupt: l.interrupted}
	if l.collation != nil {
		opts.Collation = l.collation
	}
	if coll != nil && coll.NS.Coll != storedScripts {
		l.db, opts.Stored = coll.NS.DB, l
	}
	l.exprs = expr.NewParser(opts)
	var err error
	if l.scope, err = l.exprs.Let(c.Let, nil); err != nil {
		return nil, err
	}
	l.env = l.exprs.NewEnv()
	return l, nil
}

// declare makes constants variables.
func (l *language) declare(constants bson.Doc) {
	for it := constants.Iter(); it.Next(); {
		l.scope = l.scope.Constant(string([]byte(it.Key())), it.Value().Clone())
	}
}

func (l *language) interrupted() error { return interruptOf(l.ctx)() }

// interruptOf tells why ctx has ended, nil while it has not.
func interruptOf(ctx context.Context) func() error {
	return func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
}

func (l *language) filter(e *Engine, doc bson.Doc) (*match.Filter, error) {
	return l.filterOf(e, doc, match.AllowAll)
}

func (l *language) filterOf(e *Engine, doc bson.Doc, allow match.Feature) (*match.Filter, error) {
	if doc == nil {
		doc = bson.EmptyDoc
	}
	return e.filters.Parse(doc, match.Options{Collation: l.collation, Exprs: l.exprs, Scope: l.scope, Allow: allow})
}

// describe is what the planner has to know of the collection.
func describe(r *storage.Reader) planner.Collection {
	coll := r.Catalog()
	c := planner.Collection{Unkeyed: coll.IsTimeSeries(), Hides: r.Hides()}
	if coll.Options.Collation != nil && (!coll.IsClustered() || coll.CollatedIDs) {
		c.Collation, _ = collation.Parse(coll.Options.Collation) // create found it good
	}
	if coll.IsClustered() {
		c.Clustered = index.OfRecords(coll.Options.Clustered.Name, c.Collation)
	}
	if coll.IsOplog() {
		c.RecordAt = func(ts uint64) []byte { return layout.SequenceID(ts) }
	}
	for _, d := range coll.Indexes {
		c.Indexes = append(c.Indexes, planner.Index{Definition: d, Multikey: r.Multikey(d), Paths: r.MultikeyPaths(d)})
	}
	return c
}

// catalog is the catalogue that the call goes by: the server's, what its transaction sees of it, or that of the state of before which it reads.
func (e *Engine) catalog(call *Call) *catalog.Catalog {
	switch {
	case call.Txn != nil:
		return call.Txn.View().Catalog()
	case call.Past != nil:
		return call.Past.State.Catalog()
	}
	return e.Store.Catalog()
}

// lookup is the collection's or view's entry in the catalogue, nil when there is none.
func (e *Engine) lookup(ns namespace.NS, call *Call) *catalog.Collection {
	return lookup(e.catalog(call), ns)
}

func lookup(c *catalog.Catalog, ns namespace.NS) *catalog.Collection {
	coll := c.Collection(ns)
	switch {
	case coll != nil:
		return coll
	case ns.Coll == systemViews:
		return viewsOf(c, ns)
	}
	return bucketsOf(c, ns)
}

// checkSnapshot refuses collections that have no past, and so cannot be read with the level "snapshot".
func (c *Call) checkSnapshot(coll *catalog.Collection) error {
	switch {
	case !c.Snapshot || coll == nil:
		return nil
	case coll.NS == catalog.PreImagesNS:
		return mongoerr.New(7829600, "Reading with readConcern snapshot from pre-images collection is not supported")
	case coll.Options.Capped:
		return mongoerr.New(mongoerr.SnapshotUnavailable, "Reading from capped collections with readConcern snapshot is not supported")
	case coll.NS == catalog.TransactionsNS:
		return mongoerr.New(5557800, "Snapshot reads and causal consistent majority reads on config.transactions are not supported")
	}
	return nil
}

func notOnView(ns namespace.NS) error {
	return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
}

// canonical appends bytes that are the same for values that compare equal.
func (l *language) canonical(dst []byte, v bson.Value) []byte {
	if l.collation != nil {
		return bson.AppendCanonical(dst, v, l.collation)
	}
	return bson.AppendCanonical(dst, v, nil)
}
