package ttl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

const (
	// maxNeverReasons is how many reasons why documents never expire are told apart.
	maxNeverReasons = 100
	// maxSampleBytes is how much the sampled _ids of all reasons are together.
	maxSampleBytes = 4 << 20
)

// Never tells of the documents of a collection that do not expire by any rule.
type Never struct {
	// Examined is how many documents were looked at; All says that those were all.
	Examined int64
	All      bool
	// Count is how many of them never expire; Other, those whose reasons are not among Reasons, most frequent first.
	Count, Other int64
	Reasons      []NeverReason
}

// NeverReason are documents that never expire for the same reasons.
type NeverReason struct {
	Count   int64
	Rules   []RuleReason
	Samples []bson.Value // _ids
}

// RuleReason is why documents do not expire by one rule.
type RuleReason struct {
	Index, Field string
	// Code is that of the policy.Reason, or "inert".
	Code string
	// Type is what stands in the place of a date, "" where that is not said.
	Type string
	// Why is the reason in words.
	Why string
}

// NeverExpiring looks at visible documents, at most so many, and keeps some samples of each reason.
func NeverExpiring(r *storage.Reader, documents int64, samples int) (Never, error) {
	n := neverCount{by: map[string]*NeverReason{}, samples: samples}
	for i := range r.Rules().All() {
		n.rules = append(n.rules, &r.Rules().All()[i])
	}
	for _, d := range r.Catalog().Indexes {
		if _, built := policy.ForIndex(d); d.TTL && !built {
			n.inert = append(n.inert, RuleReason{Index: d.Name, Field: d.Fields[0].Path, Code: "inert", Why: inert(d)})
		}
	}
	err := r.BeforeChange().Each(func(rec storage.Record) error {
		if n.Examined == documents {
			return errEnough
		}
		n.Examined++
		n.add(rec)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Never{}, fmt.Errorf("ttl: what never expires of %s: %w", r.Catalog().NS, err)
	}
	n.All = err == nil
	for _, reason := range n.by {
		n.Reasons = append(n.Reasons, *reason)
	}
	slices.SortFunc(n.Reasons, func(a, b NeverReason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.key(), b.key()))
	})
	return n.Never, nil
}

// neverCount is a Never while it is counted.
type neverCount struct {
	Never
	rules   []*policy.Rule
	inert   []RuleReason
	by      map[string]*NeverReason // by their keys
	samples int
	bytes   int
	buf     []byte
}

func (n *neverCount) add(rec storage.Record) {
	n.buf = n.buf[:0]
	for _, rule := range n.rules {
		deadline, reason := rule.Deadline(rec.Doc, rec.Modified)
		if deadline != policy.Never {
			return
		}
		n.buf = append(n.buf, byte(reason), byte(typeInPlace(rule, reason, rec.Doc)))
	}
	n.Count++
	found := n.by[string(n.buf)]
	if found == nil {
		if len(n.by) == maxNeverReasons {
			n.Other++
			return
		}
		found = &NeverReason{Rules: n.reasonsOf(rec)}
		n.by[string(n.buf)] = found
	}
	found.Count++
	if id := rec.Doc.Lookup("_id"); len(found.Samples) < n.samples && n.bytes+len(id.Data) <= maxSampleBytes {
		n.bytes += len(id.Data)
		found.Samples = append(found.Samples, id.Clone())
	}
}

func (n *neverCount) reasonsOf(rec storage.Record) (out []RuleReason) {
	for _, rule := range n.rules {
		_, reason := rule.Deadline(rec.Doc, rec.Modified)
		r := RuleReason{Index: rule.Name(), Field: rule.Field(), Code: reason.Code(), Why: words(rule, reason, rec.Doc)}
		if t := typeInPlace(rule, reason, rec.Doc); t != bson.TypeMissing {
			r.Type = t.String()
		}
		out = append(out, r)
	}
	return append(out, n.inert...)
}

func (r *NeverReason) key() (key string) {
	for _, rule := range r.Rules {
		key += rule.Code + " " + rule.Type + " "
	}
	return key
}

// typeInPlace is the type of what stands where a date should, when that is easy to say.
func typeInPlace(rule *policy.Rule, reason policy.Reason, doc bson.Doc) bson.Type {
	if reason != policy.NotADate {
		return bson.TypeMissing
	}
	return doc.Lookup(planField(rule)).Type
}
