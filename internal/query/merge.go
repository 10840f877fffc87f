package query

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Merge implements exec.Catalog.
func (c *stageCatalog) Merge(_ context.Context, op *exec.Op, stage *pipeline.Merge) (exec.Writer, error) {
	target := lookup(c.engine.Store.Catalog(), stage.Into)
	switch {
	case target != nil && target.IsView():
		return nil, notOnView(stage.Into)
	case target != nil && target.IsTimeSeries():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Cannot $merge into the time-series collection %s", stage.Into)
	}
	sparse, ok := onIsUnique(target, stage.On, op.Parser.Collation)
	if !ok {
		return nil, mongoerr.New(51183, "Cannot find index to verify that join fields will be unique").Early()
	}
	return &mergeWriter{catalog: c, stage: stage, sparse: sparse, rules: exec.NewMerging(op, stage)}, nil
}

// onIsUnique says whether an index keeps two documents from having the same values at the paths, in the sense of a collation,
// and whether it is sparse.
func onIsUnique(target *catalog.Collection, on []fieldpath.Path, c *collation.Collation) (sparse, ok bool) {
	if len(on) == 1 && on[0].String() == "_id" {
		return false, true
	}
	if target == nil {
		return false, false
	}
	for _, d := range target.Indexes {
		if d.Unique && d.Kind == index.Ordered && d.PartialFilter == nil && collation.Equal(d.Collator(), c) && samePaths(d.Fields, on) {
			return d.Sparse, true
		}
	}
	return false, false
}

func samePaths(fields []index.Field, on []fieldpath.Path) bool {
	if len(fields) != len(on) {
		return false
	}
	for _, f := range fields {
		found := false
		for _, p := range on {
			found = found || p.String() == f.Path
		}
		if !found {
			return false
		}
	}
	return true
}

// mergeWriter merges documents many at a time.
type mergeWriter struct {
	catalog *stageCatalog
	stage   *pipeline.Merge
	rules   *exec.Merging
	sparse  bool
	batch   batch
}

func (m *mergeWriter) Write(ctx context.Context, doc bson.Doc) error {
	if m.batch.add(doc) {
		return m.flush(ctx)
	}
	return nil
}

func (m *mergeWriter) flush(ctx context.Context) error {
	docs := m.batch.take()
	if len(docs) == 0 {
		return nil
	}
	e, call := m.catalog.engine, m.catalog.call
	var first error
	create := m.stage.WhenNotMatched == "insert"
	err := e.writeOne(ctx, m.stage.Into, create, call, func(w *storage.Writer) error {
		first = nil
		check, err := e.validator(ctx, w.Catalog(), call)
		if err != nil {
			return err
		}
		for _, d := range docs {
			err := m.told(m.merge(ctx, w, d, check))
			if err != nil && !isUserError(err) {
				return err
			}
			if first == nil {
				first = err // the documents behind one that is refused are still merged
			}
		}
		return nil
	})
	if missingCollection(err) {
		_, err = m.rules.NotMatched()
	}
	if err != nil {
		return err
	}
	return first
}

func (m *mergeWriter) merge(ctx context.Context, w *storage.Writer, doc bson.Doc, check validation) error {
	keys, err := m.rules.Keys(doc, m.sparse)
	if err != nil {
		return err
	}
	if m.stage.WhenMatched == "fail" { // as inserting it tells
		return m.insert(w, doc, check)
	}
	old, found, err := m.find(ctx, w, keys)
	switch {
	case err != nil:
		return err
	case found:
		return ofUpdate(m.change(ctx, w, old, doc, check))
	}
	if insert, err := m.rules.NotMatched(); err != nil || !insert {
		return err
	}
	return ofUpdate(m.insert(w, m.rules.NewDocument(doc, keys), check))
}

// ofUpdate is err as one of the update by which MongoDB merges a document.
func ofUpdate(err error) error {
	if err == nil || !isUserError(err) {
		return err
	}
	return mongoerr.During(mongoerr.DuringWrite("update"), err)
}

// change has old become what it is with doc merged into it.
func (m *mergeWriter) change(ctx context.Context, w *storage.Writer, old storage.Record, doc bson.Doc, check validation) error {
	result, write, err := m.rules.Matched(ctx, old.Doc, doc)
	if err != nil || !write {
		return err
	}
	if m.stage.WhenMatched == "replace" {
		e := m.catalog.engine
		if result, err = e.insertable(result, m.catalog.call.Now, false); err != nil {
			return err
		}
	}
	if bson.Compare(old.Doc.Lookup("_id"), bson.Doc(result).Lookup("_id")) != 0 {
		return mongoerr.New(mongoerr.ImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	if err := check.change(old.Doc, result); err != nil {
		return err
	}
	_, _, err = w.UpdateAs(m.telling(), old, bson.Doc(result).Clone())
	return err
}

// telling is how the oplog tells of a document that was merged into another.
func (m *mergeWriter) telling() oplog.Telling {
	switch m.stage.WhenMatched {
	case "replace":
		return oplog.Telling{Form: oplog.Whole}
	case "pipeline":
		return oplog.Telling{Form: oplog.Shorter}
	}
	return oplog.Telling{Aim: &fieldpath.Aim{}} // fields as a whole, as $set has set them
}

func (m *mergeWriter) insert(w *storage.Writer, doc bson.Doc, check validation) error {
	e := m.catalog.engine
	doc, err := e.insertable(doc, m.catalog.call.Now, m.rules.SetsFields())
	if err != nil {
		return err
	}
	if err := check.document(doc); err != nil {
		return err
	}
	_, err = w.Insert(doc)
	return err
}

// told has an error of a unique index, or of an _id that would change, say what it means for the $merge.
func (m *mergeWriter) told(err error) error {
	switch {
	case mongoerr.Is(err, mongoerr.ImmutableField):
		return mongoerr.Prefix("$merge failed to update the matching document, did you attempt to modify the _id or the shard key? :: caused by :: ", err)
	case !mongoerr.Is(err, mongoerr.DuplicateKey):
		return err
	}
	if m.stage.WhenMatched == "fail" && m.takenBy(mongoerr.From(err).Extra.Lookup("keyPattern")) {
		return mongoerr.Prefix("$merge with whenMatched: fail found an existing document with the same values for the 'on' fields :: caused by :: ", err)
	}
	return mongoerr.Prefix("$merge failed due to a DuplicateKey error :: caused by :: ", err)
}

// takenBy says whether the key of an index has the on fields and no others.
func (m *mergeWriter) takenBy(pattern bson.Value) bool {
	if pattern.Type != bson.TypeObject || pattern.Doc().Count() != len(m.stage.On) {
		return false
	}
	for _, p := range m.stage.On {
		if pattern.Doc().Lookup(p.String()).IsMissing() {
			return false
		}
	}
	return true
}

// find is the document whose on fields have the values keys.
func (m *mergeWriter) find(ctx context.Context, w *storage.Writer, keys []bson.Value) (storage.Record, bool, error) {
	if len(keys) == 1 && m.stage.On[0].String() == "_id" {
		if keys[0].IsMissing() {
			return storage.Record{}, false, nil
		}
		rec, ok, err := w.GetByID(keys[0])
		return rec.Clone(), ok, err
	}
	filter := bson.Build()
	for i, p := range m.stage.On {
		filter.Object(p.String()).Value("$eq", keys[i]).End()
	}
	plain := Call{Now: m.catalog.call.Now, Collation: m.catalog.lang.collation, Collated: true}
	lang, err := m.catalog.engine.language(ctx, &plain, w.Catalog())
	if err != nil {
		return storage.Record{}, false, err
	}
	f, err := lang.filter(m.catalog.engine, filter.Doc())
	if err != nil {
		return storage.Record{}, false, err
	}
	rec, _, found, err := m.catalog.engine.first(ctx, w, search{filter: f}, lang, &plain)
	return rec, found, err
}

func (m *mergeWriter) Finish(ctx context.Context) error {
	defer m.rules.Close()
	return m.flush(ctx)
}

func (m *mergeWriter) Abort(context.Context) { m.rules.Close() }
