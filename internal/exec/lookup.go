package exec

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// lookupStage is $lookup. How the other collection is read for each document:
//
//   - a pipeline that does not depend on the document, nor on chance, runs once, and its result is kept as long as it fits the
//     memory;
//   - an equality without a pipeline and without an index hashes the other collection once, see lookupTable;
//   - everything else opens the pipeline anew, with the equality as a $match in front that a plan may use an index for.
type lookupStage struct {
	op    *Op
	stage *pipeline.Lookup
	in    Iterator

	base  *pipeline.Pipeline
	sub   *Op
	ready bool
	// loading says that the table is being filled.
	loading bool
	table   *lookupTable
	kept    bson.Value // the result for every document, when it is one
	values  []bson.Value

	// The $unwind that was taken over: the document under way and what joins it.
	doc   []byte
	other Iterator
	index int64

	array    arrayOf
	held     holding // by the table and what is kept
	buf, tmp []byte
	pinned   pinned // doc, where it is joined to one after the other
}

// maxJoined is how many bytes of documents may join one document.
const maxJoined = 100 << 20

func newLookup(op *Op, s *pipeline.Lookup, in Iterator) Iterator {
	base := s.Pipeline
	if base == nil {
		base = &pipeline.Pipeline{NS: s.From}
	}
	l := &lookupStage{op: op, stage: s, in: in, base: base, held: holding{op: op}, pinned: pinned{holding{op: op}}}
	op.holds(l)
	return l
}

// prepare decides, at the first document, how the other collection is read.
func (s *lookupStage) prepare(ctx context.Context) error {
	s.ready = true
	if s.sub == nil {
		s.sub = s.op.Sub()
		s.sub.draws = s.base.Random()
	}
	plain := s.stage.Equal && len(s.stage.Let) == 0 && len(s.base.Stages) == 0
	if !plain || s.op.Catalog.Indexed(ctx, s.sub, s.stage.From, s.stage.Foreign.String()) {
		return nil
	}
	var err error
	s.loading = true
	s.table, err = loadLookupTable(ctx, s.sub, s.stage.From, s.base, s.stage.Foreign, &s.held)
	s.loading = false
	if s.table == nil || s.sub.draws {
		s.table = nil
		s.held.empty()
	}
	return err
}

func (s *lookupStage) Next(ctx context.Context) (bson.Doc, error) {
	if s.stage.Unwind != nil {
		return s.nextUnwound(ctx)
	}
	d, err := s.in.Next(ctx)
	if d == nil {
		return nil, err
	}
	found, err := s.collect(ctx, d)
	if err != nil {
		return nil, err
	}
	out := setPath(s.buf[:0], d, s.stage.As, found)
	s.buf, s.array.buf = reusable(out), reusable(s.array.buf)
	return out, s.op.carry(ctx, len(out))
}

// Shrink implements Shrinker: what was read of the other collection can be read again.
func (s *lookupStage) Shrink() error {
	if s.held.bytes >= minShrink && s.other == nil && !s.loading {
		s.table, s.kept, s.ready = nil, bson.Missing, false
		s.held.empty()
	}
	return nil
}

// collect is the array of documents that join d.
func (s *lookupStage) collect(ctx context.Context, d bson.Doc) (bson.Value, error) {
	if !s.kept.IsMissing() {
		return s.kept, nil
	}
	it, err := s.open(ctx, d)
	if err != nil {
		return bson.Missing, err
	}
	s.array.reset()
	err = Each(ctx, it, func(f bson.Doc) error {
		if s.array.add(f.Value()); len(s.array.buf) > maxJoined {
			return mongoerr.New(4568, "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", s.stage.From.Coll, maxJoined)
		}
		return s.op.carry(ctx, len(s.array.buf))
	})
	if e := s.sub.end(it); err == nil {
		err = e
	}
	if err != nil {
		return bson.Missing, err
	}
	found := s.array.value()
	if !s.stage.Equal && len(s.stage.Let) == 0 && !s.sub.draws {
		if err := s.held.wait(ctx, int64(len(found.Data))); err != nil {
			return bson.Missing, err
		}
		s.kept = found.Clone()
		found = s.kept
	}
	return found, nil
}

// open is the documents that join d. d is not used any more when it returns.
func (s *lookupStage) open(ctx context.Context, d bson.Doc) (Iterator, error) {
	if !s.ready {
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { clear(s.values) }() // which lie in d
	if s.table != nil {
		s.values = localValues(s.values[:0], d, s.stage.Local)
		return s.table.find(s.values)
	}
	env := s.op.Env
	env.Reset()
	env.Root = d
	for _, l := range s.stage.Let {
		v, err := l.Expr.Eval(env)
		if err != nil {
			return nil, err
		}
		s.sub.Env.Set(l.Slot, v.Clone())
	}
	p := s.base
	if s.stage.Equal {
		s.values = localValues(s.values[:0], d, s.stage.Local)
		f, err := s.op.equalsOne(s.stage.Foreign.String(), s.values)
		if err != nil {
			return nil, err
		}
		p = p.Where(f)
	}
	return s.op.Catalog.Open(ctx, s.sub, s.stage.From, p)
}

// localValues are what joins: the values at path, elements of arrays each for itself; null when there is nothing.
func localValues(dst []bson.Value, d bson.Doc, path fieldpath.Path) []bson.Value {
	path.Walk(d, fieldpath.Elements, func(v bson.Value, _ int) bool {
		if !v.IsMissing() {
			dst = append(dst, v)
		}
		return false
	})
	if len(dst) == 0 {
		dst = append(dst, bson.Null)
	}
	return dst
}

// equalsOne is the filter for documents whose path equals one of the values. $in would take regular expressions for
// patterns, so they stand in an $or.
func (op *Op) equalsOne(path string, values []bson.Value) (*match.Filter, error) {
	b := bson.Build()
	switch {
	case len(values) == 1:
		b.Object(path).Value("$eq", values[0]).End()
	case hasRegex(values):
		b.Array("$or")
		for i, v := range values {
			b.Object(bson.IndexKey(i)).Object(path).Value("$eq", v).End().End()
		}
		b.End()
	default:
		b.Object(path).Value("$in", bson.ArrayOf(values...)).End()
	}
	return op.Parser.Filters.Parse(b.Doc(), match.Options{Collation: op.collation(), Exprs: op.Parser.Exprs, Allow: match.AllowMatch})
}

func hasRegex(values []bson.Value) bool {
	for _, v := range values {
		if v.Type == bson.TypeRegex {
			return true
		}
	}
	return false
}

// nextUnwound gives a document for each one that joins, as a $unwind of the result would.
func (s *lookupStage) nextUnwound(ctx context.Context) (bson.Doc, error) {
	for {
		if s.other != nil {
			f, err := s.other.Next(ctx)
			if err != nil {
				return nil, err
			}
			if f != nil {
				d := s.unwound(f.Value(), bson.Int64(s.index))
				s.index++
				return d, nil
			}
			if err := s.closeOther(); err != nil {
				return nil, err
			}
			if s.index == 0 && s.stage.Unwind.Preserve {
				return s.unwound(bson.Missing, bson.Null), nil
			}
		}
		d, err := s.in.Next(ctx)
		if d == nil {
			return nil, err
		}
		s.doc = append(reusable(s.doc)[:0], d...)
		s.index = 0
		if err := s.pinned.pin(ctx, len(s.doc)); err != nil {
			return nil, err
		}
		if s.other, err = s.open(ctx, s.doc); err != nil {
			s.other = nil
			return nil, err
		}
	}
}

func (s *lookupStage) unwound(v, index bson.Value) bson.Doc {
	d := s.doc
	if v.IsMissing() { // as of an empty array that was there: documents on the way are made
		d = setPath(s.tmp[:0], d, s.stage.As, bson.EmptyArr)
		s.tmp = reusable(d)
	}
	out := setPath(s.buf[:0], d, s.stage.As, v)
	s.buf = reusable(out)
	if s.stage.Unwind.Index.Len() == 0 {
		return out
	}
	indexed := setPath(s.tmp[:0], out, s.stage.Unwind.Index, index)
	s.tmp = reusable(indexed)
	return indexed
}

func (s *lookupStage) closeOther() error {
	it := s.other
	s.other = nil
	return s.sub.end(it)
}

func (s *lookupStage) Close() error {
	var err error
	if s.other != nil {
		err = s.closeOther()
	}
	if s.sub != nil {
		s.op.Drop(s.sub)
	}
	s.table, s.kept = nil, bson.Missing
	s.pinned.empty()
	s.held.empty()
	if e := s.in.Close(); err == nil {
		err = e
	}
	return err
}
