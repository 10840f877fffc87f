package storage

import (
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// inGrace says whether something may be due at now by the rule and is not to be deleted yet.
func (s *Store) inGrace(rule *policy.Rule, now int64) bool {
	return !rule.Grace.IsZero() && now < s.changes.GraceEnd(rule.Grace)
}

// GraceUntil is when the rule's grace ends; ok is false when it has none at the view's time.
func (r *Reader) GraceUntil(rule *policy.Rule) (millis int64, ok bool) {
	if !r.view.store.inGrace(rule, r.view.now) {
		return 0, false
	}
	return r.view.store.changes.GraceEnd(rule.Grace), true
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
