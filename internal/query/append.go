package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// Append adds a document of the server's own to a collection that is there. No validator is asked, and it may be lost with
// the machine.
func (e *Engine) Append(ctx context.Context, ns namespace.NS, doc bson.Doc, now int64) error {
	doc, err := e.insertable(doc, now)
	if err != nil {
		return err
	}
	return e.writeOne(ctx, ns, false, &Call{Now: now, Durability: kv.Buffered}, func(w *storage.Writer) error {
		_, err := w.Insert(doc)
		return err
	})
}
