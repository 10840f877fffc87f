package oplog

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Summary is how many documents a transaction has deleted because they had expired, where that is told in sum, by the rules that were the
// reason.
type Summary []expiredBy

type expiredBy struct {
	rule  *policy.Rule // nil: none that is known
	count int64
}

// Add counts documents that are deleted.
func (s *Summary) Add(rule *policy.Rule, count int64) {
	for i := range *s {
		if by := &(*s)[i]; by.rule == rule {
			by.count += count
			return
		}
	}
	*s = append(*s, expiredBy{rule, count})
}

// Each calls f with what is to be told of each rule: of documents of a collection that had expired by cut, in milliseconds since the epoch.
func (s *Summary) Each(ns namespace.NS, cut int64, f func(bson.Doc)) {
	for _, by := range *s {
		b := bson.Build().Object("ebbExpired").String("ns", ns.String())
		if by.rule != nil {
			if by.rule.Index != nil {
				b.String("index", by.rule.Index.Name)
			}
			b.String("field", by.rule.Field())
		}
		f(b.Date("cut", cut).Int64("count", by.count).End().Doc())
	}
}
