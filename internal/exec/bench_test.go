package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/pipeline"
)

// benchDocs are documents of about 300 bytes.
func benchDocs(n int) []bson.Doc {
	docs := make([]bson.Doc, n)
	for i := range docs {
		docs[i] = bson.Build().Int32("_id", int32(i)).String("name", fmt.Sprintf("document number %d", i)).
			String("pad", "................................................................................................").
			Int32("group", int32(i*7919%1000)).Double("price", float64(i%997)*1.25).Date("at", int64(i)*1000).
			Object("in").Int32("a", int32(i)).String("b", "xyzxyzxyz").End().Int64("n", int64(i)*2654435761%1000003).Doc()
	}
	return docs
}

type looped struct {
	docs []bson.Doc
	next int
}

func (l *looped) Next(context.Context) (bson.Doc, error) {
	if l.next == len(l.docs) {
		return nil, nil
	}
	d := l.docs[l.next]
	l.next++
	return d, nil
}

func (l *looped) Close() error { return nil }

// BenchmarkStages runs each pipeline over 100 000 documents in memory; ns/doc is for each of them.
func BenchmarkStages(b *testing.B) {
	docs := benchDocs(100_000)
	for _, c := range []struct{ name, stages string }{
		{"match", `[{$match: {n: {$lt: 0}}}]`},
		{"group_sum", `[{$group: {_id: "$group", sum: {$sum: "$price"}}}]`},
		{"group_many", `[{$group: {_id: "$n", sum: {$sum: "$price"}, c: {$sum: 1}, max: {$max: "$at"}}}]`},
		{"group_compound", `[{$group: {_id: {g: "$group", n: "$in.a"}, avg: {$avg: "$price"}}}]`},
		{"group_push", `[{$group: {_id: "$group", all: {$push: "$n"}}}]`},
		{"sort", `[{$sort: {n: 1}}]`},
		{"sort_limit", `[{$sort: {n: 1}}, {$limit: 10}]`},
		{"project", `[{$project: {name: 1, twice: {$multiply: ["$price", 2]}}}]`},
		{"addFields", `[{$addFields: {"in.c": "$n"}}]`},
		{"window", `[{$setWindowFields: {partitionBy: "$group", sortBy: {n: 1}, output: {s: {$sum: "$price", window: {documents: [-10, 0]}}}}}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				op := newTestOp(&collections{}, nil)
				op.TempDir = b.TempDir()
				p, err := op.Parser.Parse(bson.MustParse(c.stages), pipeline.Options{NS: namespace.NS{DB: "db", Coll: "c"}})
				if err != nil {
					b.Fatal(err)
				}
				it, err := Build(op, p, &looped{docs: docs})
				if err != nil {
					b.Fatal(err)
				}
				for {
					d, err := it.Next(context.Background())
					if err != nil {
						b.Fatal(err)
					}
					if d == nil {
						break
					}
				}
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(docs)), "ns/doc")
		})
	}
}
