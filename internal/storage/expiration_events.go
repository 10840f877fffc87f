package storage

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// What expires is told in the oplog document by document, or summed up, or not at all: the collection's option expirationEvents says
// which. Only those that are told of one by one have to be read when they go.

// expirationSummary is how many documents a transaction has deleted because they had expired, where that is summed up, by the rules
// that were the reason.
type expirationSummary []expiredBy

type expiredBy struct {
	rule  *policy.Rule // nil: none that is known
	count int64
}

// sumsUpExpired says that what expires is not told of document by document.
func (w *Writer) sumsUpExpired() bool {
	e := w.c.Options.ExpirationEvents
	return e == catalog.SummaryEvents || e == catalog.NoEvents
}

// note counts a document that is deleted.
func (s *expirationSummary) note(w *Writer, rec Record) {
	_, rule := w.c.rules.Deadline(rec.Doc, rec.Modified)
	s.add(rule, 1)
}

func (s *expirationSummary) add(rule *policy.Rule, count int64) {
	for i := range *s {
		if by := &(*s)[i]; by.rule == rule {
			by.count += count
			return
		}
	}
	*s = append(*s, expiredBy{rule, count})
}

// logSummary tells what was summed up.
func (w *Writer) logSummary() {
	for _, by := range w.summary {
		if w.log == nil || w.c.Options.ExpirationEvents != catalog.SummaryEvents {
			break
		}
		b := bson.Build().Object("ebbExpired").String("ns", w.c.NS.String())
		if by.rule != nil {
			if by.rule.Index != nil {
				b.String("index", by.rule.Index.Name)
			}
			b.String("field", by.rule.Field())
		}
		w.Note(b.Date("cut", w.view.now).Int64("count", by.count).End().Doc())
	}
	w.summary = nil
}
