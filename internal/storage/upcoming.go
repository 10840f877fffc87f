package storage

import (
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Upcoming is the earliest deadline behind now that the rule gives to any stored document; ok is false when there is none.
// What is due already does not count, so that one who waits for the next deadline never waits for one that has passed.
func (r *Reader) Upcoming(rule *policy.Rule, now int64) (deadline int64, ok bool, err error) {
	due := r.spans(rule, dueAt(now))
	deadline = policy.Never
	spans := r.spans(rule, endOfTime)
	behind(spans, due)
	for _, s := range spans {
		err := r.firstDates(s, func(date int64) { deadline = min(deadline, s.after.After(date)) })
		if err != nil {
			return policy.Never, false, err
		}
	}
	return deadline, deadline != policy.Never, nil
}

// Unhidden is r with the documents that have expired and are still stored, for those who explain or repair.
func (r *Reader) Unhidden() *Reader {
	all := *r
	all.hides, all.key, all.bounds = false, nil, expiryorder.HiddenBounds{}
	return &all
}

// EntriesRemoved is how many index entries the transaction has removed from the collection so far, less those it added.
func (w *Writer) EntriesRemoved() (n int64) {
	n = -w.implied
	for i := range w.tables {
		if t := &w.tables[i]; !t.building() {
			n -= w.documents + t.surplus
		}
	}
	return n
}
