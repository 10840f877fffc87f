package query

import (
	"bytes"
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/update"
)

// Update is one statement of an update.
type Update struct {
	NS           namespace.NS
	Filter       bson.Doc
	Change       bson.Value
	ArrayFilters []bson.Value
	Sort         bson.Doc
	Hint         bson.Value
	Multi        bool
	Upsert       bool
	// Insert is what an upsert inserts, nil when it is made of the query and the change.
	Insert bson.Doc
	// Constants are the values of c in {q, u, c}: variables of a pipeline update.
	Constants bson.Doc

	// scored says that what is done with the document found asks for its text score.
	scored bool
	// projected says that the document found is given back in a shape of its own.
	projected bool
}

// Updated is what an update did.
type Updated struct {
	Matched, Modified int64
	// UpsertedID is the _id of the document that was inserted, missing when none was.
	UpsertedID bson.Value
	// Before and After are the one document of a single update, when there was one; After also of an upsert.
	Before, After bson.Doc

	details *match.Details // of the match of Before
}

// Update changes the first matching document, or with Multi all of them. Documents that Multi changed before an error stay
// changed, and are counted in what is returned beside the error.
func (e *Engine) Update(ctx context.Context, u Update, call *Call) (Updated, error) {
	if call.ClusterTime == 0 {
		call.ClusterTime = e.ids.clusterTime(call.Now)
	}
	if before, done, err := call.Retry.before(u.NS, call.Statement); err != nil {
		return Updated{}, err
	} else if done {
		return before.updated(), nil
	}
	if err := checkSeriesUpdate(e.lookup(u.NS, call), &u); err != nil {
		return Updated{}, err
	}
	if u.Multi && call.Retry != nil {
		return Updated{}, mongoerr.New(mongoerr.InvalidOptions, "Cannot use (or request) retryable writes with multi=true")
	}
	if u.Multi {
		return e.updateMany(ctx, u, call)
	}
	if err := u.sortNaturally(); err != nil {
		return Updated{}, err
	}
	var done Updated
	err := e.writeOne(ctx, u.NS, u.Upsert, call, func(w *storage.Writer) (err error) {
		done, err = e.updateOne(ctx, w, u, call)
		return err
	})
	if missingCollection(err) {
		return Updated{}, e.checkUpdate(ctx, u, call)
	}
	if err != nil {
		return Updated{}, err
	}
	call.stage("UPDATE", done.Matched, done.Modified, done.upserted())
	return done, nil
}

// upserted is 1 when a document was inserted.
func (u *Updated) upserted() int64 {
	if u.UpsertedID.IsMissing() {
		return 0
	}
	return 1
}

// missingCollection says whether err is that there is no collection: a write to it finds nothing.
func missingCollection(err error) bool { return mongoerr.Is(err, mongoerr.NamespaceNotFound) }

// checkUpdate parses u for its errors alone.
func (e *Engine) checkUpdate(ctx context.Context, u Update, call *Call) error {
	lang, err := e.language(ctx, call, nil)
	if err != nil {
		return err
	}
	_, err = e.parseUpdate(lang, u, call)
	return err
}

func (e *Engine) writeOne(ctx context.Context, ns namespace.NS, create bool, call *Call, f func(*storage.Writer) error) error {
	if call.Expected != nil {
		return e.writeExpected(ctx, ns, create, call, f)
	}
	return e.write(ctx, ns, create, call, f)
}

// write runs f in a transaction of its own, or in the call's.
func (e *Engine) write(ctx context.Context, ns namespace.NS, create bool, call *Call, f func(*storage.Writer) error) error {
	o := storage.WriteOptions{Durability: call.Durability, Create: create, Now: call.Now, Committed: call.Committed, Patience: call.Patience, Keys: &call.Keys, Conflicts: call.Conflicts,
		Retry: call.Retry.of(call.Statement, call.image)}
	if call.Txn != nil {
		return call.Txn.Write(ctx, ns, o, f)
	}
	return e.Store.Write(ctx, ns, o, f)
}

// parsedUpdate is an update that is parsed: its condition, order and change.
type parsedUpdate struct {
	lang   *language
	filter *match.Filter // nil while nobody needs it; see condition
	order  *sortpattern.Pattern
	change *update.Update
}

func (e *Engine) parseUpdate(lang *language, u Update, call *Call) (*parsedUpdate, error) {
	lang.declare(u.Constants)
	allow := match.AllowAll
	if u.Upsert { // an inserted document would not say what of an expression it has to equal
		allow &^= match.AllowExpr
	}
	filter, err := lang.filterOf(e, u.Filter, allow)
	if u.Upsert && mongoerr.Is(err, mongoerr.QueryFeatureNotAllowed) {
		err = mongoerr.New(mongoerr.QueryFeatureNotAllowed, "$expr is not allowed in the query predicate for an upsert")
	}
	if err != nil {
		return nil, err
	}
	p, err := e.parseChange(lang, u, call)
	if err != nil {
		return nil, err
	}
	p.filter = filter
	return p, nil
}

// parseOne is parseUpdate for an update of one document, which puts off what may not be needed: a plain filter, which has no
// errors.
func (e *Engine) parseOne(lang *language, u Update, call *Call) (*parsedUpdate, error) {
	if _, plain := plainID(u.Filter); !plain {
		return e.parseUpdate(lang, u, call)
	}
	lang.declare(u.Constants)
	return e.parseChange(lang, u, call)
}

// parseChange parses all but the filter.
func (e *Engine) parseChange(lang *language, u Update, call *Call) (p *parsedUpdate, err error) {
	p = &parsedUpdate{lang: lang}
	if !u.Sort.IsEmpty() && (lang.collation != nil || !asksForID(u.Filter)) {
		if p.order, err = sortpattern.Parse(u.Sort); err != nil {
			return nil, err
		}
	}
	lang.exprs.Defer(true) // a pipeline is not worth computing before there is a document
	defer lang.exprs.Defer(false)
	p.change, err = e.updates.Parse(u.Change, update.Options{ArrayFilters: u.ArrayFilters, Multi: u.Multi, Collation: lang.collation,
		Exprs: lang.exprs, Scope: lang.scope, BypassEmptyTimestamps: call.KeepTimestamps,
		IsStage: func(name string) bool { return e.stages[name] != nil }})
	return p, err
}

// CheckStageNames refuses a pipeline with a stage of no name, or of one that no stage has.
func (e *Engine) CheckStageNames(stages bson.Value) error {
	for it := stages.Doc().Iter(); it.Next(); {
		switch stage := it.Value().Doc(); {
		case stage.Count() != 1:
			return mongoerr.New(40323, "A pipeline stage specification object must contain exactly one field.")
		case e.stages[stage.FirstKey()] == nil:
			return mongoerr.New(40324, "Unrecognized pipeline stage name: '%s'", strings.Clone(stage.FirstKey()))
		}
	}
	return nil
}

// condition is u's filter, parsed by now.
func (p *parsedUpdate) condition(e *Engine, u Update) (*match.Filter, error) {
	if p.filter != nil {
		return p.filter, nil
	}
	return p.lang.filter(e, u.Filter)
}

// telling is how the oplog tells of an update, if it does.
func telling(w *storage.Writer, u *update.Update) (how oplog.Telling) {
	if !w.Logs() {
		return how
	}
	switch u.Kind() {
	case update.Replacement:
		how.Form = oplog.Whole
	case update.Pipeline:
		how.Form = oplog.Shorter
	default:
		how.Aim = u.Aims()
	}
	return how
}

func (e *Engine) updateArgs(p *parsedUpdate, call *Call, details *match.Details) update.Args {
	seconds, increment := e.ids.timestamp(call.Now)
	return update.Args{Now: call.Now, Timestamp: uint64(seconds)<<32 | uint64(increment), Details: details, Env: p.lang.env}
}

func (e *Engine) updateOne(ctx context.Context, w *storage.Writer, u Update, call *Call) (Updated, error) {
	lang, err := e.language(ctx, call, w.Catalog())
	if err != nil {
		return Updated{}, err
	}
	p, err := e.parseOne(lang, u, call)
	if err != nil {
		return Updated{}, err
	}
	rec, details, found, err := e.first(ctx, w, search{u.Filter, p.filter, p.order, u.Hint, u.scored, u.express()}, lang, call)
	if err != nil {
		return Updated{}, err
	}
	check, err := e.validator(ctx, w.Catalog(), call)
	if err != nil {
		return Updated{}, err
	}
	if !found {
		if !u.Upsert {
			return Updated{}, nil
		}
		return e.upsert(w, u, p, check, call)
	}
	done := Updated{Matched: 1, Before: rec.Doc, details: details}
	after, changed, err := p.change.Apply(nil, rec.Doc, e.updateArgs(p, call, details))
	if err != nil {
		return Updated{}, err
	}
	done.After = after
	if !changed && (p.change.Kind() != update.Replacement || bytes.Equal(u.Change.Data, rec.Doc)) {
		return done, nil
	}
	if err := check.change(rec.Doc, after); err != nil { // also of a document that is put in the place of its like without its _id in front
		return Updated{}, err
	}
	if changed {
		if _, changed, err = w.UpdateAs(telling(w, p.change), rec, after); err != nil {
			return Updated{}, err
		}
	}
	if changed || p.change.Kind() == update.Replacement {
		done.Modified = 1
	}
	return done, nil
}

func (e *Engine) upsert(w *storage.Writer, u Update, p *parsedUpdate, check validation, call *Call) (Updated, error) {
	doc := u.Insert
	if doc == nil {
		filter, err := p.condition(e, u)
		if err != nil {
			return Updated{}, err
		}
		seed, err := p.change.UpsertSeed(filter)
		if err != nil {
			return Updated{}, err
		}
		args := e.updateArgs(p, call, nil)
		args.Insert = true
		if doc, _, err = p.change.Apply(nil, seed, args); err != nil {
			return Updated{}, err
		}
	}
	supplied := u.Insert != nil // stands for a replacement; in any other the change has filled timestamps or means them
	doc, err := e.insertable(doc, call.Now, !supplied || call.KeepTimestamps)
	if err != nil {
		return Updated{}, err
	}
	if err := check.document(doc); err != nil {
		return Updated{}, err
	}
	if _, err := w.Insert(doc); err != nil {
		return Updated{}, err
	}
	return Updated{UpsertedID: doc.Lookup("_id").Clone(), After: doc.Clone()}, nil
}

// express says whether u may be told as an express plan: MongoDB has none that inserts or projects.
func (u *Update) express() planner.ExpressMode { return expressWrite(!u.Upsert && !u.projected) }

// search is which document a write wants.
type search struct {
	condition bson.Doc
	filter    *match.Filter        // condition, parsed; nil where that was put off
	order     *sortpattern.Pattern // nil: any
	hint      bson.Value
	scored    bool // its text score is asked for, not only by the order
	express   planner.ExpressMode
}

func (s *search) query(l *language) planner.Query {
	return planner.Query{Filter: s.filter, Interrupt: l.interrupted, Collation: l.collation, Order: orderOf(s.order), Hint: s.hint, TextScore: s.scored || sortsByScore(s.order), Express: s.express}
}

// enough is how many records a race of plans has to find for a write of one: all of them where they may have to be sorted.
func enough(order *sortpattern.Pattern) int64 {
	if order == nil {
		return 1
	}
	return 0
}

// first finds the first matching record that w sees, in order when one is given.
func (e *Engine) first(ctx context.Context, w *storage.Writer, s search, lang *language, call *Call) (storage.Record, *match.Details, bool, error) {
	call.Executing = false // a commit that is tried again looks again
	if id, plain := plainID(s.condition); plain && s.order == nil && s.hint.IsMissing() && !s.scored && lang.collation == nil && e.straight(w.Reader) {
		call.Executing = true
		rec, found, err := e.byID(w.Reader, id, s.express == planner.NeverExpress, call)
		return rec.Clone(), &match.Details{Position: -1}, found, err
	}
	if s.filter == nil {
		var err error
		if s.filter, err = lang.filter(e, s.condition); err != nil {
			return storage.Record{}, nil, false, err
		}
	}
	q := s.query(lang)
	q.Limit = 1
	choice, err := e.choose(w.Reader, q, s.order, nil)
	if err != nil {
		return storage.Record{}, nil, false, err
	}
	details := &match.Details{}
	if choice.plan.Filter == nil {
		details.Position = -1
	}
	records, err := choice.open(ctx, e, call, exec.Opening{Source: fixed{w.Reader}, Env: lang.env, Seen: &call.Seen, Details: details, Enough: enough(s.order)})
	if err != nil {
		return storage.Record{}, nil, false, err
	}
	defer records.Close()
	call.Executing = true
	if choice.plan.Ordered {
		rec, ok, err := records.NextRecord(ctx)
		details.Score, details.Scored = records.Score()
		return rec.Clone(), details, ok, err
	}
	return least(ctx, records, details, s.order, lang)
}

// least is the first record in order.
func least(ctx context.Context, records *exec.Records, details *match.Details, order *sortpattern.Pattern, lang *language) (best storage.Record, bestDetails *match.Details, found bool, err error) {
	var bestKey []bson.Value
	var c bson.Collator
	if lang.collation != nil {
		c = lang.collation
	}
	for {
		rec, ok, err := records.NextRecord(ctx)
		if err != nil || !ok {
			return best, bestDetails, found, err
		}
		rec = rec.Clone()
		details.Score, details.Scored = records.Score()
		key, err := order.Key(nil, rec.Doc, metadata(details), c, lang.interrupted)
		if err != nil {
			return best, bestDetails, found, err
		}
		if !found || order.Compare(key, bestKey, c) < 0 {
			d := *details
			best, bestKey, bestDetails, found = rec, key, &d, true
		}
	}
}

func (e *Engine) updateMany(ctx context.Context, u Update, call *Call) (done Updated, err error) {
	defer func() { call.stage("UPDATE", done.Matched, done.Modified, done.upserted()) }()
	var p *parsedUpdate
	var check validation // of the collection as coll has it
	var coll *catalog.Collection
	walk := func(w *storage.Writer, rec storage.Record, details *match.Details) (err error) {
		done.Matched++
		if now := w.Catalog(); now != coll {
			if check, err = e.validator(ctx, now, call); err != nil {
				return err
			}
			coll = now
		}
		after, changed, err := p.change.Apply(nil, rec.Doc, e.updateArgs(p, call, details))
		if err != nil {
			return err
		}
		if changed {
			if err := check.change(rec.Doc, after); err != nil {
				return err
			}
			if _, changed, err = w.UpdateAs(telling(w, p.change), rec, after); err != nil {
				return err
			}
		}
		if changed {
			done.Modified++
		}
		return nil
	}
	many := &writeMany{engine: e, ns: u.NS, hint: u.Hint, express: u.express(), call: call, each: walk,
		save: func() (undo func()) { was := done; return func() { done = was } }}
	found, err := many.run(ctx, func(lang *language) (*match.Filter, error) {
		var err error
		if p, err = e.parseUpdate(lang, u, call); err != nil {
			return nil, err
		}
		return p.filter, nil
	})
	if err != nil || found || !u.Upsert {
		return done, err
	}
	one := u
	one.Multi = false
	err = e.writeOne(ctx, u.NS, true, call, func(w *storage.Writer) (err error) {
		done, err = e.updateOne(ctx, w, one, call)
		return err
	})
	return done, err
}
