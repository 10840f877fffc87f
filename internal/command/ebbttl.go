package command

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

func ebbTTLCommands() []*Command {
	return []*Command{{Name: "ebbTTL", Needs: Needs{Also: needsExpiry}, Doc: "Tells what expires next, how many documents expire when, how much waits to be deleted, and why a document expires or does not.", Run: ebbTTL}}
}

// maxStatusBytes is how much of the indexes' status one reply shows.
const maxStatusBytes = 15 << 20

func ebbTTL(op *Op) (bson.Doc, error) {
	a := op.Args
	target := a.Value(op.Name())
	explained := a.Value("explain")
	pick, ns, err := op.expiryTarget(target)
	if err != nil {
		a.Fail(err)
	}
	horizon := op.horizon(a)
	switch {
	case ns.Coll == "" && !explained.IsMissing():
		a.Fail(mongoerr.New(mongoerr.BadValue, "'explain' needs the name of a collection: {ebbTTL: \"coll\", explain: <_id>}"))
	case horizon != nil && !explained.IsMissing():
		a.Fail(mongoerr.New(mongoerr.BadValue, "'explain' and 'forecast' are two questions: ask one at a time"))
	}
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.TTL == nil && horizon == nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "this server has no TTL monitor")
	}
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	switch {
	case ns.Coll == "" && horizon != nil:
		return op.forecastAll(view, pick, *horizon)
	case ns.Coll == "":
		return op.expiryStatus(view, pick)
	}
	if entry := view.Catalog().Collection(ns); entry != nil && entry.IsView() {
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	r, ok := view.Collection(ns)
	switch {
	case !ok:
		return nil, mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", ns)
	case !explained.IsMissing():
		return op.explainExpiry(r, explained)
	case horizon != nil:
		return op.forecastExpiry(r, *horizon)
	}
	return op.expiryStatus(view, pick)
}

// expiryTarget reads the command's own field: a collection's name, or a number for all of the database's collections; in
// admin, for all there are.
func (op *Op) expiryTarget(v bson.Value) (pick func(namespace.NS) bool, ns namespace.NS, err error) {
	switch {
	case v.Type == bson.TypeString:
		ns = op.Args.Collection(op.DB)
		return func(other namespace.NS) bool { return other == ns }, ns, ns.Check()
	case v.IsNumber() || v.Type == bson.TypeBool:
		return func(other namespace.NS) bool { return op.DB == "admin" || other.DB == op.DB }, ns, nil
	}
	return nil, ns, mongoerr.New(mongoerr.TypeMismatch, "BSON field 'ebbTTL.ebbTTL' is the wrong type '%s', expected the name of a collection, or 1", v.Type)
}

func (op *Op) expiryStatus(view *storage.View, pick func(namespace.NS) bool) (bson.Doc, error) {
	all, err := op.TTL.Status(op.Ctx, view, pick)
	if err != nil {
		return nil, err
	}
	b := bson.Build().Date("now", op.Now)
	op.appendHeld(b)
	b.Object("monitor")
	op.TTL.AppendMetrics(b)
	b.End().Array("indexes")
	truncated := false
	for i := range all {
		if truncated = b.Len() > maxStatusBytes; truncated {
			break
		}
		b.Object(bson.IndexKey(i))
		appendStatus(b, &all[i], op.Now)
		b.End()
	}
	b.End()
	if truncated {
		b.Bool("truncated", true)
	}
	return b.Doc(), nil
}

func appendStatus(b *bson.Builder, s *ttl.Status, now int64) {
	b.String("ns", s.NS.String())
	appendRule(b, s.Index, s.Field, s.Seconds, s.Hides)
	if s.Inert != "" {
		b.String("inert", s.Inert)
		return
	}
	if s.Oldest != policy.Never {
		b.Date("oldestDeadline", s.Oldest)
	}
	b.Int64("lagMillis", s.Lag(now)).Int64("backlog", s.Backlog)
	if !s.Exact {
		b.Bool("backlogIsMore", true)
	}
	if s.Future > 0 {
		b.Int64("modifiedInFuture", s.Future)
	}
	if o := s.Order; o != nil {
		b.Bool("ordered", o.Ordered).Int64("misplaced", o.Unclustered)
		if !o.Exact {
			b.Bool("misplacedIsMore", true)
		}
		b.Int64("arranged", o.Reclustered).Int64("deadEntries", o.Dead)
	}
	b.Int64("deleted", s.Deleted).Int64("deletedEver", s.DeletedEver)
	if s.Swept {
		b.Date("lastSweep", s.LastSweep).Int64("lastDeleted", s.LastDeleted)
	}
	if s.InGrace {
		b.Date("graceUntil", s.GraceUntil)
	}
	if s.Paused {
		b.Bool("paused", true)
	}
	if s.LastError != "" {
		b.String("lastError", s.LastError)
	}
	if s.Planned {
		b.Date("nextSweep", s.NextSweep)
	}
}

// appendHeld appends why nothing is deleted, if nothing is.
func (op *Op) appendHeld(b *bson.Builder) {
	if op.TTL == nil {
		return
	}
	if held := op.TTL.Held(); held != "" {
		b.String("heldUpBy", held)
	}
	op.TTL.AppendHold(b)
}

// appendRule appends what a TTL index is, or a collection's own TTL, which has no index.
func appendRule(b *bson.Builder, index, field string, seconds int64, hides bool) {
	appendRuleName(b, index, field != "_id")
	b.String("field", field).Number("expireAfterSeconds", seconds).Bool("hidesExpired", hides)
}

// appendRuleName appends an index's name; or, of a collection's own TTL, whether that is a time series.
func appendRuleName(b *bson.Builder, index string, series bool) {
	switch {
	case index != "":
		b.String("index", index)
	case series:
		b.Bool("timeseries", true)
	default:
		b.Bool("clustered", true)
	}
}

func (op *Op) explainExpiry(r *storage.Reader, id bson.Value) (bson.Doc, error) {
	e, found, err := op.TTL.Explain(r, id)
	if err != nil {
		return nil, err
	}
	b := bson.Build().String("ns", r.Catalog().NS.String()).Value("_id", id).Date("now", op.Now).Bool("found", found)
	if !found {
		return b.Doc(), nil
	}
	b.Bool("expires", e.Deadline != policy.Never).Bool("expired", e.Deadline <= op.Now).Bool("visible", !e.Hidden)
	if e.Deadline != policy.Never {
		b.Date("deadline", e.Deadline)
		if name := e.By.Name(); name != "" {
			b.String("by", name)
		}
	}
	if e.Deadline <= op.Now {
		if held := op.TTL.HeldIn(r.Catalog()); held != "" {
			b.String("heldUpBy", held)
		}
	}
	b.Date("lastModified", e.Record.Modified).Array("rules")
	for i, rule := range e.Rules {
		b.Object(bson.IndexKey(i))
		appendRule(b, rule.Index, rule.Field, rule.Seconds, rule.Hides)
		if rule.Deadline != policy.Never {
			b.Date("deadline", rule.Deadline)
		}
		if rule.InGrace {
			b.Date("graceUntil", rule.GraceUntil)
		}
		b.String("reason", rule.Why).End()
	}
	return b.End().Strings("notes", e.Notes).Doc(), nil
}
