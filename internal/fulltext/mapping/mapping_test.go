package mapping

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestDefinitions runs the cases of testdata: parse reads a definition, and shows the paths that are asked for behind it, as "path: types";
// refuse reads one on each line, and shows what is wrong with it; project shows what is stored of documents.
func TestDefinitions(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var d *Definition
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "parse":
				var err error
				if d, err = Parse(bson.MustDoc(td.Input)); err != nil {
					return err.Error()
				}
				return ""
			case "refuse":
				return eachLine(td.Input, refused)
			case "fields":
				return eachLine(td.Input, func(path string) string { return describe(d.Root.Field(path)) })
			case "embedded":
				return eachLine(td.Input, func(path string) string {
					path, below, _ := strings.Cut(path, " ")
					e := d.Embedded(path)
					switch {
					case e == nil:
						return "none"
					case below == "":
						return describe(&Field{Embedded: e})
					}
					return describe(e.Field(below))
				})
			case "project":
				return eachLine(td.Input, func(doc string) string {
					if d.Stored == nil {
						return "none"
					}
					return d.Stored.Project(bson.MustDoc(doc)).String()
				})
			case "synonyms":
				s := d.Synonyms[td.Input]
				return s.Analyzer.Name() + " of " + s.Collection
			}
			t.Fatalf("%s: no command %q", td.Pos, td.Cmd)
			return ""
		})
	})
}

func eachLine(text string, f func(string) string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = f(line)
	}
	return strings.Join(lines, "\n")
}

func refused(definition string) string {
	_, err := Parse(bson.MustDoc(definition))
	if err == nil {
		return "nothing"
	}
	if mongoerr.From(err).Code != mongoerr.UnknownError {
		return "with another code: " + err.Error()
	}
	return err.Error()
}

// describe writes as what a field is indexed.
func describe(f *Field) string {
	if f == nil {
		return "not indexed"
	}
	var out []string
	add := func(is bool, text string) {
		if is {
			out = append(out, text)
		}
	}
	if f.String != nil {
		out = append(out, "string("+describeString(f.String)+")")
	}
	add(f.Token != nil, "token")
	add(f.Token != nil && f.Token.Lowercase, "(lowercase)")
	if a := f.Autocomplete; a != nil {
		out = append(out, "autocomplete("+a.Base.Name()+")")
	}
	add(f.Number != nil, "number")
	add(f.Number != nil && f.Number.Int64, "(int64)")
	add(f.Geo != nil, "geo")
	add(f.Vector != nil, "vector")
	add(f.Document != nil, "document")
	add(f.Embedded != nil, "embedded")
	add(f.Embedded != nil && f.Embedded.Stored != nil, "(stored)")
	add(f.Date, "date")
	add(f.Boolean, "boolean")
	add(f.ObjectID, "objectId")
	add(f.UUID, "uuid")
	add(f.Null, "null")
	add(f.StringFacet, "stringFacet")
	add(f.NumberFacet, "numberFacet")
	add(f.DateFacet, "dateFacet")
	add(f.Sortable, "sortable")
	return strings.Join(out, " ")
}

func describeString(s *String) string {
	out := strings.TrimPrefix(s.Analyzer.Name(), "lucene.")
	if s.SearchAnalyzer != s.Analyzer {
		out += " searched by " + strings.TrimPrefix(s.SearchAnalyzer.Name(), "lucene.")
	}
	for name, m := range s.Multi {
		out += " multi " + name + ": " + describeString(m)
	}
	if s.Similarity != BM25 {
		out += []string{"", " boolean", " stableTfl"}[s.Similarity]
	}
	for _, flag := range []struct {
		is   bool
		text string
	}{{s.NoNorms, " no norms"}, {s.NoPositions, " no positions"}, {s.NoFrequencies, " no frequencies"}, {s.IgnoreAbove == 9, " ignore above 9"}} {
		if flag.is {
			out += flag.text
		}
	}
	return out
}

func TestLimits(t *testing.T) {
	deep := `{}`
	for range maxDepth + 1 {
		deep = `{type: "document", fields: {a: ` + deep[:len(deep)-1] + "}}}"
		deep = strings.ReplaceAll(deep, "a: {}", `a: {type: "date"}`)
	}
	wide := strings.Builder{}
	for i := range maxFields + 1 {
		wide.WriteString(`f` + bson.IndexKey(i) + `: {type: "date"},`)
	}
	nested := `{type: "date"}`
	for range maxEmbedding + 1 {
		nested = `{type: "embeddedDocuments", fields: {a: ` + nested + `}}`
	}
	for _, c := range []struct{ fields, want string }{
		{`a: ` + deep, "cannot be nested more than 64 levels deep"},
		{strings.TrimSuffix(wide.String(), ","), `"mappings.fields" cannot define more than 4096 fields`},
		{`a: ` + nested, "embeddedDocuments fields cannot be nested more than 5 levels deep"},
	} {
		d, err := bson.ParseDoc(`{mappings: {fields: {` + c.fields + `}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Parse(d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// FuzzParse has no definition make it panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(bson.MustDoc(`{mappings: {dynamic: true, fields: {a: [{type: "string", multi: {b: {type: "string"}}}, {type: "embeddedDocuments"}]}}}`)))
	f.Add([]byte(bson.MustDoc(`{mappings: {dynamic: {typeSet: "x"}}, typeSets: [{name: "x", types: [{type: "token"}]}], storedSource: {include: ["a.b"]}}`)))
	f.Add([]byte(bson.MustDoc(`{analyzers: [{name: "x", tokenizer: {type: "standard"}}], analyzer: "x", mappings: {}, synonyms: [], sort: {a: 1}}`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if bson.Validate(b, 100) != nil {
			return
		}
		if d, err := Parse(b); err == nil {
			d.Root.Field("a.b.c")
			d.Embedded("a.b")
			if d.Stored != nil {
				d.Stored.Project(b)
			}
		}
	})
}
