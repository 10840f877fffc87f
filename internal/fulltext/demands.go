package fulltext

import (
	"math"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// Demands is a filter in the language of queries that whatever the query finds meets, so that an ordinary index may find it: the values that it
// has to have. It is empty where that is nothing.
func (q *Query) Demands(d *mapping.Definition) bson.Doc {
	if q.within != "" {
		return bson.EmptyDoc
	}
	w := &demands{fields: d.Root, b: bson.Build().Array("$and")}
	w.of(q.operator)
	if w.b.End(); w.n == 0 {
		return bson.EmptyDoc
	}
	return w.b.Doc()
}

// demands writes what operators ask for that has to be.
type demands struct {
	fields *mapping.Document
	b      *bson.Builder
	n      int
}

func (w *demands) of(op operator) {
	switch op := op.(type) {
	case *modifier:
		w.of(op.op)
	case *compoundOperator:
		for _, list := range [][]operator{op.filter, op.must} {
			for _, each := range list {
				w.of(each)
			}
		}
	case *equals:
		if len(op.paths) == 1 && w.same(op.paths[0], op.values...) {
			w.add(op.paths[0], func() {
				w.b.Array("$in")
				for i, v := range op.values {
					w.b.Value(bson.IndexKey(i), v)
				}
				w.b.End()
			})
		}
	case *between:
		if len(op.paths) == 1 && w.same(op.paths[0], op.low, op.high) {
			w.add(op.paths[0], func() { op.write(w.b) })
		}
	}
}

func (w *demands) add(path string, write func()) {
	w.b.Object(bson.IndexKey(w.n)).Object(path)
	write()
	w.b.End().End()
	w.n++
}

// write appends the ends of a range.
func (b *between) write(to *bson.Builder) {
	for _, end := range []struct {
		v             bson.Value
		without, with string
		open          bool
	}{{b.low, "$gt", "$gte", b.above}, {b.high, "$lt", "$lte", b.below}} {
		switch {
		case end.v.IsMissing():
		case end.open:
			to.Value(end.without, end.v)
		default:
			to.Value(end.with, end.v)
		}
	}
}

// maxExact bounds the whole numbers that doubles hold: beyond it, numbers are the same to an index here that are not to others.
const maxExact = 1 << 53

// same says whether values at a path mean the same to a query and to the index.
func (w *demands) same(path string, values ...bson.Value) bool {
	f := w.fields.Field(path)
	if f == nil {
		return false
	}
	for _, v := range values {
		switch kindOf(v) {
		case numberKind:
			if f.Number == nil || f.Number.Int64 || !(math.Abs(v.AsDouble()) < maxExact) {
				return false
			}
		case stringKind:
			if f.Token == nil || f.Token.Lowercase {
				return false
			}
		case boolKind, dateKind, objectIDKind, uuidKind:
		default:
			if !v.IsMissing() {
				return false // of null, queries find what is missing, too
			}
		}
	}
	return true
}
