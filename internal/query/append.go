package query

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Append adds a document of the server's own to a collection that is there. No validator is asked, and it may be lost with
// the machine. It is waited for as long as ctx's patience lasts.
func (e *Engine) Append(ctx context.Context, ns namespace.NS, doc bson.Doc, now int64) error {
	doc, err := e.insertable(doc, now, true)
	if err != nil {
		return err
	}
	return e.writeOne(ctx, ns, false, &Call{Now: now, Durability: kv.Buffered, Patience: kv.PatienceOf(ctx)}, func(w *storage.Writer) error {
		_, err := w.Insert(doc)
		return err
	})
}

// StoreSetting puts a document of the server's own in the place of the one with its _id, in a collection that is made where there is
// none. No validator is asked. It is waited for as long as ctx's patience lasts, and is the last commit where it is one of several (storage.Apart).
func (e *Engine) StoreSetting(ctx context.Context, ns namespace.NS, doc bson.Doc, now int64) error {
	return e.ChangeSettings(ctx, ns, nil, []bson.Doc{doc}, now)
}

// ChangeSettings is StoreSetting for several documents in one commit, which deletes those with the _ids drop, too, where they are there.
func (e *Engine) ChangeSettings(ctx context.Context, ns namespace.NS, drop []bson.Value, put []bson.Doc, now int64) error {
	o := storage.WriteOptions{Create: true, Now: now, Patience: kv.PatienceOf(ctx), Last: true, OfMember: true}
	return e.Store.Write(ctx, ns, o, func(w *storage.Writer) error {
		for _, id := range drop {
			if err := dropSetting(w, id); err != nil {
				return err
			}
		}
		for _, doc := range put {
			if err := putSetting(w, doc); err != nil {
				return err
			}
		}
		return nil
	})
}

func dropSetting(w *storage.Writer, id bson.Value) error {
	rec, ok, err := w.GetByID(id)
	if !ok || err != nil {
		return err
	}
	return w.Delete(rec.Clone())
}

func putSetting(w *storage.Writer, doc bson.Doc) error {
	old, ok, err := w.GetByID(doc.Lookup("_id"))
	switch {
	case err != nil:
		return err
	case ok:
		_, _, err = w.UpdateAs(oplog.Telling{Form: oplog.Whole}, old.Clone(), doc)
	default:
		_, err = w.Insert(doc)
	}
	return err
}

// AnySetting is the first document of a collection, nil when there is none.
func (e *Engine) AnySetting(ctx context.Context, ns namespace.NS) (bson.Doc, error) {
	return e.readSetting(ctx, ns, func(r *storage.Reader) (doc bson.Doc, err error) {
		c, err := r.Scan(storage.RecordScan{})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		if c.Next() {
			doc = c.Record().Doc.Clone()
		}
		return doc, c.Err()
	})
}

// StoredSetting is the document with the _id, nil when there is none.
func (e *Engine) StoredSetting(ctx context.Context, ns namespace.NS, id bson.Value) (bson.Doc, error) {
	return e.readSetting(ctx, ns, func(r *storage.Reader) (bson.Doc, error) {
		rec, ok, err := r.GetByID(id)
		if !ok || err != nil {
			return nil, err
		}
		return rec.Doc.Clone(), nil
	})
}

// readSetting reads in a collection, which need not be there.
func (e *Engine) readSetting(ctx context.Context, ns namespace.NS, read func(*storage.Reader) (bson.Doc, error)) (bson.Doc, error) {
	view, err := e.Store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	r, ok := view.Collection(ns)
	if !ok {
		return nil, nil
	}
	return read(r)
}
