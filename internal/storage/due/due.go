package due

import (
	"fmt"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
	"github.com/ebbdb/ebb/internal/yield"
)

// Each calls f with the record id and key of each entry that is due at now by the rule, earliest first within a span,
// from behind the key after on, until f returns false. A record may come more than once. Those of a time series come in
// the order of their ids.
func (r *Source) Each(rule *policy.Rule, now int64, after []byte, f func(id layout.RecordID, key []byte) bool) error {
	return r.eachIn(r.spans(rule, dueAt(now)), after, f)
}

func (r *Source) eachIn(spans []Span, after []byte, f func(id layout.RecordID, key []byte) bool) error {
	if after != nil && !r.Collection.IsTimeSeries() { // whose own TTL has one span, without bounds, and others one each
		i := slices.IndexFunc(spans, func(s Span) bool { return tableSpan(s.low) == tableSpan(after) })
		spans = spans[max(i, 0):]
	}
	for _, s := range spans {
		more, err := r.walkSpan(s, after, f)
		if err != nil || !more {
			return err
		}
		after = nil
	}
	return nil
}

// tableSpan tells the spans of a TTL index on _ts apart; other indexes have but one, and clustered records too. A bound may end
// behind its span.
func tableSpan(key []byte) byte {
	if id := layout.RecordID(key[layout.TableLength:]); key[0] == layout.RecordPrefix && len(id) >= layout.SpanLength && id[0] == layout.OrderedMark {
		return layout.OrderedMark | id.Span()
	}
	if key[0] == layout.IndexPrefix && len(key) > layout.TableLength && key[layout.TableLength] <= layout.OnOverride {
		return key[layout.TableLength]
	}
	return 0
}

func (r *Source) walkSpan(s Span, after []byte, f func(layout.RecordID, []byte) bool) (more bool, err error) {
	if s.series {
		return r.walkSeries(s, after, func(id layout.RecordID, key []byte) step {
			if f(id, key) {
				return onward
			}
			return enough
		})
	}
	if s.coarse > 0 {
		return r.walkCoarse(s, after, f)
	}
	var w walk.Keys
	if err := w.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: s.low, Upper: s.high}, s.backward, after); err != nil {
		return false, err
	}
	defer w.Close()
	dead, err := r.State.Tombstones()
	if err != nil {
		return false, err
	}
	for w.Next() {
		value, err := w.Value()
		if err != nil {
			return false, fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
		}
		id, err := s.id(w.Key(), value)
		if err != nil {
			return false, err
		}
		if dead.Cover(id) {
			continue
		}
		counts, err := s.confirms(id, w.Key())
		if err != nil {
			return false, err
		}
		if counts && !f(id, w.Key()) {
			return false, nil
		}
	}
	return true, w.Err()
}

// Next is the earliest deadline that the rule gives to any stored document, past or to come; ok is false when it
// gives none.
func (r *Source) Next(rule *policy.Rule) (deadline int64, ok bool, err error) {
	return r.first(r.spans(rule, endOfTime))
}

// Upcoming is the earliest deadline behind now that the rule gives to any stored document; ok is false when there is none.
// What is due already does not count, so that one who waits for the next deadline never waits for one that has passed. Where so
// many lie at one coarse place that Soon leaves them, it is that of the place.
func (r *Source) Upcoming(rule *policy.Rule, now int64) (deadline int64, ok bool, err error) {
	spans := r.spans(rule, endOfTime)
	Behind(spans, r.spans(rule, dueAt(now)))
	return r.first(Soon(spans))
}

// first is the earliest deadline in the spans.
func (r *Source) first(spans []Span) (deadline int64, ok bool, err error) {
	deadline = policy.Never
	for _, s := range spans {
		err := r.firstDates(s, func(date int64) { deadline = min(deadline, s.after.After(date)) })
		if err != nil {
			return policy.Never, false, err
		}
	}
	return deadline, deadline != policy.Never, nil
}

// firstDates calls f with the earliest date in s; of a time series, with the earliest of each meta value.
func (r *Source) firstDates(s Span, f func(int64)) error {
	if s.series {
		_, err := r.walkSeries(s, nil, func(_ layout.RecordID, key []byte) step {
			f(layout.SeriesTime(key))
			return nextGroup
		})
		return err
	}
	if s.coarse > 0 {
		return r.firstCoarse(s, f)
	}
	_, err := r.walkSpan(s, nil, func(_ layout.RecordID, key []byte) bool {
		if date, ok := s.date(key); ok {
			f(date)
		}
		return false
	})
	return err
}

// All are records with an entry that is due at now by the rule, at most limit of them, earliest first. next is where to go on, in this
// or a later view; nil when there is no more.
func (r *Source) All(rule *policy.Rule, now int64, after []byte, limit int) (ids []layout.RecordID, next []byte, err error) {
	return r.Some(r.spans(rule, dueAt(now)), after, limit)
}

// yieldStep is how many records are found between two turns for others.
const yieldStep = 4096

// Some are records in the spans, as All has them.
func (r *Source) Some(spans []Span, after []byte, limit int) (ids []layout.RecordID, next []byte, err error) {
	err = r.eachIn(spans, after, func(id layout.RecordID, key []byte) bool {
		ids = append(ids, id.Clone())
		if len(ids) < limit {
			if len(ids)%yieldStep == 0 { // or who waits for a processor does so until all are found
				yield.Now()
			}
			return true
		}
		next = slices.Clone(key)
		return false
	})
	if err != nil {
		return nil, nil, err
	}
	return ids, next, nil
}

// Count is how many entries are due at now by the rule, counted up to limit, where they cannot be dead from keys alone.
func (r *Source) Count(rule *policy.Rule, now, limit int64) (n int64, err error) {
	dead, err := r.State.Tombstones()
	if err != nil {
		return 0, err
	}
	if rule.Kind == policy.Series || dead != nil && !r.isEmptied(rule, dead) {
		err = r.Each(rule, now, nil, func(layout.RecordID, []byte) bool { n++; return n < limit })
		return n, err
	}
	for _, s := range r.spans(rule, dueAt(now)) {
		counted, err := r.countSpan(s, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// maxCounted bounds the record ids that CountOf keeps in memory to count each document once.
const maxCounted = 1 << 20

// CountOf counts the documents that have expired by any of the rules at now, each once; ok is false when there are too many.
func (r *Source) CountOf(rules []*policy.Rule, now int64) (n int64, ok bool, err error) {
	if len(rules) == 1 && r.OnceEach(rules[0]) {
		n, err = r.Count(rules[0], now, math.MaxInt64)
		return n, true, err
	}
	seen := map[string]struct{}{}
	for _, rule := range rules {
		err := r.Each(rule, now, nil, func(id layout.RecordID, _ []byte) bool {
			seen[string(id)] = struct{}{}
			return len(seen) <= maxCounted
		})
		if err != nil || len(seen) > maxCounted {
			return 0, false, err
		}
	}
	return int64(len(seen)), true, nil
}

func (r *Source) countSpan(s Span, limit int64) (n int64, err error) {
	if s.coarse > 0 {
		return r.countCoarse(s, limit)
	}
	if s.confirm != nil {
		_, err = r.walkSpan(s, nil, func(layout.RecordID, []byte) bool { n++; return n < limit })
		return n, err
	}
	return walk.Count(r.Ctx, r.Snapshot, kv.IterOptions{Lower: s.low, Upper: s.high}, limit)
}

// ModifiedAfter is how many documents were modified after a time, of those that a rule on _ts gives its default, counted up to limit.
func (r *Source) ModifiedAfter(rule *policy.Rule, millis, limit int64) (n int64, err error) {
	if rule.Kind != policy.Modified || millis == math.MaxInt64 {
		return 0, nil
	}
	d, from := rule.Index, millis+1
	bounds := []kv.IterOptions{{Lower: layout.DeadlineKey(nil, d, layout.OnDefault, from, nil), Upper: layout.After(append(layout.TableKey(nil, d), layout.OnDefault))}}
	if r.Order.IsBy(d) {
		bounds = append(bounds, kv.IterOptions{Lower: r.Order.DatedKey(layout.OnDefault, from), Upper: layout.After(r.Order.DatedKey(layout.OnDefault, math.MaxInt64))})
	}
	for _, b := range bounds {
		counted, err := walk.Count(r.Ctx, r.Snapshot, b, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	if r.Order.IsBy(d) && r.Order.Cell > 0 {
		counted, err := r.countCoarse(r.coarseSpan(layout.CoarseDefault, from, math.MaxInt64, policy.Rule{}), limit-n)
		return n + counted, err
	}
	return n, nil
}

// isEmptied says whether sweeps leave no dead entries where the rule has its dates.
func (r *Source) isEmptied(rule *policy.Rule, dead expiryorder.Tombstones) bool {
	if rule.Index == nil || !r.Order.Relocates() || r.Order.Rule.Index.ID != rule.Index.ID {
		return false
	}
	return IsEmptied(rule.Index, r.isMultikey(rule), dead, r.Order.Number)
}

// IsEmptied says whether a sweep deletes the entries of a rule's index with the records: each has one there, and none is dead
// already. In one on _ts ordered records have none.
func IsEmptied(d *index.Definition, multikey bool, dead expiryorder.Tombstones, order uint32) bool {
	return d.Kind != index.Deadline && !multikey && !dead.OfOthers(order)
}
