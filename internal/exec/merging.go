package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// Merging says what becomes of the documents of a $merge. The Writer of Catalog.Merge finds the document to merge with by
// Keys, asks Matched or NotMatched, and writes.
type Merging struct {
	op    *Op
	sub   *Op
	stage *pipeline.Merge
	keys  []bson.Value
	buf   []byte
}

// NewMerging returns the rules of stage.
func NewMerging(op *Op, stage *pipeline.Merge) *Merging {
	return &Merging{op: op, sub: op.Sub(), stage: stage}
}

// Keys are the values of the on fields in doc, in the order of stage.On. A missing one is null, unless it is _id, which the
// writer makes up. sparse says that the unique index is sparse, so that it cannot find documents without the field.
// It is asked for each document, and so tells of a pipeline that no update may have, too.
func (m *Merging) Keys(doc bson.Doc, sparse bool) ([]bson.Value, error) {
	m.keys = m.keys[:0]
	for _, path := range m.stage.On {
		v := path.Get(doc)
		if v.Type == bson.TypeArray || v.IsMissing() && path.Len() > 1 && throughArray(doc, path.First()) {
			return nil, mongoerr.New(51185, "$merge write error: 'on' field '%s' is an array", path)
		}
		if v.IsNullish() && path.String() != "_id" {
			if sparse {
				return nil, mongoerr.New(51132, "$merge write error: 'on' field cannot be missing, null or undefined if supporting index is sparse")
			}
			v = bson.Null
		}
		m.keys = append(m.keys, v)
	}
	return m.keys, m.stage.CheckUpdate()
}

func throughArray(doc bson.Doc, first string) bool { return doc.Lookup(first).Type == bson.TypeArray }

// Matched is what old, the document that was found, becomes by doc. write is false when it stays; err says that the $merge
// fails. The result is good until the next call.
func (m *Merging) Matched(ctx context.Context, old, doc bson.Doc) (result bson.Doc, write bool, err error) {
	switch m.stage.WhenMatched {
	case "keepExisting":
		return nil, false, nil
	case "replace":
		m.buf = withID(m.buf[:0], doc, old.Lookup("_id"))
		return m.buf, true, nil
	case "merge":
		m.buf = mergeTop(m.buf[:0], old, doc)
		return m.buf, true, nil
	}
	env := m.op.Env
	env.Reset()
	env.Root = doc
	for _, l := range m.stage.Let {
		v, err := l.Expr.Eval(env)
		if err != nil {
			return nil, false, err
		}
		if v.IsMissing() && l.Used {
			return nil, false, mongoerr.New(17276, "Use of undefined variable: %s", l.Name)
		}
		m.sub.Env.Set(l.Slot, v.Clone())
	}
	it, err := Build(m.sub, m.stage.Pipeline, &single{old})
	if err != nil {
		return nil, false, err
	}
	defer it.Close()
	out, err := it.Next(ctx)
	if err != nil {
		return nil, false, err
	}
	m.buf = withID(m.buf[:0], out, old.Lookup("_id"))
	return m.buf, true, nil
}

// NewDocument is what is inserted for doc, whose Keys are keys, when nothing was found. When matching documents would have
// been merged or kept, the insert is an upsert of single fields: the on fields that doc lacks are null, and the others
// follow _id in the order of their names.
func (m *Merging) NewDocument(doc bson.Doc, keys []bson.Value) bson.Doc {
	if !m.SetsFields() {
		return doc
	}
	names, values := []string{}, map[string]bson.Value{}
	put := func(name string, v bson.Value) {
		if _, known := values[name]; !known && name != "_id" {
			names = append(names, name)
		}
		values[name] = v
	}
	for it := doc.Iter(); it.Next(); {
		put(it.Key(), it.Value())
	}
	for i, path := range m.stage.On {
		if path.Len() == 1 && doc.Lookup(path.First()).IsMissing() && path.First() != "_id" {
			put(path.First(), keys[i])
		}
	}
	slices.Sort(names)
	var b bson.Builder
	b.Reset(nil)
	b.Value("_id", values["_id"])
	for _, name := range names {
		b.Value(name, values[name])
	}
	return b.Doc()
}

// SetsFields says whether documents are merged field by field, also into one that is made for them. Otherwise they, or what a
// pipeline made of them, come in as they are.
func (m *Merging) SetsFields() bool {
	return m.stage.WhenMatched == "merge" || m.stage.WhenMatched == "keepExisting"
}

// NotMatched says whether doc is inserted when nothing was found for it.
func (m *Merging) NotMatched() (insert bool, err error) {
	switch m.stage.WhenNotMatched {
	case "discard":
		return false, nil
	case "fail":
		return false, mongoerr.New(13113, "$merge could not find a matching document in the target collection for at least one document in the source collection")
	}
	return true, nil
}

// Close ends the Merging.
func (m *Merging) Close() { m.op.Drop(m.sub) }

// withID is doc with id in front when it has none of its own.
func withID(dst []byte, doc bson.Doc, id bson.Value) []byte {
	if !doc.Lookup("_id").IsMissing() || id.IsMissing() {
		return append(dst, doc...)
	}
	var b bson.Builder
	b.Reset(dst)
	return b.Value("_id", id).Fields(doc).Bytes()
}

// mergeTop is old with the fields of doc over it, at the top level only.
func mergeTop(dst []byte, old, doc bson.Doc) []byte {
	var b bson.Builder
	b.Reset(dst)
	for it := old.Iter(); it.Next(); {
		v := doc.Lookup(it.Key())
		if v.IsMissing() {
			v = it.Value()
		}
		b.Value(it.Key(), v)
	}
	for it := doc.Iter(); it.Next(); {
		if old.Lookup(it.Key()).IsMissing() {
			b.Value(it.Key(), it.Value())
		}
	}
	return b.Bytes()
}

// single gives one document.
type single struct{ doc bson.Doc }

func (s *single) Next(context.Context) (bson.Doc, error) {
	d := s.doc
	s.doc = nil
	return d, nil
}

func (s *single) Close() error { return nil }

// FromDocs gives documents that lie in memory.
func FromDocs(docs []bson.Doc) Iterator { return &fromDocs{docs} }

type fromDocs struct{ docs []bson.Doc }

func (f *fromDocs) Next(context.Context) (bson.Doc, error) {
	if len(f.docs) == 0 {
		return nil, nil
	}
	d := f.docs[0]
	f.docs = f.docs[1:]
	return d, nil
}

func (f *fromDocs) Close() error { return nil }
