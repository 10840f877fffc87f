package fulltext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// FuzzSearch searches for whatever documents hold: it finds something or tells what is wrong, and no more documents than there are.
func FuzzSearch(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if d, err := bson.ParseDoc(line); err == nil {
				f.Add([]byte(d))
			}
		}
	}
	definition, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true, fields: {items: {type: "embeddedDocuments", dynamic: true, storedSource: true},
		ac: {type: "autocomplete"}, kw: {type: "string", analyzer: "lucene.keyword"}, t: {type: "token"}, loc: {type: "geo", indexShapes: true}}}, storedSource: true,
		synonyms: [{name: "s", analyzer: "lucene.standard", source: {collection: "words"}}]}`))
	if err != nil {
		f.Fatal(err)
	}
	words := map[string][]bson.Doc{"words": {bson.MustDoc(`{mappingType: "equivalent", synonyms: ["quick", "fast", "lazy dog"]}`)}}
	c := &corpus{definition: definition, synonyms: words, docs: []bson.Doc{
		bson.MustDoc(`{_id: 1, title: "the quick brown fox", kw: "a*b", num: 5, items: [{name: "quick"}, {name: "x"}], ac: "september", t: "x", loc: {type: "Point", coordinates: [1, 2]}}`),
		bson.MustDoc(`{_id: 2, title: ["quick", "slow turtle"], num: [1, 2.5], body: "lazy dog. Quick nap.", b: true}`),
		bson.MustDoc(`{_id: 3, title: {deep: "quick"}, items: "none", num: NaN}`),
	}}
	f.Fuzz(func(t *testing.T, data []byte) {
		const depth = 100
		if bson.Validate(data, depth) != nil {
			return
		}
		spec := bson.Doc(data)
		if _, err := mapping.Parse(spec); err == nil {
			return // a definition that is right
		}
		mine := &corpus{synonyms: map[string][]bson.Doc{"words": {spec}}}
		if fault, err := SynonymFault(definition.Synonyms["s"], mine.source); fault == "" && err == nil {
			return // a document with synonyms
		}
		for _, meta := range []bool{false, true} {
			s, err := c.run(spec, meta)
			if err != nil {
				continue
			}
			n := 0
			for id, ok := s.Next(); ok; id, ok = s.Next() {
				n++
				s.Result(c.byID(id))
			}
			if most := 6; n > most {
				t.Fatalf("%d results: %s", n, spec)
			}
			s.Meta()
		}
	})
}
