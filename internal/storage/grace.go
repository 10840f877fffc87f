package storage

import (
	"maps"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// graced is a collection that is about to be put, with the graces of its TTLs.
func (c *Change) graced(coll *catalog.Collection) (*catalog.Collection, error) {
	old := c.catalog.ByID(coll.ID)
	if old == nil || coll.IsView() {
		return coll, nil
	}
	now := c.store.Now()
	g := ttlchange.Graces{Now: now, Before: old.ExpiryRules(), After: coll.ExpiryRules(), Renews: c.Renew, End: c.store.graceEnd,
		Fresh: func() (policy.Grace, error) { return c.freshGrace(coll.ID, now) }}
	graces, err := g.Decide()
	if err != nil || maps.Equal(graces, coll.Graces) {
		return coll, err
	}
	return coll.WithGraces(graces), nil
}

// freshGrace is that of a TTL that is changed now; there is none where there are no documents.
func (c *Change) freshGrace(collection uint32, now int64) (g policy.Grace, err error) {
	length, asSleep := c.store.options.Grace()
	if length <= 0 {
		return g, nil
	}
	documents, err := c.documents(collection)
	if err != nil || documents == 0 {
		return g, err
	}
	return policy.Grace{At: now, Until: now + length, AsSleep: asSleep}, nil
}

// graceEnd is when g ends.
func (s *Store) graceEnd(g policy.Grace) int64 {
	if g.IsZero() {
		return 0
	}
	length, _ := s.options.Grace()
	return g.End(length)
}

// inGrace says whether something may be due at now by the rule and is not to be deleted yet.
func (s *Store) inGrace(rule *policy.Rule, now int64) bool {
	return !rule.Grace.IsZero() && now < s.graceEnd(rule.Grace)
}

// GraceUntil is when the rule's grace ends; ok is false when it has none at the view's time.
func (r *Reader) GraceUntil(rule *policy.Rule) (millis int64, ok bool) {
	if !r.view.store.inGrace(rule, r.view.now) {
		return 0, false
	}
	return r.view.store.graceEnd(rule.Grace), true
}

// Due are records with an entry that is due at now by the rule and that may be deleted, at most limit of them, earliest first. next is
// where to go on, in this or a later view; nil when there is no more. What was due may have changed since: Writer.ExpireMany looks
// again. Nothing may be deleted while deleting is paused, nor what is in its grace. Where so many lie at one coarse place that
// due.Soon leaves them they are not found before its end.
func (r *Reader) Due(rule *policy.Rule, now int64, after []byte, limit int) (ids []RecordID, next []byte, err error) {
	rule, ok := r.c.rules.Counterpart(rule)
	if !ok || r.c.Options.TTLPaused {
		return nil, nil, nil
	}
	d := r.Dates()
	spans := due.Soon(d.DueBy(rule, now))
	if r.view.store.inGrace(rule, now) {
		due.Behind(spans, d.DueBy(rule, rule.Grace.At))
	}
	return d.Some(spans, after, limit)
}

// mayDelete says whether one who deletes what has expired may delete what has the deadline.
func (w *Writer) mayDelete(rule *policy.Rule, deadline int64) bool {
	return !w.c.Options.TTLPaused && !(w.txn.store.inGrace(rule, w.view.now) && rule.Grace.Spares(deadline))
}
