package fulltext

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testheap"
)

// corpus is what searches of a file of cases go through.
type corpus struct {
	definition *mapping.Definition
	docs       []bson.Doc
	synonyms   map[string][]bson.Doc // by their collections
}

// TestSearch runs the cases of testdata: index and docs say what is searched, one document a line, and synonyms what a collection has; search, meta, ids, shown and explained each a line
// what is searched for.
func TestSearch(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := &corpus{}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "index":
				d, err := mapping.Parse(bson.MustDoc(td.Input))
				if err != nil {
					return failure(err)
				}
				c.definition = d
				return ""
			case "docs":
				c.docs = nil
				for line := range strings.Lines(td.Input) {
					c.docs = append(c.docs, bson.MustDoc(line))
				}
				return ""
			case "synonyms":
				var name string
				td.ScanArgs(t, "of", &name)
				var docs []bson.Doc
				for line := range strings.Lines(td.Input) {
					docs = append(docs, bson.MustDoc(line))
				}
				if c.synonyms == nil {
					c.synonyms = map[string][]bson.Doc{}
				}
				c.synonyms[name] = docs
				return ""
			case "search", "meta", "ids", "shown", "explained":
				return eachLine(td.Input, func(line string) string { return c.search(td.Cmd, bson.MustDoc(line)) })
			}
			return "unknown command " + td.Cmd
		})
	})
}

func eachLine(input string, f func(string) string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		b.WriteString(f(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

func failure(err error) string {
	e := mongoerr.From(err)
	return fmt.Sprintf("error %d %s", e.Code, e.Message)
}

// run is a search of all documents.
func (c *corpus) run(spec bson.Doc, meta bool) (*Search, error) {
	q, err := ParseQuery(spec, meta)
	if err != nil {
		return nil, err
	}
	q.Synonyms = c.source
	s, err := New(c.definition, q)
	if err != nil {
		return nil, err
	}
	for again := true; again; again = s.Again() {
		for _, d := range c.docs {
			if _, err := s.Add(d); err != nil {
				return nil, err
			}
		}
	}
	return s, s.Finish()
}

// source shows the synonyms of a collection.
func (c *corpus) source(collection string, take func(bson.Doc) error) error {
	for _, d := range c.synonyms[collection] {
		if err := take(d); err != nil {
			return err
		}
	}
	return nil
}

func (c *corpus) search(command string, spec bson.Doc) string {
	s, err := c.run(spec, command == "meta")
	if err != nil {
		return failure(err)
	}
	if command == "meta" {
		return s.Meta().String()
	}
	var parts []string
	for id, ok := s.Next(); ok; id, ok = s.Next() {
		doc, m := s.Result(c.byID(id))
		switch command {
		case "ids":
			parts = append(parts, id.String())
		case "search":
			parts = append(parts, fmt.Sprintf("%s: %.4g", id, m.Score))
		case "shown":
			parts = append(parts, fmt.Sprintf("%s %s", doc, m.Highlights))
		case "explained":
			parts = append(parts, fmt.Sprintf("%s %s", id, m.Details))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (c *corpus) byID(id bson.Value) bson.Doc {
	for _, d := range c.docs {
		if bson.Equal(d.Lookup("_id"), id) {
			return d
		}
	}
	return nil
}

// TestDistance: how far terms are from one another, in characters.
func TestDistance(t *testing.T) {
	const most = 2
	for _, c := range []struct {
		a, b  string
		edits int
	}{{"quick", "quick", 0}, {"quick", "quik", 1}, {"quick", "quicks", 1}, {"quick", "qucik", 1}, {"quick", "xuick", 1}, {"resume", "résumé", 2}, {"ab", "ba", 1},
		{"quick", "turtle", 3}, {"", "ab", 2}, {"abc", "", 3}, {"café", "cafe", 1}} {
		p := &pattern{runes: []rune(c.a), maxEdits: most}
		if got := min(p.distance(c.b), most+1); got != c.edits {
			t.Errorf("%s to %s: %d, not %d", c.a, c.b, got, c.edits)
		}
		if got := p.takes(c.b); got != (c.edits <= most) {
			t.Errorf("%s takes %s: %t", c.a, c.b, got)
		}
	}
}

// TestPartsOfTexts: a long text is looked at part by part, and has the tokens and the places that it has as a whole.
func TestPartsOfTexts(t *testing.T) {
	var text strings.Builder
	for i := 0; text.Len() < 5*partBytes; i++ {
		fmt.Fprintf(&text, "the word%d running, of été%d-x and %s ", i%977, i%31, strings.Repeat("y", i%300))
	}
	long := text.String() + strings.Repeat("z", 2*partBytes) + " end"
	for _, name := range []string{"lucene.standard", "lucene.english", "lucene.whitespace", "lucene.simple", "lucene.french"} {
		a, err := analysis.Stock(name)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Parts() {
			t.Errorf("%s has no parts", name)
		}
		f := &textField{def: &mapping.String{Analyzer: a}, terms: map[string]*term{}, scratch: new([]analysis.Token)}
		whole := a.Tokens(nil, long)
		want := map[string][]int{}
		for _, tok := range whole {
			f.term(tok.Term).placed = true
			want[tok.Term] = append(want[tok.Term], tok.Position)
		}
		f.begin(1, true)
		f.add(long)
		if f.length != f.total && name != "lucene.french" {
			t.Errorf("%s: %d positions of %d tokens", name, f.length, f.total)
		}
		if f.total != len(whole) || cap(*f.scratch) > keptTokens {
			t.Errorf("%s: %d tokens, not %d, and room for %d", name, f.total, len(whole), cap(*f.scratch))
		}
		for text, places := range want {
			if !slices.Equal(f.terms[text].places(), places) {
				t.Errorf("%s: %.20s is elsewhere", name, text)
			}
		}
	}
}

// TestLargeDocumentsLeaveLittle: what a search needs of a large document is given back with it.
func TestLargeDocumentsLeaveLittle(t *testing.T) {
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true}, analyzer: "own", analyzers: [{name: "own", tokenizer: {type: "standard"}, tokenFilters: [{type: "lowercase"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const fields, words = 20, 200_000
	c := &corpus{definition: d}
	for i := range fields {
		field := fmt.Sprintf("f%d", i)
		c.docs = append(c.docs, bson.Build().Int32("_id", int32(i)).String(field, strings.Repeat("a b ", words/2)).Doc())
	}
	q, err := ParseQuery(bson.MustDoc(`{compound: {should: [{phrase: {query: "a b", path: {wildcard: "*"}}}, {phrase: {query: "b a", path: {wildcard: "f*"}, slop: 2}}, {wildcard: {query: "a*", path: {wildcard: "*"}, allowAnalyzedField: true}}]}}`), false)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(d, q)
	if err != nil {
		t.Fatal(err)
	}
	const allowed = 16 << 20 // the last document's, and something beside
	before := testheap.Bytes()
	for _, doc := range c.docs {
		if _, err := s.Add(doc); err != nil {
			t.Fatal(err)
		}
	}
	if left := testheap.Bytes() - before; left > allowed {
		t.Errorf("%d bytes are left", left)
	}
	if err := s.Finish(); err != nil || s.total != fields {
		t.Errorf("%d documents found: %v", s.total, err)
	}
}

// TestSearchesAreBounded: what is asked for too often is refused before it is looked for.
func TestSearchesAreBounded(t *testing.T) {
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true, fields: {t: {type: "token"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const many = 5_000
	list := func(each string) string { return "[" + strings.TrimSuffix(strings.Repeat(each+",", many), ",") + "]" }
	for _, spec := range []string{
		`{text: {query: ` + list(`"!!!"`) + `, path: "a"}}`,
		`{text: {query: ` + list(`"!!!"`) + `, path: "nowhere"}}`,
		`{text: {query: "x", path: ` + list(`"a"`) + `}}`,
		`{near: {origin: 1, pivot: 1, path: ` + list(`"a"`) + `}}`,
		`{compound: {must: ` + list(`{exists: {path: "a"}}`) + `}}`,
		`{span: {or: {clauses: ` + list(`{term: {query: "x", path: "a"}}`) + `}}}`,
		`{queryString: {query: "` + strings.Repeat("a ", many) + `", defaultPath: "a"}}`,
		`{exists: {path: "a", score: {function: {add: ` + list(`{constant: 1}`) + `}}}}`,
		`{facet: {facets: {` + strings.TrimSuffix(strings.Repeat(`a: {type: "string", path: "t"},`, many), ",") + `}}}`,
	} {
		q, err := ParseQuery(bson.MustDoc(spec), false)
		if err == nil {
			_, err = New(d, q)
		}
		if err == nil || mongoerr.From(err).Code != mongoerr.UnknownError {
			t.Errorf("%.60s: %v", spec, err)
		}
	}
}

// TestPages: a page goes on behind the document of a token, or where it was.
func TestPages(t *testing.T) {
	d, err := mapping.Parse(bson.MustDoc(`{mappings: {dynamic: true}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := &corpus{definition: d}
	for i := range 6 {
		c.docs = append(c.docs, bson.MustDoc(fmt.Sprintf(`{_id: %d, t: "x%s", n: %d, u: %d}`, i, strings.Repeat(" y", i), 10-i/2, i)))
	}
	const unique = ", sort: {u: -1}"
	for _, sort := range []string{"", ", sort: {n: -1, missing: 1}", unique} {
		query := `{text: {query: "x", path: "t"}` + sort + `%s}`
		s, err := c.run(bson.MustDoc(fmt.Sprintf(query, "")), false)
		if err != nil {
			t.Fatal(err)
		}
		var ids, tokens []string
		for id, ok := s.Next(); ok; id, ok = s.Next() {
			_, m := s.Result(c.byID(id))
			ids, tokens = append(ids, id.String()), append(tokens, m.SequenceToken.Str())
		}
		slices.Reverse(ids)
		before := strings.Join(ids[3:], ", ")
		slices.Reverse(ids)
		for option, want := range map[string]string{"searchAfter": strings.Join(ids[3:], ", "), "searchBefore": strings.Join(ids[3:], ", ")} {
			if option == "searchBefore" {
				want = before
			}
			at := 2
			if option == "searchBefore" {
				at = 3
			}
			page := bson.MustDoc(fmt.Sprintf(query, fmt.Sprintf(`, %s: "%s"`, option, tokens[at])))
			if got := c.search("ids", page); got != want {
				t.Errorf("%s%s: %s, not %s", option, sort, got, want)
			}
			// without the document it is where that was, as far as its keys tell; its score is not what it would be among the others
			whole := c.docs
			c.docs = slices.DeleteFunc(slices.Clone(whole), func(doc bson.Doc) bool { return doc.Lookup("_id").String() == ids[at] })
			if got := c.search("ids", page); sort == unique && got != want {
				t.Errorf("%s%s of what is gone: %s, not %s", option, sort, got, want)
			}
			c.docs = whole
		}
	}
	if got := c.search("ids", bson.MustDoc(`{text: {query: "x", path: "t"}, sort: {n: 1}, searchAfter: "`+(&token{bson.Int32(1), 1, nil}).String()+`"}`)); !strings.Contains(got, "sorts otherwise") {
		t.Error(got)
	}
}
