package ttl

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Explanation says whether and when one document expires.
type Explanation struct {
	Record storage.Record
	// Deadline is the earliest of all rules, policy.Never when none gives one; By is the rule that gives it.
	Deadline int64
	By       *policy.Rule
	// Hidden says that the document has expired and is invisible already.
	Hidden bool
	Rules  []RuleExplanation
	// Notes are things about the document that bear on no rule, such as a ttl that is ignored.
	Notes []string
}

// RuleExplanation is what one TTL index, or the clustered collection itself, says of the document.
type RuleExplanation struct {
	// Index is the index's name, "" for a clustered collection.
	Index, Field string
	Seconds      int64
	Hides        bool
	Deadline     int64
	// GraceUntil is when the document may be deleted, if InGrace: it was due when the TTL was made or shortened.
	GraceUntil int64
	InGrace    bool
	// Why is the reason in words: why the document expires by this rule, or why it does not.
	Why string
}

// Explain looks at the stored document whose _id equals id, expired or not. ok is false when there is none.
func (m *Monitor) Explain(r *storage.Reader, id bson.Value) (e Explanation, ok bool, err error) {
	rec, ok, err := r.Unhidden().GetByID(id)
	if !ok || err != nil {
		return Explanation{}, false, err
	}
	all := m.params.HideExpired.Get()
	e = Explanation{Record: rec.Clone(), Hidden: r.Rules().Hidden(rec.Doc, rec.Modified, r.HidesAt(), all)}
	e.Deadline, e.By = r.Rules().Deadline(rec.Doc, rec.Modified)
	rules := r.Rules().All()
	onTS := false
	for i := range rules {
		rule := &rules[i]
		onTS = onTS || rule.Kind == policy.Modified
		deadline, reason := rule.Deadline(rec.Doc, rec.Modified)
		e.Rules = append(e.Rules, RuleExplanation{Index: rule.Name(), Field: planField(rule), Seconds: rule.Seconds,
			Hides: rule.Hides(all), Deadline: deadline, Why: words(rule, reason, rec.Doc)})
		if until, ok := r.GraceUntil(rule); ok && rule.Grace.Spares(deadline) {
			last := &e.Rules[len(e.Rules)-1]
			last.GraceUntil, last.InGrace = until, true
		}
	}
	for _, d := range r.Catalog().Indexes {
		if _, built := policy.ForIndex(d); d.TTL && !built {
			e.Rules = append(e.Rules, RuleExplanation{Index: d.Name, Field: d.Fields[0].Path, Seconds: int64(d.ExpireAfterSeconds),
				Deadline: policy.Never, Why: inert(d)})
		}
	}
	e.Notes = notes(rec.Doc, onTS, r)
	return e, true, nil
}

func words(rule *policy.Rule, reason policy.Reason, doc bson.Doc) string {
	if reason != policy.Expires {
		return reason.String() + foundType(rule, reason, doc)
	}
	switch rule.Kind {
	case policy.Clustered:
		return fmt.Sprintf("%d s after the date in _id", rule.Seconds)
	case policy.Series:
		return fmt.Sprintf("%d s after the end of the %d s that the time in %s lies in", rule.Seconds, rule.Cell, planField(rule))
	case policy.Modified:
		if override, seconds := policy.Override(doc); override == policy.Valid {
			return fmt.Sprintf("%d s, the document's ttl, after its last modification", seconds)
		}
		return fmt.Sprintf("%d s after its last modification", rule.Seconds)
	}
	return fmt.Sprintf("%d s after the earliest date in %s", rule.Seconds, planField(rule))
}

// foundType names the type that stands where a date should, when that is easy to say.
func foundType(rule *policy.Rule, reason policy.Reason, doc bson.Doc) string {
	if t := typeInPlace(rule, reason, doc); t != bson.TypeMissing {
		return fmt.Sprintf(": it is of type '%s'", t)
	}
	return ""
}

// notes say what looks as if it meant something for expiry, and does not.
func notes(doc bson.Doc, onTS bool, r *storage.Reader) (out []string) {
	override, _ := policy.Override(doc)
	switch {
	case override != policy.Absent && !onTS:
		out = append(out, "the document's ttl is plain data: the collection has no TTL index on _ts")
	case override == policy.Ignored:
		out = append(out, "the document's ttl is ignored, because it is neither -1 nor a whole number of seconds from 1 to 2147483647 "+
			"given as int, long or double: it is "+doc.Lookup(policy.OverrideField).String())
	}
	if onTS && !doc.Lookup(index.TSField).IsMissing() {
		out = append(out, "the document's field _ts is plain data: its last modification is kept beside it")
	}
	if !r.Rules().Any() {
		out = append(out, "the collection has no TTL index that expires anything")
	}
	return out
}
