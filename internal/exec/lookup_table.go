package exec

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// lookupTable is a whole collection in memory, hashed by what one of its paths reaches, as $eq sees it: elements of arrays
// and the arrays themselves, missing as null.
type lookupTable struct {
	docs   []bson.Doc
	byKey  map[string][]int32
	keys   bson.StringKeyer
	key    []byte
	result []int32
}

// loadLookupTable reads the collection; the table, which held counts, is nil when it does not fit the memory.
func loadLookupTable(ctx context.Context, op *Op, ns namespace.NS, p *pipeline.Pipeline, path fieldpath.Path, held *holding) (*lookupTable, error) {
	it, err := op.Catalog.Open(ctx, op, ns, p)
	if err != nil {
		return nil, err
	}
	t, err := fillLookupTable(ctx, op, it, path, held)
	if e := op.end(it); err == nil {
		err = e
	}
	return t, err
}

func fillLookupTable(ctx context.Context, op *Op, it Iterator, path fieldpath.Path, held *holding) (*lookupTable, error) {
	t := &lookupTable{byKey: map[string][]int32{}, keys: op.keys()}
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
		t.docs = append(t.docs, d)
		grown := int64(len(d)) + 64
		path.Walk(d, fieldpath.Traverse, func(v bson.Value, _ int) bool {
			grown += t.enter(v, n)
			return false
		})
		if !held.fits(ctx, grown) {
			return nil, nil
		}
	}
}

func (t *lookupTable) enter(v bson.Value, n int32) int64 {
	t.key = t.keyOf(t.key[:0], v)
	at := t.byKey[string(t.key)]
	if len(at) > 0 && at[len(at)-1] == n {
		return 0
	}
	if at == nil {
		t.byKey[string(t.key)] = []int32{n}
		return int64(len(t.key)) + 64
	}
	t.byKey[string(t.key)] = append(at, n)
	return 8
}

func (t *lookupTable) keyOf(dst []byte, v bson.Value) []byte {
	if v.IsMissing() {
		v = bson.Null
	}
	return bson.AppendCanonical(dst, v, t.keys)
}

// find is the documents that one of the values reaches, in the collection's order.
func (t *lookupTable) find(values []bson.Value) Iterator {
	t.result = t.result[:0]
	for _, v := range values {
		t.key = t.keyOf(t.key[:0], v)
		t.result = append(t.result, t.byKey[string(t.key)]...)
	}
	if len(values) > 1 {
		slices.Sort(t.result)
		t.result = slices.Compact(t.result)
	}
	return &foundDocs{table: t}
}

type foundDocs struct {
	table *lookupTable
	next  int
}

func (f *foundDocs) Next(context.Context) (bson.Doc, error) {
	if f.next == len(f.table.result) {
		return nil, nil
	}
	d := f.table.docs[f.table.result[f.next]]
	f.next++
	return d, nil
}

func (f *foundDocs) Close() error { return nil }
