package storage

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// span is a stretch of keys in which times grow, or fall where backward, and what adds up to a deadline.
type span struct {
	low, high []byte
	backward  bool
	date      func(key []byte) (millis int64, ok bool)
	id        func(key, value []byte) (RecordID, error)
	after     policy.Rule // what leads from a date to the deadline
	// Of the records of a time series, in which times grow anew with each meta value, there are no bounds but these, both
	// inclusive.
	series   bool
	from, to int64
}

// spans are where the dates that a rule counts from are kept, those up to the latest alone. There are no spans for a rule
// that cannot expire anything.
func (r *Reader) spans(rule *policy.Rule, latest func(after policy.Rule) int64) []span {
	rule, ok := r.current(rule)
	if !ok {
		return nil
	}
	return r.spansOf(rule, latest)
}

// spansOf is spans for a rule as it is given, which may be one that the collection's entries would do for.
func (r *Reader) spansOf(rule *policy.Rule, latest func(after policy.Rule) int64) []span {
	switch rule.Kind {
	case policy.Clustered:
		return []span{r.clusteredSpan(rule, latest(*rule))}
	case policy.Series:
		return []span{r.seriesSpan(rule, latest(*rule))}
	case policy.Modified:
		out := r.deadlineSpans(rule.Index, layout.OnOverride, 0, latest(policy.Rule{}))
		if rule.Seconds >= 0 {
			out = append(out, r.deadlineSpans(rule.Index, layout.OnDefault, rule.Seconds, latest(*rule))...)
		}
		return out
	default:
		return []span{r.fieldSpan(rule, r.floorOf(rule), latest(*rule))}
	}
}

// dueAt is the latest date that is due at now.
func dueAt(now int64) func(policy.Rule) int64 {
	return func(after policy.Rule) int64 { return after.Cut(now) }
}

func endOfTime(policy.Rule) int64 { return math.MaxInt64 }

// current is the rule as the view's catalogue has it: its TTL may have changed, and its index may be gone.
func (r *Reader) current(rule *policy.Rule) (*policy.Rule, bool) {
	if rule.Index == nil {
		return r.c.rules.Own()
	}
	return r.c.rules.ForIndexID(rule.Index.ID)
}

// deadlineSpans are where a TTL index on _ts has its dates: in entries, and of records that lie in the order that it makes, in
// their ids.
func (r *Reader) deadlineSpans(d *index.Definition, which byte, seconds, latest int64) []span {
	entries := deadlineSpan(d, which, seconds, latest)
	if !r.c.order.IsBy(d) {
		return []span{entries}
	}
	return []span{entries, {
		low:   r.c.order.DatedKey(which, r.floor(which)),
		high:  layout.After(r.c.order.DatedKey(which, latest)),
		date:  func(key []byte) (int64, bool) { return RecordID(key[layout.TableLength:]).Date(), true },
		id:    func(key, _ []byte) (RecordID, error) { return key[layout.TableLength:], nil },
		after: entries.after,
	}}
}

func deadlineSpan(d *index.Definition, which byte, seconds, latest int64) span {
	return span{
		low:   layout.DeadlineKey(nil, d, which, math.MinInt64, nil),
		high:  layout.After(layout.DeadlineKey(nil, d, which, latest, nil)),
		date:  func(key []byte) (int64, bool) { return layout.ReadMillis(key[layout.TableLength+1:]), true },
		id:    func(key, _ []byte) (RecordID, error) { return key[layout.TableLength+1+8:], nil },
		after: policy.Rule{Seconds: seconds},
	}
}

func (r *Reader) clusteredSpan(rule *policy.Rule, latest int64) span {
	first := keystring.AppendDate(nil, 0, false)
	last := first
	if o := r.c.order; o != nil && o.Clustered {
		first = keystring.AppendDate(nil, max(r.floor(layout.OnDefault), 0), false)
	}
	if latest >= 0 {
		last = layout.After(keystring.AppendDate(nil, latest, false))
	}
	return span{
		low:   layout.RecordKey(nil, r.c.ID, first),
		high:  layout.RecordKey(nil, r.c.ID, last),
		date:  func(key []byte) (int64, bool) { return keystring.Date(key[layout.TableLength:]) },
		id:    func(key, _ []byte) (RecordID, error) { return key[layout.TableLength:], nil },
		after: *rule,
	}
}

func (r *Reader) seriesSpan(rule *policy.Rule, latest int64) span {
	return span{
		date:   func(key []byte) (int64, bool) { return seriesTime(key), true },
		after:  *rule,
		series: true, from: math.MinInt64, to: latest,
	}
}

// fieldSpan is the dates in an ordinary index; one that descends has the earliest last.
func (r *Reader) fieldSpan(rule *policy.Rule, earliest, latest int64) span {
	ix := r.c.index(rule.Index.ID)
	desc := ix.Fields[0].Descending
	at := func(ms int64) []byte { return keystring.AppendDate(layout.TableKey(nil, ix.Definition), ms, desc) }
	s := span{
		low:      at(earliest),
		high:     layout.After(at(latest)),
		backward: desc,
		date:     func(key []byte) (int64, bool) { return keystring.Date(key[layout.TableLength:]) },
		after:    *rule,
	}
	if desc {
		s.low, s.high = at(latest), layout.After(at(earliest))
	}
	room := new(layout.IDRoom)
	s.id = func(key, value []byte) (RecordID, error) { return ix.EntryID(key, value, room) }
	return s
}

// eachDue calls f with the record id and key of each entry that is due at now by the rule, earliest first within a span,
// from behind the key after on, until f returns false. A record may come more than once. Those of a time series come in
// the order of their ids.
func (r *Reader) eachDue(rule *policy.Rule, now int64, after []byte, f func(id RecordID, key []byte) bool) error {
	return r.eachIn(r.spans(rule, dueAt(now)), after, f)
}

func (r *Reader) eachIn(spans []span, after []byte, f func(id RecordID, key []byte) bool) error {
	if after != nil && !r.c.IsTimeSeries() { // whose own TTL has one span, without bounds, and others one each
		i := slices.IndexFunc(spans, func(s span) bool { return tableSpan(s.low) == tableSpan(after) })
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

// tableSpan tells the spans of a TTL index on _ts apart; other indexes have but one, and clustered records too.
func tableSpan(key []byte) byte {
	if id := RecordID(key[layout.TableLength:]); key[0] == layout.RecordPrefix && len(id) >= layout.PlaceLength && id[0] == layout.OrderedMark {
		return layout.OrderedMark | id.Span()
	}
	if key[0] == layout.IndexPrefix && len(key) > layout.TableLength && key[layout.TableLength] <= layout.OnOverride {
		return key[layout.TableLength]
	}
	return 0
}

func (r *Reader) walkSpan(s span, after []byte, f func(RecordID, []byte) bool) (more bool, err error) {
	if s.series {
		return r.walkSeries(s, after, func(id RecordID, key []byte) step {
			if f(id, key) {
				return onward
			}
			return enough
		})
	}
	var w walk.Keys
	if err := w.Open(r.view.ctx, r.view.reader, kv.IterOptions{Lower: s.low, Upper: s.high}, s.backward, after); err != nil {
		return false, err
	}
	defer w.Close()
	dead, err := r.swept()
	if err != nil {
		return false, err
	}
	for w.Next() {
		value, err := w.Value()
		if err != nil {
			return false, fmt.Errorf("storage: what is due in %s: %w", r.c.NS, err)
		}
		id, err := s.id(w.Key(), value)
		if err != nil {
			return false, err
		}
		if dead.Cover(id) {
			continue
		}
		if !f(id, w.Key()) {
			return false, nil
		}
	}
	return true, w.Err()
}

// NextDeadline is the earliest deadline that the rule gives to any stored document, past or to come; ok is false when it
// gives none.
func (r *Reader) NextDeadline(rule *policy.Rule) (deadline int64, ok bool, err error) {
	deadline = policy.Never
	for _, s := range r.spans(rule, endOfTime) {
		err := r.firstDates(s, func(date int64) { deadline = min(deadline, s.after.After(date)) })
		if err != nil {
			return policy.Never, false, err
		}
	}
	return deadline, deadline != policy.Never, nil
}

// firstDates calls f with the earliest date in s; of a time series, with the earliest of each meta value.
func (r *Reader) firstDates(s span, f func(int64)) error {
	if s.series {
		_, err := r.walkSeries(s, nil, func(_ RecordID, key []byte) step {
			f(seriesTime(key))
			return nextGroup
		})
		return err
	}
	_, err := r.walkSpan(s, nil, func(_ RecordID, key []byte) bool {
		if date, ok := s.date(key); ok {
			f(date)
		}
		return false
	})
	return err
}

// Due are records with an entry that is due at now by the rule and that may be deleted, at most limit of them, earliest first. next is
// where to go on, in this or a later view; nil when there is no more. What was due may have changed since: Writer.Expire looks again.
func (r *Reader) Due(rule *policy.Rule, now int64, after []byte, limit int) (ids []RecordID, next []byte, err error) {
	return r.someIn(r.deletable(rule, now), after, limit)
}

// allDue is Due with what is not to be deleted yet.
func (r *Reader) allDue(rule *policy.Rule, now int64, after []byte, limit int) (ids []RecordID, next []byte, err error) {
	return r.someIn(r.spans(rule, dueAt(now)), after, limit)
}

// yieldStep is how many records are found between two turns for others.
const yieldStep = 4096

func (r *Reader) someIn(spans []span, after []byte, limit int) (ids []RecordID, next []byte, err error) {
	err = r.eachIn(spans, after, func(id RecordID, key []byte) bool {
		ids = append(ids, id.Clone())
		if len(ids) < limit {
			if len(ids)%yieldStep == 0 { // or who waits for a processor does so until all are found
				runtime.Gosched()
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

// Backlog is how many entries are due at now by the rule, counted up to limit.
func (r *Reader) Backlog(rule *policy.Rule, now int64, limit int64) (n int64, err error) {
	return r.dueEntries(rule, now, limit)
}

// dueEntries is how many entries are due at now by the rule, counted up to limit, where they cannot be dead from keys alone.
func (r *Reader) dueEntries(rule *policy.Rule, now, limit int64) (n int64, err error) {
	dead, err := r.swept()
	if err != nil {
		return 0, err
	}
	if rule.Kind == policy.Series || dead != nil && !r.isEmptied(rule, dead) {
		err = r.eachDue(rule, now, nil, func(RecordID, []byte) bool { n++; return n < limit })
		return n, err
	}
	for _, s := range r.spans(rule, dueAt(now)) {
		counted, err := r.countKeys(kv.IterOptions{Lower: s.low, Upper: s.high}, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// ModifiedAfter is how many documents were modified after a time, of those that a rule on _ts gives its default, counted up to limit.
func (r *Reader) ModifiedAfter(rule *policy.Rule, millis, limit int64) (n int64, err error) {
	if rule.Kind != policy.Modified || millis == math.MaxInt64 {
		return 0, nil
	}
	d, from := rule.Index, millis+1
	bounds := []kv.IterOptions{{Lower: layout.DeadlineKey(nil, d, layout.OnDefault, from, nil), Upper: layout.After(append(layout.TableKey(nil, d), layout.OnDefault))}}
	if r.c.order.IsBy(d) {
		bounds = append(bounds, kv.IterOptions{Lower: r.c.order.DatedKey(layout.OnDefault, from), Upper: layout.After(r.c.order.DatedKey(layout.OnDefault, math.MaxInt64))})
	}
	for _, b := range bounds {
		counted, err := r.countKeys(b, limit-n)
		if n += counted; err != nil || n >= limit {
			return n, err
		}
	}
	return n, nil
}

// isEmptied says whether sweeps leave no dead entries where the rule has its dates.
func (r *Reader) isEmptied(rule *policy.Rule, dead expiryorder.Tombstones) bool {
	return rule.Index != nil && r.c.order.Relocates() && r.c.order.Rule.Index.ID == rule.Index.ID && r.c.index(rule.Index.ID).emptied(dead, r.c.order.Number)
}

// emptied says whether a sweep deletes the entries of a rule's index with the records: each has one there, and none is dead
// already. In one on _ts ordered records have none.
func (t *tableIndex) emptied(ms expiryorder.Tombstones, order uint32) bool {
	return t.Kind != index.Deadline && !t.multikey.any() && !ms.OfOthers(order)
}

// countKeys counts keys up to limit.
func (r *Reader) countKeys(bounds kv.IterOptions, limit int64) (n int64, err error) {
	return walk.Count(r.view.ctx, r.view.reader, bounds, limit)
}
