package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// language is what a test parses and evaluates with.
type language struct {
	projections *Parser
	matches     *match.Parser
	exprs       *expr.Parser
	env         *expr.Env
}

func newLanguage() language {
	exprs, matches := expr.NewParser(expr.Options{}), match.NewParser()
	return language{NewParser(matches), matches, exprs, exprs.NewEnv()}
}

func (l language) parse(spec bson.Doc, mode, filter string) (*Projection, error) {
	o := Options{Exprs: l.exprs, Filter: bson.MustDoc(filter)}
	switch mode {
	case "project":
		o.Mode = Project
	case "add":
		o.Mode = AddFields
	case "wildcard":
		o.Mode = Wildcard
	case "unset":
		paths, err := UnsetPaths(spec.Lookup("u"))
		if err != nil {
			return nil, err
		}
		return l.projections.Unset(paths)
	}
	return l.projections.Parse(spec, o)
}

func (l language) apply(p *Projection, filter string, doc bson.Doc) string {
	q, err := l.matches.Parse(bson.MustDoc(filter), match.Options{Allow: match.AllowAll, Exprs: l.exprs})
	if err != nil {
		return show(err)
	}
	var details match.Details
	if ok, err := q.MatchDetails(l.env, doc, &details); !ok || err != nil {
		return fmt.Sprintf("no match %v\n", err)
	}
	out, err := p.Apply(nil, doc, l.env, &details)
	if err != nil {
		return show(err)
	}
	if err := bson.Validate(out, bson.MaxDepth+1); err != nil {
		return err.Error() + "\n"
	}
	if p.Identity() && string(out) != string(doc) {
		return "an identity that changes the document\n"
	}
	return out.Text() + "\n"
}

func show(err error) string {
	e := mongoerr.From(err)
	return fmt.Sprintf("%d %s: %s\n", e.Code, e.Code.Name(), e.Message)
}

// TestProjections runs testdata/*.txt. A command is named for what it shows; its input is an optional "mode …", the
// specification, an optional "filter {…}", and documents.
func TestProjections(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, c *datadriven.TestData) string { return runCase(c.Cmd, c.Input) })
	})
}

func runCase(cmd, input string) string {
	l, mode, filter := newLanguage(), "find", "{}"
	var spec bson.Doc
	var docs []bson.Doc
	for line := range strings.Lines(input + "\n") {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case word == "mode":
			mode = rest
		case word == "filter":
			filter = rest
		case spec == nil:
			spec = bson.MustDoc(line)
		default:
			docs = append(docs, bson.MustDoc(line))
		}
	}
	p, err := l.parse(spec, mode, filter)
	if err != nil {
		return "parse " + show(err)
	}
	if cmd == "dependencies" {
		return fmt.Sprintf("%+v %s\n", p.Dependencies(), p.Kind())
	}
	var out strings.Builder
	for _, d := range docs {
		out.WriteString(l.apply(p, filter, d))
	}
	return out.String()
}

// document300 is a document of about 300 bytes and twelve fields.
func document300() bson.Doc {
	b := bson.Build().ObjectID("_id", [12]byte{1})
	for i := range 8 {
		b.String(fmt.Sprintf("field%d", i), "some text here")
	}
	return b.Int32("n", 1).Object("sub").Int32("x", 1).Double("y", 2).End().Array("list").Int32("0", 1).Int32("1", 2).End().Doc()
}

func benchmarkApply(b *testing.B, spec string) {
	l := newLanguage()
	p, err := l.parse(bson.MustDoc(spec), "find", "{}")
	if err != nil {
		b.Fatal(err)
	}
	doc, buf := document300(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Apply(buf, doc, l.env, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInclude3(b *testing.B) { benchmarkApply(b, `{_id: 0, field1: 1, field4: 1, n: 1}`) }
func BenchmarkExclude1(b *testing.B) { benchmarkApply(b, `{field1: 0}`) }
func BenchmarkNested(b *testing.B)   { benchmarkApply(b, `{"sub.x": 1}`) }
func BenchmarkSlice(b *testing.B)    { benchmarkApply(b, `{list: {$slice: 1}}`) }
func BenchmarkCompute(b *testing.B)  { benchmarkApply(b, `{m: {$add: ["$n", 1]}, field1: 1}`) }

func TestApplyDoesNotAllocate(t *testing.T) {
	l, doc, buf := newLanguage(), document300(), make([]byte, 0, 1024)
	for _, spec := range []string{`{_id: 0, field1: 1, n: 1}`, `{field1: 0, "sub.x": 0}`, `{"sub.x": 1, list: {$slice: 1}}`} {
		p, err := l.parse(bson.MustDoc(spec), "find", "{}")
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { p.Apply(buf, doc, nil, nil) }); n != 0 {
			t.Errorf("%s: %v allocations a document", spec, n)
		}
	}
}

// A plain projection leaves what has only the fields that it reads as it is; others may not.
func TestPlain(t *testing.T) {
	l := newLanguage()
	for _, c := range []struct {
		spec, doc string
		plain     bool
	}{
		{`{_id: 0, a: 1}`, `{a: 1}`, true},
		{`{a: true}`, `{a: 1, _id: 2}`, true},
		{`{_id: 0, b: 1, "a.y": 1, "a.x": 1}`, `{a: {x: 1, y: "s"}, b: null}`, true},
		{`{a: 0}`, `{b: 1}`, false},
		{`{a: "$b"}`, `{b: 1}`, false},
		{`{a: 1, b: {$literal: 1}}`, `{a: 1}`, false},
		{`{a: {$slice: 1}, b: 1}`, `{b: 1}`, false},
		{`{a: {$elemMatch: {x: 1}}}`, `{_id: 1}`, false},
		{`{"a.b": {$add: [1, 2]}, c: 1}`, `{c: 1}`, false},
		{`{"a.$": 1}`, `{_id: 1}`, false},
		{`{a: {$meta: "textScore"}, b: 1}`, `{b: 1}`, false},
	} {
		p, err := l.parse(bson.MustDoc(c.spec), "find", `{a: 1}`)
		if err != nil {
			t.Fatalf("%s: %v", c.spec, err)
		}
		if p.Plain() != c.plain {
			t.Errorf("%s is plain: %v", c.spec, p.Plain())
		}
		doc := bson.MustDoc(c.doc)
		if out, err := p.Apply(nil, doc, l.env, nil); c.plain && (err != nil || string(out) != string(doc)) {
			t.Errorf("%s of %s is %s (%v)", c.spec, doc, bson.Doc(out), err)
		}
	}
}
