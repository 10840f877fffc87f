package ttl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

var (
	// errGone ends a visit whose collection is not where it was, or whose rule is no more.
	errGone = errors.New("ttl: the collection or its TTL has gone")
	// errBlocked ends a visit because users' writes are blocked.
	errBlocked = errors.New("ttl: user writes are blocked")
	// errHeld ends a pass because nothing is to be deleted any more.
	errHeld = errors.New("ttl: expiry is held")
)

// maxFailures is how many documents that cannot be deleted a visit passes over before it gives up.
const maxFailures = 10

// visit is one under way.
type visit struct {
	*pass
	target   Target
	progress *progress
	ns       namespace.NS
	rule     policy.Rule
	op       *operation.Operation
	started  time.Time
	// careful is how many records to delete one by one, because together they failed.
	careful  int
	failures int
	failure  error
	sweeping bool // a sweep has left some for the next
	done     Visit
	bytes    int64
}

// visit deletes what the target has due, within the bounds of a visit. The error is one that ends the pass.
func (p *pass) visit(ctx context.Context, t Target) (more bool, err error) {
	s := &visit{pass: p, target: t, progress: p.of(t), started: p.clock.Now()}
	defer func() {
		if r := recover(); r != nil { // its transaction is rolled back; the next targets shall not suffer
			s.done.Err = fmt.Errorf("ttl: panic: %v", r)
			p.log.Error("TTL: a visit panicked", "namespace", s.ns.String(), "index", s.done.Index, "panic", serverlog.Panic(r), serverlog.Stack())
			p.noteVisit(t, s.done)
			p.visited[t] = true
			more, err = false, nil
		}
	}()
	err = holding(ctx, s.hand, func() error { return s.run(ctx) })
	s.report(err)
	switch {
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	case errors.Is(err, errHeld):
		return true, err
	case errors.Is(err, errGone):
		return s.stillThere(ctx), nil
	case err != nil:
		p.visited[t] = !errors.Is(err, errBlocked) // of whose end the monitor is told
		return false, nil
	}
	p.visited[t] = s.failure != nil && !s.done.More
	return s.done.More, nil
}

func (s *visit) run(ctx context.Context) error {
	n, err := s.find(ctx)
	if err != nil || n == 0 {
		return err
	}
	s.op = &operation.Operation{Client: s.client, Kind: "remove", NS: s.ns.String(), Command: s.describe()}
	ctx = s.ops.Start(ctx, s.op)
	s.own.Add(1)
	defer s.ops.Finish(s.op)
	s.op.Stats.SetPlanSummary("IXSCAN " + planKey(&s.rule))
	bounds := s.params.visitBudget()
	for {
		if err := s.step(ctx); err != nil || s.progress.done() {
			return err
		}
		took := clock.Since(s.clock, s.started)
		if bounds.spent(s.done.Examined, 0, took) || s.sweeping && s.givesWay(s.target, took) {
			s.done.More = true
			return nil
		}
		if s.sweeping || len(s.progress.staged) > 0 {
			continue
		}
		if n, err := s.find(ctx); err != nil || n == 0 {
			return err
		}
	}
}

// step deletes everything that is due at once, or else a batch.
func (s *visit) step(ctx context.Context) error {
	goesOn := s.sweeping
	if goesOn {
		if err := s.pacer.rest(ctx); err != nil {
			return err
		}
	}
	s.sweeping = false
	if done, err := s.atOnce(ctx, goesOn); done || err != nil || goesOn { // where it cannot go on, what is left is to be found
		return err
	}
	if err := s.pacer.rest(ctx); err != nil {
		return err
	}
	return s.batch(ctx)
}

// find stages what is due, and looks up what the collection and its rule are now; n is 0 when nothing is left.
func (s *visit) find(ctx context.Context) (n int, err error) {
	view, err := s.store.ViewAt(ctx, s.at)
	if err != nil {
		return 0, err
	}
	defer view.Close()
	r, ok := view.CollectionByID(s.target.Collection)
	if !ok {
		return 0, errGone
	}
	rule, ok := s.target.rule(r)
	if !ok {
		return 0, errGone
	}
	s.ns, s.rule = r.Catalog().NS, *rule
	s.done.NS, s.done.Index = s.ns.String(), rule.Name()
	if s.gate.WritesBlocked() && !ownDatabase(s.ns.DB) {
		return 0, errBlocked
	}
	s.progress.follow(rule)
	left := s.params.visitBudget().docs
	if left > 0 {
		left = max(left-s.done.Examined, 1) // 0 would be no bound
	}
	found, err := s.progress.stage(r, rule, s.at, left)
	s.metrics.examinedKeys.Add(int64(found))
	return len(s.progress.staged), err
}

// batch deletes the next staged records in one transaction. What cannot be deleted is passed over.
func (s *visit) batch(ctx context.Context) error {
	if err := s.mayDelete(); err != nil {
		return err
	}
	bounds := s.params.batchBudget()
	if s.careful > 0 {
		bounds = budget{docs: 1}
	}
	started := s.clock.Now()
	b, err := s.write(ctx, bounds)
	took := clock.Since(s.clock, started)
	s.pacer.did(took, s.lag())
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errGone) || mongoerr.Is(err, mongoerr.NamespaceNotFound):
		return errGone
	case bounds.docs != 1:
		s.careful = int(min(bounds.docs, int64(len(s.progress.staged))))
		return nil
	default:
		b = batch{examined: 1}
		s.failure = err
		if s.failures++; s.failures >= maxFailures {
			return err
		}
	}
	s.careful = max(s.careful-b.examined, 0)
	s.account(b, took)
	s.progress.take(b.examined)
	s.progress.missing = s.progress.missing || b.missing
	if s.progress.missing && s.progress.done() { // it may have moved, and still be due
		s.progress.again()
	}
	return nil
}

// mayDelete comes before each transaction.
func (s *visit) mayDelete() error {
	if s.hooks.BeforeBatch != nil {
		s.hooks.BeforeBatch(s.done.NS, s.done.Index)
	}
	if !s.runs() {
		return errHeld
	}
	if s.gate.WritesBlocked() && !ownDatabase(s.ns.DB) {
		return errBlocked
	}
	return nil
}

// lag is how long the pass has been at it.
func (s *visit) lag() time.Duration { return clock.Since(s.clock, time.UnixMilli(s.at)) }

func (s *visit) write(ctx context.Context, bounds budget) (b batch, err error) {
	if err := s.gate.Enter(ctx); err != nil {
		return batch{}, err
	}
	defer s.gate.Leave()
	o := storage.WriteOptions{Durability: kv.Buffered, Now: s.at, PassesOver: true}
	err = s.store.Write(ctx, s.ns, o, func(w *storage.Writer) (err error) {
		b, err = s.deleteSome(w, bounds)
		return err
	})
	return b, err
}

// atOnce is how many records are fetched at once to be looked at.
const atOnce = 100

// batch is what one transaction did.
type batch struct {
	examined             int
	deleted, keys, bytes int64
	batches              int64 // of the target size
	missing              bool  // whether a record was not there any more
}

// deleteSome looks at the staged records again, as they are in the transaction, and deletes those that are still due.
func (s *visit) deleteSome(w *storage.Writer, bounds budget) (b batch, err error) {
	if w.Catalog().ID != s.target.Collection {
		return batch{}, errGone // another collection has got the name
	}
	if _, ok := s.target.rule(w.Reader); !ok {
		return batch{}, errGone
	}
	started := s.clock.Now()
	left, more, most := s.progress.staged, true, atOnce
	if bounds.docs > 0 {
		most = int(min(int64(most), bounds.docs))
	}
	for len(left) > 0 && more {
		some := left[:min(len(left), most)]
		left = left[len(some):]
		err := w.ExpireMany(&s.rule, some, func(rec storage.Record, deleted bool) bool {
			b.examined++
			b.missing = b.missing || rec.Doc == nil
			if deleted {
				b.deleted++
				b.bytes += int64(len(rec.Doc))
			}
			more = !bounds.spent(int64(b.examined), b.bytes, clock.Since(s.clock, started))
			return more
		})
		if err != nil {
			return batch{}, err
		}
	}
	b.keys, b.batches = w.EntriesRemoved(), batchesOf(int64(b.examined), s.params.batchDocs())
	return b, nil
}

func (s *visit) account(b batch, took time.Duration) {
	s.done.Examined += int64(b.examined)
	s.done.Deleted += b.deleted
	s.done.Keys += b.keys
	s.done.Batches++
	s.bytes += b.bytes
	m := s.metrics
	m.examinedDocuments.Add(int64(b.examined))
	m.deletedDocuments.Add(b.deleted)
	m.deletedKeys.Add(b.keys)
	m.durationMicros.Add(took.Microseconds())
	if s.params.BatchDeletes.Get() {
		m.batches.Add(b.batches)
		m.batchDocs.Add(b.deleted)
		m.stagedBytes.Add(b.bytes)
		m.batchMicros.Add(took.Microseconds())
	}
	st := &s.op.Stats
	st.KeysExamined.Add(int64(b.examined))
	st.DocsExamined.Add(int64(b.examined))
	st.Deleted.Add(b.deleted)
	st.KeysDeleted.Add(b.keys)
}

// batchesOf is how many batches of the size a transaction was; one that found nothing to delete is one.
func batchesOf(examined, size int64) int64 { return max((examined+size-1)/size, 1) }

// report says how the visit went, to all who keep account.
func (s *visit) report(err error) {
	if errors.Is(err, errGone) {
		return
	}
	if s.failure != nil && err == nil {
		err = s.failure
	}
	if !errors.Is(err, errBlocked) && !errors.Is(err, errHeld) {
		s.done.Err = err
	}
	took := clock.Since(s.clock, s.started)
	s.done.Took, s.done.Bytes, s.done.Cut, s.done.Series, s.done.Cause = took, s.bytes, s.rule.Cut(s.at), s.rule.Kind == policy.Series, s.cause()
	s.noteVisit(s.target, s.done)
	if s.done.Deleted > 0 {
		s.recorder.RecordVisit(s.done)
	}
	attrs := []any{"namespace", s.done.NS, "index", s.done.Index, "numDeleted", s.done.Deleted, "durationMillis", took.Milliseconds()}
	switch {
	case mongoerr.Is(s.done.Err, mongoerr.OutOfDiskSpace): // the store has said so, once
		s.log.Debug("TTL: the disk is full", append(attrs, "error", serverlog.Client(s.done.Err.Error()))...)
	case s.done.Err != nil:
		s.log.Error("Error running TTL job on collection", append(attrs, "error", serverlog.Client(s.done.Err.Error()))...)
	case errors.Is(err, errBlocked):
		s.log.Debug("TTL: user writes are blocked", append(attrs, "code", int(mongoerr.UserWritesBlocked))...)
	case s.done.Deleted > 0:
		s.log.Log(context.Background(), s.level(), "Deleted expired documents using index", append(attrs, "numAtOnce", s.done.Swept,
			"bytes", s.done.Bytes, "cut", formatMillis(s.done.Cut), "cause", s.done.Cause)...)
	}
	if s.op != nil && (s.done.Deleted > 0 || s.done.Err != nil) {
		s.op.Stats.ExecMicros.Store(took.Microseconds())
		s.recorder.RecordSweep(s.op, took, s.done.Err)
	}
}

// slowVisit is from when on a visit that deletes is worth a line in every log.
const slowVisit = 100 * time.Millisecond

// level is of the line about a visit: each that deleted at once has one in every log, since that may be any number.
func (s *visit) level() slog.Level {
	if s.done.Took >= slowVisit || s.done.Swept > 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// stillThere says whether the target exists, under another name perhaps.
func (s *visit) stillThere(ctx context.Context) bool {
	view, err := s.store.ViewAt(ctx, s.at)
	if err != nil {
		return false
	}
	defer view.Close()
	r, ok := view.CollectionByID(s.target.Collection)
	if ok {
		_, ok = s.target.rule(r)
	}
	return ok
}

// describe is the delete as a command, as currentOp and the profiler show it.
func (s *visit) describe() bson.Doc {
	field := planField(&s.rule)
	b := bson.Build().String("delete", s.ns.Coll).Array("deletes").Object("0").Object("q").Object(field)
	if s.rule.Kind == policy.Clustered {
		b.Date("$gte", 0)
	}
	b.Date("$lte", s.rule.Cut(s.at)).End().End().Int32("limit", 0).End().End()
	return b.Bool("ordered", true).String("$db", s.ns.DB).Doc()
}

func planField(r *policy.Rule) string {
	return r.Field()
}

func planKey(r *policy.Rule) string {
	if r.Index == nil {
		return bson.Build().Int32(r.Field(), 1).Doc().String()
	}
	return r.Index.Key.String()
}
