package command

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// errMoved is why a change is not made: the collection is not as it was when its documents were counted.
var errMoved = errors.New("the collection has changed since it was looked at")

// readOnHidden reads what a command that changes TTLs is told beside the change. The stable API does not know it.
func (op *Op) readOnHidden(a *Args) (how ttlchange.OnHidden) {
	how.Replayed = op.applies()
	if op.APIStrict {
		return how
	}
	if v := a.peek("keepExpired"); how.Replayed && v.Type == bson.TypeDate { // as an oplog tells of it
		how.Keep, how.Since = true, a.Value("keepExpired").Millis()
	} else {
		how.Keep = a.SafeBool("keepExpired", false)
	}
	how.Force = a.SafeBool("force", false)
	return how
}

// guarded calls apply, unless ttlMassExpiryGuard forbids what dryRun says that it would do. apply gets the collection as it
// was then, or nil when that does not matter; with errMoved, all begins anew. Nothing is counted while there is no guard.
func (op *Op) guarded(ns namespace.NS, how ttlchange.OnHidden, dryRun func() (indexddl.DryRun, error), apply func(seen *catalog.Collection) error) error {
	limit := op.massExpiryGuard()
	if how.Force || !guards(limit) {
		return apply(nil)
	}
	for {
		h, err := dryRun()
		if err != nil {
			return err
		}
		if e := &h.Expiring; exceeds(e, how, limit) {
			going, of, deleted := ofGuard(e, how)
			also := ""
			if deleted > 0 {
				also = fmt.Sprintf(", %d of them hidden already and deleted by the command", deleted)
			}
			return mongoerr.New(mongoerr.IllegalOperation, "%d of the %d documents of %s would expire at once%s, and %s lets a share of %g do so at most; "+
				"force: true makes the change nevertheless, dryRun: true tells more", going, of, ns, also, ttl.MassExpiryGuardName, limit)
		}
		if err := apply(h.Of); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// massExpiryGuard is the share of a collection that may expire by one command; 0 when there is no guard.
func (op *Op) massExpiryGuard() float64 {
	p := op.Params.Lookup(ttl.MassExpiryGuardName)
	if p == nil {
		return 0
	}
	return p.Get().AsDouble()
}

// guards says whether there is a guard.
func guards(limit float64) bool { return limit > 0 && limit < 1 }

func exceeds(e *ttlchange.Effect, how ttlchange.OnHidden, limit float64) bool {
	going, of, _ := ofGuard(e, how)
	return float64(going) > limit*float64(of)
}

// ofGuard is how many documents go, of how many there are: those that a command deletes, because they would be seen again,
// are among both.
func ofGuard(e *ttlchange.Effect, how ttlchange.OnHidden) (going, of, deleted int64) {
	if !how.Keep {
		deleted = e.Hidden
	}
	return e.Would + deleted, e.Documents + deleted, deleted
}

// unmoved is errMoved when c is not what was seen; nil when nothing was.
func unmoved(seen, c *catalog.Collection) error {
	if seen != nil && seen != c {
		return errMoved
	}
	return nil
}

// appendExpiring appends what a dry run tells, with what p asks for beside that.
func (op *Op) appendExpiring(b *bson.Builder, h *indexddl.DryRun, how ttlchange.OnHidden, p *preview) error {
	e := &h.Expiring
	b.Bool("dryRun", true).Int64("documents", e.Documents).Int64("wouldExpire", e.Would)
	switch {
	case len(e.Gone) == 0:
	case how.Keep:
		b.Int64("wouldKeep", e.Shown)
	default:
		b.Int64("wouldDelete", e.Hidden)
	}
	b.Array("indexes")
	for i := range e.TTLs {
		b.Object(bson.IndexKey(i))
		appendChangedTTL(b, &e.TTLs[i])
		b.End()
	}
	b.End()
	appendGone(b, e.Gone)
	refused := e.Held != "" && !how.Keep
	if refused {
		b.String("heldUpBy", e.Held)
	}
	if limit := op.massExpiryGuard(); refused || guards(limit) && exceeds(e, how, limit) {
		b.Bool("needsForce", true)
	}
	return op.appendPreview(b, h, p)
}

// appendGone appends the TTLs that hide, and do not any more or not as much, with how many documents each hides.
func appendGone(b *bson.Builder, gone []ttlchange.Gone) {
	if len(gone) == 0 {
		return
	}
	b.Array("loosened")
	for i := range gone {
		r := &gone[i].Rule
		b.Object(bson.IndexKey(i))
		appendRuleName(b, r.Name(), r.Kind == policy.Series)
		b.String("field", r.Field()).Number("expireAfterSeconds", r.Seconds).Int64("hidden", gone[i].Hidden).End()
	}
	b.End()
}

// noteHidden appends what became of hidden documents, if there were any, and counts it.
func (op *Op) noteHidden(b *bson.Builder, done ttlchange.Loosened) {
	if done.Deleted > 0 {
		b.Int64("deletedExpired", done.Deleted)
	}
	if done.Kept > 0 {
		b.Int64("keptExpired", done.Kept)
	}
	if op.TTL != nil {
		op.TTL.NoteLoosened(done)
	}
}

func appendChangedTTL(b *bson.Builder, t *ttlchange.Changed) {
	appendRuleName(b, t.Rule.Name(), t.Rule.Kind == policy.Series)
	b.String("field", t.Rule.Field()).Number("expireAfterSeconds", t.Rule.Seconds)
	b.Int64("wouldExpire", t.Would)
	if t.Old != nil {
		b.Int64("alreadyExpired", t.Already)
	}
}
