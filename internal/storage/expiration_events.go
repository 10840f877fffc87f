package storage

import "github.com/ebbdb/ebb/internal/catalog"

// What expires is told in the oplog document by document, or summed up, or not at all: the collection's option expirationEvents says
// which. Only those that are told of one by one have to be read when they go.

// logSummary tells what was summed up.
func (w *Writer) logSummary() {
	if w.log != nil && w.c.Options.ExpirationEvents == catalog.SummaryEvents {
		w.summary.Each(w.c.NS, w.view.now, w.Note)
	}
	w.summary = nil
}
