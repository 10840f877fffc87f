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
	pick, ns, err := op.expiryTarget(a.Value(op.Name()))
	if err != nil {
		a.Fail(err)
	}
	q := op.expiryQuestion(a, ns)
	if err := a.Done(); err != nil {
		return nil, err
	}
	if op.TTL == nil && q.horizon == nil && q.never == nil {
		return nil, mongoerr.New(mongoerr.IllegalOperation, "this server has no TTL monitor")
	}
	view, err := op.Query.Store.ViewAt(op.Ctx, op.Now)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	switch {
	case ns.Coll == "" && q.horizon != nil:
		return op.forecastAll(view, pick, *q.horizon)
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
	case !q.explained.IsMissing():
		return op.explainExpiry(r, q.explained)
	case q.many != nil:
		return op.explainMany(r, q.many)
	case q.never != nil:
		return op.neverExpiring(r, *q.never)
	case q.supposed != nil:
		return op.forecastSupposed(r, *q.horizon, q.supposed)
	case q.horizon != nil:
		return op.forecastExpiry(r, *q.horizon)
	}
	return op.expiryStatus(view, pick)
}

// expiryQuestion is what ebbTTL is asked; nothing for how expiry stands.
type expiryQuestion struct {
	explained bson.Value
	many      bson.Doc // the array of _ids; nil when it is not asked for
	never     *neverQuestion
	horizon   *ttl.Horizon
	supposed  *supposedTTL
}

func (op *Op) expiryQuestion(a *Args, ns namespace.NS) (q expiryQuestion) {
	q.explained = a.Value("explain")
	q.horizon = op.horizon(a, &q.supposed)
	q.many = readExplained(a)
	q.never = readNever(a)
	var asked []string
	for _, question := range [...]struct {
		name  string
		asked bool
		form  string // where it is about one collection
	}{
		{"explain", !q.explained.IsMissing(), "explain: <_id>"}, {"explainMany", q.many != nil, "explainMany: [<_id>, …]"},
		{"never", q.never != nil, "never: {}"}, {"forecast", q.horizon != nil, ""},
	} {
		if !question.asked {
			continue
		}
		if asked = append(asked, question.name); ns.Coll == "" && question.form != "" {
			a.Fail(mongoerr.New(mongoerr.BadValue, "'%s' needs the name of a collection: {ebbTTL: \"coll\", %s}", question.name, question.form))
		}
	}
	if ns.Coll == "" && q.supposed != nil {
		a.Fail(mongoerr.New(mongoerr.BadValue, "'asIf' needs the name of a collection: {ebbTTL: \"coll\", forecast: {asIf: {…}}}"))
	}
	if len(asked) > 1 {
		a.Fail(mongoerr.New(mongoerr.BadValue, "'%s' and '%s' are two questions: ask one at a time", asked[0], asked[1]))
	}
	return q
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
		b.Bool("ordered", o.Ordered).Int64("unclustered", o.Unclustered)
		if !o.Exact {
			b.Bool("unclusteredIsMore", true)
		}
		b.Int64("reclustered", o.Reclustered).Int64("deadEntries", o.Dead)
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
