package due

import (
	"errors"
	"fmt"
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/keystring"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Span is a stretch of keys in which times grow, or fall where backward, and what adds up to a deadline.
type Span struct {
	low, high []byte
	backward  bool
	date      func(key []byte) (millis int64, ok bool)
	id        func(key, value []byte) (layout.RecordID, error)
	after     policy.Rule // what leads from a date to the deadline
	basis     string      // what of a document gives it the date: see policy.Rule.Basis
	// confirm says whether an entry has the date that its document expires by; nil where all have.
	confirm func(id layout.RecordID, key []byte) (bool, error)
	// Of the records of a time series, in which times grow anew with each meta value, there are no bounds but these, both
	// inclusive. In a coarse span they are of the exact dates.
	series   bool
	from, to int64
	// coarse is how wide the cells of a coarse span are, 0 of others; sure is behind all records that are dated up to to because
	// of where they lie. most bounds how many others are looked at, 0 for all: see Soon.
	coarse int64
	sure   []byte
	most   int
}

// spans are where the dates that a rule counts from are kept, those up to the latest alone. There are no spans for a rule
// that cannot expire anything.
func (r *Source) spans(rule *policy.Rule, latest func(after policy.Rule) int64) []Span {
	rule, ok := r.Rules.Counterpart(rule)
	if !ok {
		return nil
	}
	return r.spansOf(rule, latest)
}

// spansOf is spans for a rule as it is given, which may be one that the collection's entries would do for.
func (r *Source) spansOf(rule *policy.Rule, latest func(after policy.Rule) int64) []Span {
	spans := r.spansAlone(rule, latest)
	for i := range spans {
		if spans[i].basis == "" {
			spans[i].basis = rule.Basis(bson.EmptyDoc)
		}
	}
	return spans
}

// spansAlone are the spans without their basis, where it is the rule's.
func (r *Source) spansAlone(rule *policy.Rule, latest func(after policy.Rule) int64) []Span {
	switch rule.Kind {
	case policy.Clustered:
		return []Span{r.clusteredSpan(rule, latest(*rule))}
	case policy.Series:
		return []Span{r.seriesSpan(rule, latest(*rule))}
	case policy.Modified:
		out := r.deadlineSpans(rule.Index, layout.OnOverride, 0, latest(policy.Rule{}))
		for i := range out {
			out[i].basis = policy.OverrideField
		}
		if rule.Seconds >= 0 {
			out = append(out, r.deadlineSpans(rule.Index, layout.OnDefault, rule.Seconds, latest(*rule))...)
		}
		return out
	default:
		return []Span{r.fieldSpan(rule, r.floorOf(rule), latest(*rule))}
	}
}

// dueAt is the latest date that is due at now.
func dueAt(now int64) func(policy.Rule) int64 {
	return func(after policy.Rule) int64 { return after.Cut(now) }
}

func endOfTime(policy.Rule) int64 { return math.MaxInt64 }

// deadlineSpans are where a TTL index on _ts has its dates: in entries, and of records that lie in the order that it makes, in
// their ids.
func (r *Source) deadlineSpans(d *index.Definition, which byte, seconds, latest int64) []Span {
	entries := deadlineSpan(d, which, seconds, latest)
	if !r.Order.IsBy(d) {
		return []Span{entries}
	}
	spans := []Span{entries, {
		low:   r.Order.DatedKey(which, r.State.Floor(which)),
		high:  layout.After(r.Order.DatedKey(which, latest)),
		date:  func(key []byte) (int64, bool) { return layout.RecordID(key[layout.TableLength:]).Date(), true },
		id:    func(key, _ []byte) (layout.RecordID, error) { return key[layout.TableLength:], nil },
		after: entries.after,
	}}
	if r.Order.Cell > 0 {
		spans = append(spans, r.coarseSpan(layout.Coarse(which), math.MinInt64, latest, entries.after))
	}
	return spans
}

func deadlineSpan(d *index.Definition, which byte, seconds, latest int64) Span {
	return Span{
		low:   layout.DeadlineKey(nil, d, which, math.MinInt64, nil),
		high:  layout.After(layout.DeadlineKey(nil, d, which, latest, nil)),
		date:  func(key []byte) (int64, bool) { return layout.ReadMillis(key[layout.TableLength+1:]), true },
		id:    func(key, _ []byte) (layout.RecordID, error) { return key[layout.TableLength+1+8:], nil },
		after: policy.Rule{Seconds: seconds},
	}
}

func (r *Source) clusteredSpan(rule *policy.Rule, latest int64) Span {
	first := keystring.AppendDate(nil, 0, false)
	last := first
	if o := r.Order; o != nil && o.Clustered {
		first = keystring.AppendDate(nil, max(r.State.Floor(layout.OnDefault), 0), false)
	}
	if latest >= 0 {
		last = layout.After(keystring.AppendDate(nil, latest, false))
	}
	return Span{
		low:   layout.RecordKey(nil, r.Collection.ID, first),
		high:  layout.RecordKey(nil, r.Collection.ID, last),
		date:  func(key []byte) (int64, bool) { return keystring.Date(key[layout.TableLength:]) },
		id:    func(key, _ []byte) (layout.RecordID, error) { return key[layout.TableLength:], nil },
		after: *rule,
	}
}

func (r *Source) seriesSpan(rule *policy.Rule, latest int64) Span {
	return Span{
		date:   func(key []byte) (int64, bool) { return layout.SeriesTime(key), true },
		after:  *rule,
		series: true, from: math.MinInt64, to: latest,
	}
}

// fieldSpan is the dates in an ordinary index; one that descends has the earliest last.
func (r *Source) fieldSpan(rule *policy.Rule, earliest, latest int64) Span {
	ix, _ := r.State.Index(rule.Index.ID)
	desc := ix.Fields[0].Descending
	at := func(ms int64) []byte { return keystring.AppendDate(layout.TableKey(nil, ix.Definition), ms, desc) }
	s := Span{
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
	s.id = func(key, value []byte) (layout.RecordID, error) { return ix.EntryID(key, value, room) }
	if r.misleads(rule) {
		s.confirm = r.confirmBy(rule, s.date)
	}
	return s
}

// misleads says whether entries of the rule's index may have dates that it does not count from: with a path like a.0 the elements of an
// array that stands at the position have entries (docs/differences.md, 42).
func (r *Source) misleads(rule *policy.Rule) bool {
	return r.isMultikey(rule) && fieldpath.Split(rule.Index.Fields[0].Path).HasNumeric()
}

// confirmBy looks at the document.
func (r *Source) confirmBy(rule *policy.Rule, dateOf func(key []byte) (int64, bool)) func(layout.RecordID, []byte) (bool, error) {
	return func(id layout.RecordID, key []byte) (bool, error) {
		value, err := r.Snapshot.Get(layout.RecordKey(nil, r.Collection.ID, id))
		if errors.Is(err, kv.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
		}
		rec, err := layout.ReadRecord(id, value)
		if err != nil {
			return false, err
		}
		told, _ := dateOf(key)
		date, ok := rule.Date(rec.Doc)
		return ok && date == told, nil
	}
}

// confirms says whether the entry of a record counts.
func (s *Span) confirms(id layout.RecordID, key []byte) (bool, error) {
	if s.confirm == nil {
		return true, nil
	}
	return s.confirm(id, key)
}

// floorOf is where the dates in the index of the rule begin: it has as many as there are records, one each, if it is the one
// that orders them.
func (r *Source) floorOf(rule *policy.Rule) int64 {
	if !r.Order.Relocates() || r.Order.Rule.Index.ID != rule.Index.ID || !r.State.IsInOrder() || !r.OnceEach(rule) {
		return math.MinInt64
	}
	return r.State.Floor(layout.OnDefault)
}

// OnceEach says whether no document has two entries that say when it expires by the rule.
func (r *Source) OnceEach(rule *policy.Rule) bool {
	return rule.Kind != policy.Field || !r.isMultikey(rule)
}

func (r *Source) isMultikey(rule *policy.Rule) bool {
	_, multikey := r.State.Index(rule.Index.ID)
	return multikey
}

// Due are the spans of what is due at now by the rule, as the collection has it now.
func (r *Source) Due(rule *policy.Rule, now int64) []Span { return r.spans(rule, dueAt(now)) }

// DueBy is Due for a rule as it is given, which may be one that the collection's entries would do for.
func (r *Source) DueBy(rule *policy.Rule, now int64) []Span { return r.spansOf(rule, dueAt(now)) }

// Behind leaves of the spans what lies behind those of an earlier time.
func Behind(spans, earlier []Span) {
	for i := range spans {
		switch s := &spans[i]; {
		case s.series:
			s.from = earlier[i].to + 1
		case s.coarse > 0:
			s.from, s.low = earlier[i].to+1, earlier[i].sure
		case s.backward:
			s.high = earlier[i].low
		default:
			s.low = earlier[i].high
		}
	}
}

// FieldBounds are the keys of the entries of a rule's index that have dates between the two, both inclusive.
func (r *Source) FieldBounds(rule *policy.Rule, earliest, latest int64) (low, high []byte) {
	s := r.fieldSpan(rule, earliest, latest)
	return s.low, s.high
}
