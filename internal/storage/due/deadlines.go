package due

import (
	"errors"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/recordset"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Walked is how far a walk over keys came.
type Walked struct {
	Keys int64
	// All is false when there is more: the walk had reached one of its bounds.
	All bool
}

// Deadlines calls f with the deadline that the rule gives to each stored document that it gives one, hidden ones included;
// earliest first, but for the own rule of a time series, whose deadlines come anew for each meta value. It reads keys, and no
// document but those in coarse places. It ends behind limit keys, where a document may have several dates behind as many documents as can be told apart
// in bounded memory, and with the view's context. basis is what of the document gives it the deadline (policy.Rule.Basis).
func (r *Source) Deadlines(rule *policy.Rule, limit int64, f func(deadline int64, basis string)) (Walked, error) {
	rule, ok := r.Rules.Counterpart(rule)
	if !ok {
		return Walked{All: true}, nil
	}
	return r.deadlinesBy(rule, endOfTime, limit, f)
}

// DeadlinesAs is Deadlines by a rule as it is given, which may be one that the collection's entries would do for.
func (r *Source) DeadlinesAs(rule *policy.Rule, limit int64, f func(deadline int64, basis string)) (Walked, error) {
	return r.deadlinesBy(rule, endOfTime, limit, f)
}

// DeadlinesBy calls f with the deadline of each document that is due at now by a rule as it is given; it ends as Deadlines does.
func (r *Source) DeadlinesBy(rule *policy.Rule, now int64, f func(deadline int64)) (Walked, error) {
	return r.deadlinesBy(rule, dueAt(now), math.MaxInt64, func(deadline int64, _ string) { f(deadline) })
}

// deadlinesBy is Deadlines for a rule as it is given, and for dates up to the latest.
func (r *Source) deadlinesBy(rule *policy.Rule, latest func(policy.Rule) int64, limit int64, f func(deadline int64, basis string)) (Walked, error) {
	spans := r.spansOf(rule, latest)
	if rule.Kind == policy.Series {
		return r.seriesDeadlines(spans[0], limit, f)
	}
	dead, err := r.State.Tombstones()
	if err != nil {
		return Walked{}, err
	}
	d := deadlines{limit: limit, dead: dead, several: !r.OnceEach(rule), met: recordset.IDs{Unnumbered: !r.IsNumbered}}
	err = d.open(r, spans)
	for err == nil {
		h := d.earliest()
		if h == nil {
			break
		}
		f(h.deadline, h.basis)
		err = d.move(h)
	}
	d.All = err == nil && !d.cut
	return d.Walked, errors.Join(err, d.close())
}

func (r *Source) seriesDeadlines(s Span, limit int64, f func(int64, string)) (Walked, error) {
	var w Walked
	all, err := r.walkSeries(s, nil, func(_ layout.RecordID, key []byte) step {
		if w.Keys == limit {
			return enough
		}
		w.Keys++
		if deadline := s.after.After(layout.SeriesTime(key)); deadline != policy.Never {
			f(deadline, s.basis)
		}
		return onward
	})
	w.All = all
	return w, err
}

// deadlines walks the spans of one rule side by side, so that what they add up to comes in order.
type deadlines struct {
	Walked
	limit int64
	cut   bool // a bound was reached
	heads []*deadlineHead
	dead  expiryorder.Tombstones // what has been swept and is still in the index

	several bool // a document may come more than once
	met     recordset.IDs
}

// deadlineHead stands at one entry of a span.
type deadlineHead struct {
	Span
	walk     walk.Keys
	cells    *coarseHead // of a coarse span, instead of walk
	deadline int64       // policy.Never at the end
}

func (d *deadlines) open(r *Source, spans []Span) error {
	for _, s := range spans {
		h := &deadlineHead{Span: s}
		if err := h.open(r); err != nil {
			return err
		}
		d.heads = append(d.heads, h)
		if err := d.move(h); err != nil {
			return err
		}
	}
	return nil
}

func (h *deadlineHead) open(r *Source) error {
	if h.Span.coarse > 0 {
		c, err := r.openCoarse(h.Span, nil)
		h.cells = &coarseHead{coarseWalk: c}
		return err
	}
	return h.walk.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: h.low, Upper: h.high}, h.backward, nil)
}

func (h *deadlineHead) close() error {
	if h.cells != nil {
		return h.cells.Close()
	}
	return h.walk.Close()
}

// earliest is the head with the earliest deadline, nil when there is none, or a bound was reached.
func (d *deadlines) earliest() (first *deadlineHead) {
	if d.cut {
		return nil
	}
	for _, h := range d.heads {
		if h.deadline != policy.Never && (first == nil || h.deadline < first.deadline) {
			first = h
		}
	}
	return first
}

// move brings h to the next document.
func (d *deadlines) move(h *deadlineHead) error {
	if h.cells != nil {
		return d.moveCoarse(h)
	}
	h.deadline = policy.Never
	for h.walk.Next() {
		if d.Keys == d.limit {
			d.cut = true
			return nil
		}
		d.Keys++
		date, ok := h.date(h.walk.Key())
		if !ok {
			continue
		}
		counts, err := d.counts(h)
		if err != nil || d.cut {
			return err
		}
		if counts {
			h.deadline = h.after.After(date)
			return nil
		}
	}
	return h.walk.Err()
}

// counts says whether the document that h stands at is there, and has not come before.
func (d *deadlines) counts(h *deadlineHead) (bool, error) {
	if !d.several && h.confirm == nil && (d.dead == nil || h.low[0] == layout.RecordPrefix) { // records that are there are not dead
		return true, nil
	}
	value, err := h.walk.Value()
	if err != nil {
		return false, fmt.Errorf("storage: read an index entry: %w", err)
	}
	id, err := h.id(h.walk.Key(), value)
	if err != nil || d.dead.Cover(id) {
		return false, err
	}
	counts, err := h.confirms(id, h.walk.Key())
	return counts && d.first(id), err
}

// first says whether the id is met for the first time; where that cannot be told any more, the walk is cut.
func (d *deadlines) first(id layout.RecordID) bool {
	if !d.several {
		return true
	}
	first, sure := d.met.Add(id)
	d.cut = !sure
	return first
}

func (d *deadlines) close() error {
	var errs []error
	for _, h := range d.heads {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}
