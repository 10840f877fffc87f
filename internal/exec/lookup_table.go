package exec

import (
	"cmp"
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ordering"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// lookupTable is a whole collection in memory, hashed by what one of its paths reaches, as $eq sees it: elements of arrays
// and the arrays themselves, missing as null.
//
// A search looks at each key once and takes each document once, however often its values name them: an array may name one
// key a million times, and each of a million keys may reach the same documents.
type lookupTable struct {
	docs   []lookupDoc
	byKey  map[string]*lookupKey
	keys   bson.StringKeyer
	key    []byte
	search int // the number of the last one
	result []int32
	// ask says why the work has to end, once in stepsPerAsk steps.
	ask   func() error
	steps int
}

// lookupDoc is a document, and the search that took it last.
type lookupDoc struct {
	doc    bson.Doc
	search int
}

// lookupKey is the documents that a key reaches, and the search that looked at it last.
type lookupKey struct {
	docs   []int32
	search int
}

const (
	// stepsPerAsk is how many values and documents are looked at between two questions.
	stepsPerAsk = 1024
	// lookupKeyBytes is about what a key takes beside its bytes and its documents, lookupDocBytes what a document does.
	lookupKeyBytes = 80
	lookupDocBytes = 72
)

// loadLookupTable reads the collection; the table, which held counts, is nil when it does not fit the memory.
func loadLookupTable(ctx context.Context, op *Op, ns namespace.NS, p *pipeline.Pipeline, path fieldpath.Path, held *holding) (*lookupTable, error) {
	it, err := op.Catalog.Open(ctx, op, ns, p)
	if err != nil {
		return nil, err
	}
	t, err := fillLookupTable(ctx, newLookupTable(op.keys(), op.Interrupted), it, path, held)
	if e := op.end(it); err == nil {
		err = e
	}
	return t, err
}

func newLookupTable(keys bson.StringKeyer, ask func() error) *lookupTable {
	return &lookupTable{byKey: map[string]*lookupKey{}, keys: keys, ask: ask}
}

func fillLookupTable(ctx context.Context, t *lookupTable, it Iterator, path fieldpath.Path, held *holding) (*lookupTable, error) {
	for {
		d, err := it.Next(ctx)
		if err != nil {
			return nil, err
		}
		if d == nil {
			return t, nil
		}
		if err := interrupted(ctx); err != nil {
			return nil, err
		}
		n := int32(len(t.docs))
		d = d.Clone()
		t.docs = append(t.docs, lookupDoc{doc: d})
		grown := int64(len(d)) + lookupDocBytes
		path.Walk(d, fieldpath.Traverse, func(v bson.Value, _ int) bool {
			grown += t.enter(v, n)
			err = t.step()
			return err != nil
		})
		if err != nil {
			return nil, err
		}
		if !held.fits(ctx, grown) {
			return nil, nil
		}
	}
}

// step counts one, and says why the work has to end.
func (t *lookupTable) step() error {
	if t.steps++; t.steps%stepsPerAsk != 0 {
		return nil
	}
	return t.ask()
}

func (t *lookupTable) enter(v bson.Value, n int32) int64 {
	t.key = t.keyOf(t.key[:0], v)
	at := t.byKey[string(t.key)]
	if at == nil {
		t.byKey[string(t.key)] = &lookupKey{docs: []int32{n}}
		return int64(len(t.key)) + lookupKeyBytes
	}
	if at.docs[len(at.docs)-1] == n {
		return 0
	}
	at.docs = append(at.docs, n)
	return 8
}

func (t *lookupTable) keyOf(dst []byte, v bson.Value) []byte {
	if v.IsMissing() {
		v = bson.Null
	}
	return bson.AppendCanonical(dst, v, t.keys)
}

// find is the documents that one of the values reaches, in the collection's order.
func (t *lookupTable) find(values []bson.Value) (Iterator, error) {
	t.result = t.result[:0]
	t.search++
	for _, v := range values {
		if err := t.step(); err != nil {
			return nil, err
		}
		t.key = t.keyOf(t.key[:0], v)
		if at := t.byKey[string(t.key)]; at != nil && at.search != t.search {
			at.search = t.search
			if err := t.take(at.docs); err != nil {
				return nil, err
			}
		}
	}
	t.key = reusable(t.key)
	if len(values) > 1 {
		if err := ordering.Any(t.result, cmp.Compare[int32], t.ask); err != nil {
			return nil, err
		}
	}
	return &foundDocs{table: t}, nil
}

// take adds documents to the result that are not in it.
func (t *lookupTable) take(docs []int32) error {
	for _, n := range docs {
		if err := t.step(); err != nil {
			return err
		}
		if d := &t.docs[n]; d.search != t.search {
			d.search = t.search
			t.result = append(t.result, n)
		}
	}
	return nil
}

type foundDocs struct {
	table *lookupTable
	next  int
}

func (f *foundDocs) Next(context.Context) (bson.Doc, error) {
	if f.next == len(f.table.result) {
		return nil, nil
	}
	d := f.table.docs[f.table.result[f.next]].doc
	f.next++
	return d, nil
}

func (f *foundDocs) Close() error { return nil }
