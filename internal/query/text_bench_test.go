package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/namespace"
)

const benchTexts = 100_000

var benchTextNS = namespace.NS{DB: "test", Coll: "texts"}

// benchTextEngine has a collection of documents of about 300 bytes of text, whose words are as unlike in how common they
// are as those of a language.
func benchTextEngine(b *testing.B) *Engine {
	e := benchOnDisk(b, 0)
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 20_000)
	var words strings.Builder
	benchFill(b, e, benchTextNS, benchTexts, func(i int) bson.Doc {
		words.Reset()
		for words.Len() < 270 {
			fmt.Fprintf(&words, "word%d ", zipf.Uint64())
		}
		return bson.Build().Int32("_id", int32(i)).String("a", words.String()).Doc()
	})
	return e
}

func benchTextIndex(b *testing.B, e *Engine, spec string) {
	start := clock.Wall().Now()
	benchIndexes(b, e, benchTextNS, spec)
	b.ReportMetric(float64(clock.Since(clock.Wall(), start).Microseconds())/benchTexts, "build-µs/doc")
}

// BenchmarkText builds a text index on 100 000 documents and searches it; ns/found is for each document that a search finds.
// Beside it stand the same for one field by value, and a look at all documents.
func BenchmarkText(b *testing.B) {
	e := benchTextEngine(b)
	b.Run("build/value", func(b *testing.B) { benchTextIndex(b, e, `{key: {a: 1}, name: "a"}`) })
	b.Run("build/text", func(b *testing.B) { benchTextIndex(b, e, `{key: {a: "text"}, name: "t"}`) })
	byScore := bson.MustDoc(`{s: {$meta: "textScore"}}`)
	for _, c := range []struct {
		name string
		find Find
	}{
		{"rare", Find{Filter: bson.MustDoc(`{$text: {$search: "word9000"}}`)}},
		{"common", Find{Filter: bson.MustDoc(`{$text: {$search: "word10"}}`)}},
		{"two", Find{Filter: bson.MustDoc(`{$text: {$search: "word10 word20"}}`)}},
		{"two/best10", Find{Filter: bson.MustDoc(`{$text: {$search: "word10 word20"}}`), Sort: byScore, Limit: 10}},
		{"negated", Find{Filter: bson.MustDoc(`{$text: {$search: "word10 -word1"}}`)}},
		{"phrase", Find{Filter: bson.MustDoc(`{$text: {$search: "\"word10 word1\""}}`)}},
		{"regex", Find{Filter: bson.MustDoc(`{a: {$regex: "word9000 "}}`)}},
	} {
		c.find.NS = benchTextNS
		b.Run(c.name, func(b *testing.B) { benchFind(b, e, c.find) })
	}
}

func benchFind(b *testing.B, e *Engine, f Find) {
	found := 0
	for range b.N {
		r, err := e.Find(context.Background(), f, &Call{Now: testTime})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.All(context.Background(), func(bson.Doc) error { found++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(found, 1)), "ns/found")
	b.ReportMetric(float64(found)/float64(b.N), "found")
}
