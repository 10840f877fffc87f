package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// errMoved is why a change is not made: the collection is not as it was when its documents were counted.
var errMoved = errors.New("the collection has changed since it was looked at")

// guarded calls apply, unless ttlMassExpiryGuard forbids what rehearse says that it would do. apply gets the collection as it
// was then, or nil when that does not matter; with errMoved, all begins anew. Nothing is counted while there is no guard.
func (op *Op) guarded(ns namespace.NS, force bool, rehearse func() (storage.Rehearsal, error), apply func(seen *catalog.Collection) error) error {
	limit := op.massExpiryGuard()
	if force || !guards(limit) {
		return apply(nil)
	}
	for {
		h, err := rehearse()
		if err != nil {
			return err
		}
		if e := &h.Expiring; exceeds(e, limit) {
			return mongoerr.New(mongoerr.IllegalOperation, "%d of the %d documents of %s would expire at once, and %s lets a share of %g do so at most; "+
				"force: true makes the change nevertheless, dryRun: true tells more", e.Would, e.Documents, ns, ttl.MassExpiryGuardName, limit)
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

func exceeds(e *storage.Expiring, limit float64) bool {
	return float64(e.Would) > limit*float64(e.Documents)
}

// unmoved is errMoved when c is not what was seen; nil when nothing was.
func unmoved(seen, c *catalog.Collection) error {
	if seen != nil && seen != c {
		return errMoved
	}
	return nil
}

// appendExpiring appends what a dry run tells.
func (op *Op) appendExpiring(b *bson.Builder, e *storage.Expiring) {
	b.Bool("dryRun", true).Int64("documents", e.Documents).Int64("wouldExpire", e.Would).Array("indexes")
	for i := range e.TTLs {
		b.Object(bson.IndexKey(i))
		appendChangedTTL(b, &e.TTLs[i])
		b.End()
	}
	b.End()
	if limit := op.massExpiryGuard(); guards(limit) && exceeds(e, limit) {
		b.Bool("needsForce", true)
	}
}

func appendChangedTTL(b *bson.Builder, t *storage.ChangedTTL) {
	appendRuleName(b, t.Rule.Name(), t.Rule.Kind == policy.Series)
	b.String("field", t.Rule.Field()).Number("expireAfterSeconds", t.Rule.Seconds)
	b.Int64("wouldExpire", t.Would)
	if t.Old != nil {
		b.Int64("alreadyExpired", t.Already)
	}
}
