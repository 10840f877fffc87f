package fulltext

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
)

// synonymCorpus has one mapping, of documents that are made as they are asked for.
func synonymCorpus(t *testing.T) *mapping.Definition {
	t.Helper()
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true}, synonyms: [{name: "s", analyzer: "lucene.standard", source: {collection: "words"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// same are so many documents with synonyms.
func same(n int, synonyms func(i int) []string) SynonymSource {
	return func(_ string, take func(bson.Doc) error) error {
		for i := range n {
			b := bson.Build().Int32("_id", int32(i)).String("mappingType", "equivalent").Array("synonyms")
			for j, word := range synonyms(i) {
				b.String(bson.IndexKey(j), word)
			}
			if err := take(b.End().Doc()); err != nil {
				return err
			}
		}
		return nil
	}
}

func wordList(n int, of string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(of, i)
	}
	return list
}

// TestSynonymLimits: what a mapping has is bounded, and so is what a search makes of it.
func TestSynonymLimits(t *testing.T) {
	d := synonymCorpus(t)
	const (
		few  = 40
		many = 2000
	)
	for _, c := range []struct {
		name   string
		source SynonymSource
		spec   string
		says   string
	}{
		{"none", nil, `{text: {query: "a b", path: "t", synonyms: "s"}}`, ""},
		{"documents", same(maxSynonymDocuments+1, func(int) []string { return []string{"x", "y"} }), `{text: {query: "a", path: "t", synonyms: "s"}}`,
			"is in state INVALID and is not ready to service queries: Synonym document field limit exceeded: 65537 > 65536"},
		{"bytes", same(maxSynonymBytes, func(int) []string { return []string{strings.Repeat("word ", 1<<18)} }), `{text: {query: "a", path: "t", synonyms: "s"}}`,
			"the documents of the collection have more than 16777216 bytes"},
		{"words", same(many, func(i int) []string { return append(wordList(few, fmt.Sprintf("w%d_%%d", i)), "a") }), `{text: {query: "a", path: "t", synonyms: "s"}}`,
			"more than 65536 words for what is searched for"},
		{"not asked for", same(many, func(i int) []string { return wordList(few, fmt.Sprintf("w%d_%%d", i)) }), `{text: {query: "a", path: "t", synonyms: "s"}}`, ""},
		{"alternatives", same(1, func(int) []string { return append(wordList(many, "w%d"), "a") }), `{text: {query: "a", path: "t", synonyms: "s"}}`, "maxClauseCount is set to 1024"},
		{"phrases", same(1, func(int) []string { return append(wordList(few, "w%d x"), "a") }), `{phrase: {query: "a b a", path: "t", synonyms: "s"}}`, "maxClauseCount is set to 1024"},
		{"a choice of words", same(1, func(int) []string { return append(wordList(few, "w%d"), "a") }), `{phrase: {query: "a b a", path: "t", synonyms: "s"}}`, ""},
	} {
		q, err := ParseQuery(bson.MustDoc(c.spec), false)
		if err != nil {
			t.Fatal(err)
		}
		q.Synonyms = c.source
		_, err = New(d, q)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestSynonymsAreReadOnce: for all that a query asks of a mapping, and not at all where it asks nothing. What the source says is wrong is told.
func TestSynonymsAreReadOnce(t *testing.T) {
	d := synonymCorpus(t)
	gone := errors.New("gone")
	for _, c := range []struct {
		spec  string
		reads int
		err   error
	}{
		{`{compound: {must: [{text: {query: "a", path: "t", synonyms: "s"}}, {phrase: {query: ["b c", "d"], path: ["t", "u"], synonyms: "s"}}]}}`, 1, nil},
		{`{text: {query: "a", path: "t"}}`, 0, nil},
		{`{text: {query: "a", path: "t", synonyms: "s"}}`, 1, gone},
	} {
		q, err := ParseQuery(bson.MustDoc(c.spec), false)
		if err != nil {
			t.Fatal(err)
		}
		reads := 0
		q.Synonyms = func(collection string, take func(bson.Doc) error) error {
			reads++
			if collection != "words" {
				t.Errorf("%s is read", collection)
			}
			return errors.Join(take(bson.MustDoc(`{mappingType: "equivalent", synonyms: ["d", "e"]}`)), c.err)
		}
		if _, err := New(d, q); !errors.Is(err, c.err) || reads != c.reads {
			t.Errorf("%s: %d reads, %v", c.spec, reads, err)
		}
	}
}
