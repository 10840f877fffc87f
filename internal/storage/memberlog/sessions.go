package memberlog

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// Reap deletes what is kept of a session.
func Reap(ctx context.Context, s *storage.Store, session bson.Doc) error {
	for _, ns := range []namespace.NS{catalog.TransactionsNS, catalog.ImagesNS} {
		err := s.Write(ctx, ns, storage.WriteOptions{Durability: kv.Buffered, OfMember: true}, func(w *storage.Writer) error {
			rec, ok, err := w.GetByID(session.Value())
			if err != nil || !ok {
				return err
			}
			return w.Delete(rec)
		})
		if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			return err
		}
	}
	return nil
}

// Sessions calls f for each session of which something is kept, and when it wrote last.
func Sessions(ctx context.Context, s *storage.Store, f func(session bson.Doc, wrote int64) error) error {
	view, err := s.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.TransactionsNS)
	if !ok {
		return nil
	}
	c, err := r.Scan(storage.RecordScan{})
	if err != nil {
		return err
	}
	defer c.Close()
	for c.Next() {
		id, date := c.Record().Doc.Lookup("_id"), c.Record().Doc.Lookup("lastWriteDate")
		if id.Type != bson.TypeObject || date.Type != bson.TypeDate {
			continue
		}
		if err := f(id.Doc(), date.Millis()); err != nil {
			return err
		}
	}
	return c.Err()
}
