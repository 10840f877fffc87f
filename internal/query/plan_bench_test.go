package query

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// numbered is a document of the benchmarks.
func numbered(i int) bson.Doc {
	return bson.MustDoc(fmt.Sprintf("{_id: %d, k: %d, g: %d, pad: '................................................................'}", i, i, i%100))
}

// BenchmarkFind finds one document of 10 000 by its _id and by an index, and a hundred by a span of an index.
func BenchmarkFind(b *testing.B) {
	ctx, ns := context.Background(), namespace.NS{DB: "test", Coll: "c"}
	e := benchInMemory(b)
	benchFill(b, e, ns, 10_000, numbered)
	benchIndexes(b, e, ns, "{v: 2, name: 'k', key: {k: 1}}", "{v: 2, name: 'g', key: {g: 1}}")
	for _, c := range []struct {
		name, filter string
		found        int
	}{
		{"id", "{_id: 5000}", 1}, {"index", "{k: 5000}", 1}, {"span", "{k: {$gte: 5000, $lt: 5100}}", 100},
		{"two_indexes", "{k: 5000, g: 0}", 1}, {"alternatives", "{$or: [{k: 5000}, {g: 77}]}", 101},
	} {
		filter := bson.MustDoc(c.filter)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				r, err := e.Find(ctx, Find{NS: ns, Filter: filter}, &Call{Now: testTime})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if err := r.All(ctx, func(bson.Doc) error { n++; return nil }); err != nil || n != c.found {
					b.Fatal(n, err)
				}
			}
		})
	}
}
