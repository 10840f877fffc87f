package match

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestOperators runs testdata/*.txt. A section "match <operator>" has a filter in its first line (behind it, after " | ",
// a collation) and documents below: the answer repeats those that match, with the position that "$" would stand for.
// "refuse <operator>" has filters that are answered with their errors. "print" has filters and answers with their
// canonical forms; "why" has a filter and documents and answers with the details of a failed validation.
func TestOperators(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			lines := strings.Split(c.Input, "\n")
			switch c.Cmd {
			case "match":
				return runMatch(t, lines)
			case "refuse":
				return runRefuse(lines)
			case "print":
				return runPrint(t, lines)
			case "why":
				return runWhy(t, lines)
			}
			t.Fatalf("unknown section %q", c.Cmd)
			return ""
		})
	})
}

func parseLine(line string, asWritten ...bool) (*Filter, *expr.Env, error) {
	text, rest, _ := strings.Cut(line, " | ")
	o := Options{Allow: AllowAll, AsWritten: len(asWritten) > 0}
	if rest != "" {
		var err error
		if o.Collation, err = collation.Parse(bson.MustDoc(rest)); err != nil {
			return nil, nil, err
		}
	}
	exprs := expr.Options{Scripts: javascript.InProcess(clock.Wall())}
	if o.Collation != nil {
		exprs.Collation = o.Collation
	}
	o.Exprs = expr.NewParser(exprs)
	f, err := NewParser().Parse(bson.MustDoc(text), o)
	return f, o.Exprs.NewEnv(), err
}

func runMatch(t *testing.T, lines []string) string {
	f, env, err := parseLine(lines[0])
	if err != nil {
		return fmt.Sprintf("%d %s\n", mongoerr.From(err).Code, err)
	}
	again, err := NewParser().Parse(f.Print(), Options{Allow: AllowAll, Collation: f.Collation, Exprs: expr.NewParser(expr.Options{Scripts: javascript.InProcess(clock.Wall())})})
	if err != nil {
		t.Errorf("%s is printed as %s, which is refused: %v", lines[0], f.Print().Text(), err)
		again = f
	}
	var out strings.Builder
	for _, line := range lines[1:] {
		doc := bson.MustDoc(line)
		var d Details
		ok, err := f.MatchDetails(env, doc, &d)
		if err != nil {
			fmt.Fprintf(&out, "%s: %d %s\n", line, mongoerr.From(err).Code, err)
			continue
		}
		if same, err := again.Match(env, doc); same != ok || err != nil {
			t.Errorf("%s on %s: %v, but printed and parsed again: %v %v", lines[0], line, ok, same, err)
		}
		if ok {
			out.WriteString(line)
			if d.Position >= 0 {
				fmt.Fprintf(&out, " @%d", d.Position)
			}
			out.WriteString("\n")
		}
	}
	if out.Len() == 0 {
		return "none\n"
	}
	return out.String()
}

func runRefuse(lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		if _, _, err := parseLine(line); err != nil {
			fmt.Fprintf(&out, "%d %s\n", mongoerr.From(err).Code, err)
		} else {
			out.WriteString("accepted\n")
		}
	}
	return out.String()
}

func runPrint(t *testing.T, lines []string) string {
	var out strings.Builder
	for _, line := range lines {
		f, _, err := parseLine(line)
		if err != nil {
			t.Fatal(line, err)
		}
		out.WriteString(f.Print().Text() + "\n")
	}
	return out.String()
}

func runWhy(t *testing.T, lines []string) string {
	f, env, err := parseLine(lines[0], true)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, line := range lines[1:] {
		out.WriteString(f.WhyNot(env, bson.MustDoc(line)).Text() + "\n")
	}
	return out.String()
}

// TestEveryOperatorHasCases wants a section of cases for each row of the tables, and of errors for those that have any.
func TestEveryOperatorHasCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			sections[strings.TrimSpace(line)] = true
		}
	}
	for _, op := range NewParser().Operators() {
		if !sections["match "+op.Name] {
			t.Errorf("%s has no section \"match %s\" in testdata", op.Name, op.Name)
		}
		if op.Doc == "" || op.Since == "" {
			t.Errorf("%s has no sentence or no first version", op.Name)
		}
	}
	for _, row := range keywords() {
		if !sections["match $jsonSchema "+row.name] {
			t.Errorf("the keyword %s of $jsonSchema has no section of its own in testdata", row.name)
		}
	}
}

func TestMatchValue(t *testing.T) {
	for _, c := range []struct {
		filter, value string
		want          bool
	}{
		{`{ "": { $gt: 5 } }`, `6`, true}, {`{ "": { $gt: 5 } }`, `5`, false}, {`{ "": { $gt: 5 } }`, `[ 6 ]`, true},
		{`{ "x": { $gte: 5 } }`, `5`, true}, {`{ "x.a": 1 }`, `{ a: 1 }`, true}, {`{ "x.a": 1 }`, `[ { a: 1 } ]`, true},
		{`{ "x.a": 1 }`, `1`, false}, {`{ "x.a": null }`, `1`, true}, {`{ $or: [ { "x": 1 }, { "x.b": 2 } ] }`, `{ b: 2 }`, true},
		{`{ "x": { $elemMatch: { $gt: 1 } } }`, `[ 1, 2 ]`, true},
	} {
		f, err := NewParser().Parse(bson.MustDoc(c.filter), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.MatchValue(nil, bson.MustParse(c.value)); got != c.want || err != nil {
			t.Errorf("%s on %s: %v %v", c.filter, c.value, got, err)
		}
	}
}

func TestFeaturesAreRefusedWhereTheyDoNotBelong(t *testing.T) {
	for filter, code := range map[string]mongoerr.Code{
		`{ $expr: true }`: mongoerr.QueryFeatureNotAllowed, `{ $jsonSchema: {} }`: mongoerr.QueryFeatureNotAllowed,
		`{ $where: "1" }`: mongoerr.BadValue, `{ $text: { $search: "x" } }`: mongoerr.BadValue, `{ a: { $near: [ 0, 0 ] } }`: 5626500,
	} {
		if _, err := NewParser().Parse(bson.MustDoc(filter), Options{}); !mongoerr.Is(err, code) {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

func TestDependencies(t *testing.T) {
	f, err := NewParser().Parse(bson.MustDoc(`{ $or: [ { "b.c": 1 }, { a: { $not: { $in: [ 1 ] } } } ], b: { $elemMatch: { x: 1 } }, a: 2 }`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := f.Dependencies(); fmt.Sprint(d.Fields) != "[a b b.c]" || d.Whole {
		t.Errorf("%+v", d)
	}
}

// benchDoc is a document of about 300 bytes.
func benchDoc() bson.Doc {
	return bson.MustDoc(`{ _id: ObjectId("0102030405060708090a0b0c"), name: "Some Name of a Person", email: "person@example.org", age: 42, score: 17.5, active: true,
		created: ISODate("2024-05-01T12:00:00Z"), tags: [ "one", "two", "three" ], address: { street: "Some Street 17", city: "Sometown", zip: "12345" },
		status: "pending", visits: NumberLong(123456789), note: "a longer text that fills the document up to its size" }`)
}

func benchmarkFilter(b *testing.B, filter string, want bool) {
	f, err := NewParser().Parse(bson.MustDoc(filter), Options{})
	if err != nil {
		b.Fatal(err)
	}
	doc := benchDoc()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := f.Match(nil, doc); ok != want || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkEqInt(b *testing.B)    { benchmarkFilter(b, `{ age: 42 }`, true) }
func BenchmarkEqString(b *testing.B) { benchmarkFilter(b, `{ status: "pending" }`, true) }
func BenchmarkRange(b *testing.B)    { benchmarkFilter(b, `{ visits: { $gt: 5, $lt: 1000 } }`, false) }
func BenchmarkIn(b *testing.B) {
	benchmarkFilter(b, `{ status: { $in: [ "a", "b", "pending", "x" ] } }`, true)
}
func BenchmarkArray(b *testing.B)  { benchmarkFilter(b, `{ tags: "three" }`, true) }
func BenchmarkNested(b *testing.B) { benchmarkFilter(b, `{ "address.city": "Sometown" }`, true) }
func BenchmarkRegex(b *testing.B)  { benchmarkFilter(b, `{ status: /^pend/ }`, true) }
func BenchmarkExists(b *testing.B) { benchmarkFilter(b, `{ missing: { $exists: true } }`, false) }
func BenchmarkElemMatch(b *testing.B) {
	benchmarkFilter(b, `{ tags: { $elemMatch: { $gt: "p", $lt: "u" } } }`, true)
}
func BenchmarkConjunction(b *testing.B) {
	benchmarkFilter(b, `{ age: { $gte: 18 }, active: true, status: { $ne: "done" }, score: { $lt: 20 } }`, true)
}

func TestScalarsDoNotAllocate(t *testing.T) {
	doc := benchDoc()
	for _, filter := range []string{`{ age: 42 }`, `{ score: { $gt: 17 } }`, `{ tags: "three" }`, `{ "address.city": { $in: [ "x", "Sometown" ] } }`,
		`{ $or: [ { a: 1 }, { status: { $ne: "x" } } ] }`, `{ tags: { $elemMatch: { $gt: "p" } } }`, `{ tags: { $size: 3 } }`, `{ status: { $type: "string" } }`} {
		f, err := NewParser().Parse(bson.MustDoc(filter), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if ok, _ := f.Match(nil, doc); !ok {
				t.Fatal(filter)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a document", filter, n)
		}
	}
}

// TestManyEqualitiesAreJoinedOnce has the memory that alternatives of one field take grow with their number, not with its square.
func TestManyEqualitiesAreJoinedOnce(t *testing.T) {
	const alternatives = 5000
	b := bson.Build().Array("$or")
	for i := range alternatives {
		b.Object(bson.IndexKey(i)).Int32("a", int32(i)).End()
	}
	filter := b.End().Doc()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := NewParser().Parse(filter, Options{})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if in, ok := f.Root.(*In); !ok || len(in.Values) != alternatives {
		t.Fatalf("%T", f.Root)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / alternatives; each > 2000 {
		t.Errorf("%d bytes an alternative", each)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{ a: { $in: [ 1, /x/ ], $not: { $gt: 1 } } }`, `{ $or: [ { a: 1 }, { $nor: [ { b: { $elemMatch: { c: 1 } } } ] } ] }`,
		`{ $jsonSchema: { properties: { a: { items: { type: "string" } } } } }`, `{ a: { $bitsAllSet: [ 1 ], $mod: [ 1, 2 ], $type: [ "int" ] } }`} {
		f.Add([]byte(bson.MustDoc(s)), []byte(bson.MustDoc(`{ a: [ 1, { b: "x" } ] }`)))
	}
	p := NewParser()
	f.Fuzz(func(t *testing.T, filter, doc []byte) {
		if bson.Validate(filter, bson.MaxDepth) != nil || bson.Validate(doc, bson.MaxDepth) != nil {
			return
		}
		parsed, err := p.Parse(filter, Options{Allow: AllowJSONSchema})
		if err != nil {
			if e := mongoerr.From(err); e.Code == mongoerr.InternalError {
				t.Error(err)
			}
			return
		}
		want, err := parsed.Match(nil, doc)
		if err != nil {
			return
		}
		again, err := p.Parse(parsed.Print(), Options{Allow: AllowJSONSchema})
		if err != nil {
			t.Fatalf("%s is printed as %s: %v", bson.Doc(filter).Text(), parsed.Print().Text(), err)
		}
		if got, _ := again.Match(nil, doc); got != want {
			t.Errorf("%s says %v, printed and parsed again as %s %v", bson.Doc(filter).Text(), want, parsed.Print().Text(), got)
		}
	})
}
