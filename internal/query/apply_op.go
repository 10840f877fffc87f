package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// LoggedChange is a change of a document as the oplog tells of it.
type LoggedChange struct {
	// Op is i, u or d.
	Op byte
	NS namespace.NS
	// Object is the document, or what has changed of it, or for d its _id; Object2 has the _id of a document that is changed.
	Object, Object2 bson.Doc
	// Upsert has a document be made where there is none to change.
	Upsert bool
	// Replayed says that an oplog has it, and not a client made it up. Who copies documents while they are written, and then does what
	// was logged meanwhile, comes by updates of documents that were deleted before it copied them.
	Replayed bool
}

// ApplyChange does a change again, of which it does not matter whether it was done before: an insert takes the place of a document
// with its _id, and a delete need not find one, nor an update that is replayed. Documents are validated unless call bypasses that. found is false for another update of a document that
// is not there.
func (e *Engine) ApplyChange(ctx context.Context, l LoggedChange, call *Call) (found bool, err error) {
	from := l.Object
	if l.Op == 'u' {
		from = l.Object2
	}
	if from.Lookup("_id").IsMissing() {
		return false, mongoerr.New(mongoerr.NoSuchKey, "Failed to apply %s due to missing _id: %s", map[byte]string{'i': "insert", 'u': "update", 'd': "delete"}[l.Op], from)
	}
	err = e.write(ctx, l.NS, false, call, func(w *storage.Writer) error {
		old, ok, err := find(l.target(w), from)
		if err != nil {
			return err
		}
		found, err = e.applyTo(ctx, w, l, old.Clone(), ok, call)
		return err
	})
	if l.Op == 'd' && missingCollection(err) {
		return true, nil
	}
	return found, err
}

// find finds the document that an operation is about by its key, which is the _id; the key of a measurement has more, but for what older versions
// have logged.
func find(r *storage.Reader, key bson.Doc) (rec storage.Record, ok bool, err error) {
	if t := r.Catalog().Options.TimeSeries; t != nil && key.Lookup(t.TimeField).Type == bson.TypeDate {
		return r.GetMeasurement(key)
	}
	return r.GetByID(key.Lookup("_id"))
}

// target is where the document that is changed is looked for. What an oplog tells was done while the document could be seen, or because it had
// expired: it is done again where the document is hidden by now, too. An insert takes the place of what is hidden as any other does.
func (l *LoggedChange) target(w *storage.Writer) *storage.Reader {
	if l.Replayed && l.Op != 'i' {
		return w.Unhidden()
	}
	return w.Reader
}

// applyTo does the change to old, which is there if ok says so.
func (e *Engine) applyTo(ctx context.Context, w *storage.Writer, l LoggedChange, old storage.Record, ok bool, call *Call) (found bool, err error) {
	switch {
	case l.Op == 'd' && ok:
		return true, w.Delete(old)
	case l.Op == 'd':
		return true, nil
	case l.Op == 'u' && !ok && !l.Upsert:
		return l.Replayed, nil
	}
	doc := l.Object
	if l.Op == 'u' {
		if doc, err = l.changed(old.Doc); err != nil {
			return false, err
		}
	}
	if doc, err = e.insertable(doc, call.Now, true); err != nil {
		return false, err
	}
	if t := w.Catalog().Options.TimeSeries; t != nil {
		if doc, err = measurement(t, doc, l.Replayed); err != nil {
			return false, err
		}
	}
	valid, err := e.validator(ctx, w.Catalog(), call)
	if err != nil {
		return false, err
	}
	if ok {
		if err = valid.change(old.Doc, doc); err != nil {
			return false, err
		}
		_, _, err = w.UpdateAs(oplog.Telling{Form: l.form()}, old, doc)
		return true, err
	}
	if err = valid.document(doc); err != nil {
		return false, err
	}
	_, err = w.Insert(doc)
	return true, err
}

// form is how an update was told of, and is again: what changed a document was no replacement.
func (l *LoggedChange) form() oplog.Form {
	if l.Op == 'u' && !l.Object.Lookup("$v").IsMissing() {
		return oplog.Delta
	}
	return oplog.Whole
}

// changed is what an update makes of old, which is nil where there is none.
func (l *LoggedChange) changed(old bson.Doc) (bson.Doc, error) {
	id := l.Object2.Lookup("_id")
	version, diff := l.Object.Lookup("$v"), l.Object.Lookup("diff")
	switch {
	case version.IsMissing() && len(l.Object.FirstKey()) > 0 && l.Object.FirstKey()[0] == '$':
		return nil, mongoerr.New(4772600, "Expected _id field or $v:2 in update entry, but got: %s", l.Object)
	case !version.IsMissing():
		if n, exact := version.AsInt64(); !exact || n != 2 || diff.Type != bson.TypeObject {
			return nil, mongoerr.New(4772600, "Expected $v:2 with a diff, but got: %s", l.Object)
		}
		if old == nil {
			old = bson.Build().Value("_id", id).Doc()
		}
		return oplog.Apply(old, diff.Doc())
	case l.Object.Lookup("_id").IsMissing():
		return bson.BuildOn(nil).Value("_id", id).Fields(l.Object).Doc(), nil
	}
	return l.Object, nil
}
