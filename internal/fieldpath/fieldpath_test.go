package fieldpath

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestPaths runs testdata/paths.txt: a command names a path, its input is one document a line, and the answer has one line
// for each: what Walk shows with its positions, what Values shows, or what Eval or Get gives.
func TestPaths(t *testing.T) {
	datadriven.RunTest(t, "testdata/paths.txt", func(t *testing.T, c *datadriven.TestData) string {
		var out strings.Builder
		if c.Cmd == "new" {
			for text := range strings.Lines(c.Input + "\n") {
				text = strings.ReplaceAll(strings.Trim(text, "\n"), "<empty>", "")
				text = strings.ReplaceAll(text, "<long>", strings.Repeat("a.", MaxParts)+"a")
				if _, err := New(text); err != nil {
					fmt.Fprintf(&out, "%d %s\n", mongoerr.From(err).Code, err)
				} else {
					out.WriteString("ok\n")
				}
			}
			return out.String()
		}
		p := Split(c.CmdArgs[0].Key)
		for line := range strings.Lines(c.Input) {
			d := bson.MustDoc(strings.TrimSpace(line))
			switch c.Cmd {
			case "walk":
				leaf := Traverse
				if c.HasArg("whole") {
					leaf = Whole
				} else if c.HasArg("elements") {
					leaf = Elements
				}
				var shown []string
				p.Walk(d, leaf, func(v bson.Value, i int) bool {
					s := v.Text()
					if i != NoIndex {
						s += fmt.Sprintf(" @%d", i)
					}
					shown = append(shown, s)
					return false
				})
				if shown == nil {
					shown = []string{"nothing"}
				}
				out.WriteString(strings.Join(shown, "; ") + "\n")
			case "values":
				digits := Positions
				if c.HasArg("names") {
					digits = Names
				}
				var shown []string
				p.Values(d, digits, func(v bson.Value) { shown = append(shown, v.Text()) })
				if shown == nil {
					shown = []string{"nothing"}
				}
				out.WriteString(strings.Join(shown, "; ") + "\n")
			case "eval":
				out.WriteString(p.Eval(d).Text() + "\n")
			case "get":
				out.WriteString(p.Get(d).Text() + "\n")
			}
		}
		return out.String()
	})
}

func TestParts(t *testing.T) {
	p := Split("a.0.bc")
	if p.Len() != 3 || p.Part(1) != "0" || !p.Numeric(1) || p.Numeric(2) || p.Prefix(2) != "a.0" || p.Suffix(1) != "0.bc" || p.Suffix(3) != "" {
		t.Errorf("%+v", p)
	}
	if q := p.From(1); q.String() != "0.bc" || q.Suffix(1) != "bc" || q.Prefix(1) != "0" {
		t.Errorf("%+v", q)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"a", "a", true}, {"a", "a.b", true}, {"a.b", "a", true}, {"a", "ab", false}, {"a.b", "a.c", false}} {
		if Overlaps(c.a, c.b) != c.want {
			t.Errorf("Overlaps(%q, %q)", c.a, c.b)
		}
	}
	for name, want := range map[string]bool{"0": true, "10": true, "01": false, "": false, "-1": false, "2147483647": true, "2147483648": false, "99999999999": false} {
		if _, ok := Position(name); ok != want {
			t.Errorf("Position(%q) = %v", name, ok)
		}
	}
}

func TestWalkDoesNotAllocate(t *testing.T) {
	d := bson.MustDoc(`{ x: 1, a: [ { b: [ 1, 2 ] }, { b: 3 }, [ { b: 4 } ] ] }`)
	p := Split("a.b")
	sum := 0
	n := testing.AllocsPerRun(100, func() {
		p.Walk(d, Traverse, func(v bson.Value, i int) bool { sum += i; return false })
	})
	if n != 0 {
		t.Errorf("%v allocations a walk", n)
	}
}

func BenchmarkWalkNested(b *testing.B) {
	d := bson.MustDoc(`{ x: 1, y: "some text", a: { b: { c: 7 } } }`)
	p := Split("a.b.c")
	b.ReportAllocs()
	for b.Loop() {
		if !p.Walk(d, Traverse, func(v bson.Value, _ int) bool { return v.Int32() == 7 }) {
			b.Fatal("not found")
		}
	}
}
