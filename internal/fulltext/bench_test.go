package fulltext

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// BenchmarkSearch goes through a thousand documents of a hundred words.
func BenchmarkSearch(b *testing.B) {
	const documents, words, vocabulary = 1000, 100, 5000
	random := rand.New(rand.NewPCG(1, 1))
	c := &corpus{}
	size := 0
	for i := range documents {
		var text strings.Builder
		for range words {
			fmt.Fprintf(&text, "word%d ", int(random.ExpFloat64()*vocabulary/10))
		}
		d := bson.Build().Int32("_id", int32(i)).String("title", text.String()).Int32("n", int32(i)).Doc()
		size += len(d)
		c.docs = append(c.docs, d)
	}
	definition, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true, fields: {kw: {type: "string", analyzer: "lucene.english"}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	c.definition = definition
	for _, q := range []struct{ name, spec string }{
		{"term", `{text: {query: "word7", path: "title"}}`},
		{"words", `{text: {query: "word7 word8 word9 word10", path: "title"}}`},
		{"phrase", `{phrase: {query: "word1 word2", path: "title"}}`},
		{"fuzzy", `{text: {query: "word77", path: "title", fuzzy: {maxEdits: 1}}}`},
		{"wildcard path", `{text: {query: "word7", path: {wildcard: "*"}}}`},
		{"range", `{range: {path: "n", gte: 500}}`},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.run(bson.MustDoc(q.spec), false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
