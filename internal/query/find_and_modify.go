package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// FindAndModify changes or removes one document and gives it back. Its Update has the condition, order and hint even when
// it removes.
type FindAndModify struct {
	Update
	Remove bool
	// New gives back what the document has become and not what it was.
	New        bool
	Projection bson.Doc
}

// Modified is what a FindAndModify did.
type Modified struct {
	// Found says that a document was there; UpsertedID is the _id of the one inserted instead, missing when none was.
	Found      bool
	UpsertedID bson.Value
	// Value is the document asked for, projected; nil when there is none.
	Value bson.Doc
	// Changed says that the document is not what it was.
	Changed bool
}

// FindAndModify runs f. A projection that fails takes back the change.
func (e *Engine) FindAndModify(ctx context.Context, f FindAndModify, call *Call) (Modified, error) {
	if call.ClusterTime == 0 {
		call.ClusterTime = e.ids.clusterTime(call.Now)
	}
	if _, done, err := call.Retry.before(f.NS, call.Statement); err != nil {
		return Modified{}, err
	} else if done {
		return e.modifiedBefore(ctx, f, call)
	}
	if err := f.sortNaturally(); err != nil {
		return Modified{}, err
	}
	call.image = oplog.PreImage
	if f.New {
		call.image = oplog.PostImage
	}
	if err := checkSeriesUpdate(e.lookup(f.NS, call), &f.Update); err != nil && !f.Remove {
		return Modified{}, err
	}
	var done Modified
	err := e.writeOne(ctx, f.NS, f.Upsert, call, func(w *storage.Writer) (err error) {
		done, err = e.modifyOne(ctx, w, f, call)
		return err
	})
	if missingCollection(err) {
		return Modified{}, e.checkFindAndModify(ctx, f, call)
	}
	if err != nil {
		return Modified{}, err
	}
	found, changed := int64(0), int64(0)
	if done.Found {
		found = 1
	}
	if done.Changed {
		changed = 1
	}
	if f.Remove {
		call.stage("DELETE", found)
	} else {
		call.stage("UPDATE", found, changed, int64(1)-max(found, missing(done.UpsertedID)))
	}
	return done, nil
}

// missing is 1 for no value.
func missing(v bson.Value) int64 {
	if v.IsMissing() {
		return 1
	}
	return 0
}

// checkFindAndModify parses f for its errors alone.
func (e *Engine) checkFindAndModify(ctx context.Context, f FindAndModify, call *Call) error {
	r, err := e.returnedFields(ctx, nil, f, call)
	if err != nil {
		return err
	}
	if f.Remove {
		_, err = r.lang.filter(e, f.Filter)
		return err
	}
	return e.checkUpdate(ctx, f.Update, call)
}

func (e *Engine) modifyOne(ctx context.Context, w *storage.Writer, f FindAndModify, call *Call) (Modified, error) {
	fields, err := e.returnedFields(ctx, w.Catalog(), f, call)
	if err != nil {
		return Modified{}, err
	}
	f.scored, f.projected = readsScore(fields.project), fields.project != nil
	if f.Remove {
		return e.removeOne(ctx, w, f, fields, call)
	}
	u, err := e.updateOne(ctx, w, f.Update, call)
	if err != nil {
		return Modified{}, err
	}
	done := Modified{Found: u.Matched > 0, UpsertedID: u.UpsertedID, Changed: u.Modified > 0}
	if f.New {
		done.Value, err = fields.of(u.After, u.details)
	} else {
		done.Value, err = fields.of(u.Before, u.details)
	}
	return done, err
}

func (e *Engine) removeOne(ctx context.Context, w *storage.Writer, f FindAndModify, fields *returned, call *Call) (Modified, error) {
	d := Delete{NS: f.NS, Filter: f.Filter, Sort: f.Sort, Hint: f.Hint, scored: f.scored, projected: f.projected}
	rec, details, found, err := e.firstToDelete(ctx, w, d, fields.lang, call)
	if err != nil || !found {
		return Modified{}, err
	}
	if err := w.Delete(rec); err != nil {
		return Modified{}, err
	}
	done := Modified{Found: true, Changed: true}
	done.Value, err = fields.of(rec.Doc, details)
	return done, err
}

// returned makes what a client gets to see out of a document.
type returned struct {
	lang    *language
	project *projection.Projection // nil: all of it
}

func (e *Engine) returnedFields(ctx context.Context, coll *catalog.Collection, f FindAndModify, call *Call) (*returned, error) {
	lang, err := e.language(ctx, call, coll)
	if err != nil {
		return nil, err
	}
	r := &returned{lang: lang}
	if f.Projection.IsEmpty() {
		return r, nil
	}
	filter, err := lang.filter(e, f.Filter)
	if err != nil {
		return nil, err
	}
	r.project, err = e.projections.Parse(f.Projection, projection.Options{Mode: projection.Find, Exprs: lang.exprs, Scope: lang.scope,
		Collation: lang.collation, Filter: filter.Source})
	switch {
	case err != nil:
		return nil, err
	case r.project.Positional() && f.New:
		return nil, mongoerr.New(mongoerr.BadValue, "cannot use a positional projection and return the new document")
	}
	if readsScore(r.project) && filter.Text() == nil {
		return nil, noTextScore()
	}
	for _, m := range r.project.Dependencies().Meta {
		if m == "sortKey" {
			return nil, mongoerr.New(mongoerr.BadValue, "Cannot use a $meta sortKey projection in findAndModify commands.")
		}
	}
	return r, nil
}

// matched is where a document matches, which a positional projection asks for.
func (r *returned) matched(e *Engine, condition, doc bson.Doc) (*match.Details, error) {
	details := &match.Details{Position: -1}
	if r.project == nil || !r.project.Positional() {
		return details, nil
	}
	filter, err := r.lang.filter(e, condition)
	if err == nil {
		_, err = filter.MatchDetails(r.lang.env, doc, details)
	}
	return details, err
}

// of is nil for a document that is not there.
func (r *returned) of(doc bson.Doc, details *match.Details) (bson.Doc, error) {
	if doc == nil || r.project == nil {
		return doc, nil
	}
	env := r.lang.exprs.NewEnv()
	env.Meta = metadata(details)
	out, err := r.project.Apply(nil, doc, env, details)
	if err == nil {
		err = exec.CheckDepth(out)
	}
	return out, err
}
