package expr

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/javascript"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// now is $$NOW in all cases: 2024-06-15T12:30:45.678Z.
const now = 1718454645678

func testParser() *Parser {
	return NewParser(Options{Now: now, Rand: func() float64 { return 0.25 }, Scripts: javascript.InProcess(clock.NewFake(clock.Wall().Now()))})
}

// TestCases reads testdata/*.txt. A case "eval $name" has the document on a line that starts with "doc ", if it needs one, and
// one expression a line; the answer is the value of each, or code and message of its error. "print" shows how an expression is
// written back, with all computed that does not depend on the document.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "command") { // see TestLetOfCommand
			return
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			doc := bson.EmptyDoc
			for _, line := range strings.Split(d.Input, "\n") {
				if text, ok := strings.CutPrefix(line, "doc "); ok {
					doc = bson.MustDoc(text)
					continue
				}
				fmt.Fprintln(&out, answer(d.Cmd, line, doc))
			}
			return out.String()
		})
	})
}

func answer(cmd, line string, doc bson.Doc) string {
	if strings.HasPrefix(line, "$") { // a path
		line = strconv.Quote(line)
	}
	arg, err := bson.Parse(line)
	if err != nil {
		return "the case does not parse: " + err.Error()
	}
	p := testParser()
	e, err := p.Parse(arg, nil)
	if err != nil {
		return fmt.Sprintf("parse error %d: %s", mongoerr.From(err).Code, err)
	}
	if cmd == "print" {
		return e.Value().Text()
	}
	env := p.NewEnv()
	env.Root = doc
	v, err := e.Eval(env)
	if err != nil {
		return fmt.Sprintf("error %d: %s", mongoerr.From(err).Code, err)
	}
	if again, err := testParser().Parse(e.Value(), nil); err != nil {
		return fmt.Sprintf("does not parse when written back as %s: %v", e.Value().Text(), err)
	} else if w, err := again.Eval(env); err != nil || !bson.Identical(v, w) && !strings.Contains(line, "$rand") {
		return fmt.Sprintf("%s, but %s %v when written back as %s", v.Text(), w.Text(), err, e.Value().Text())
	}
	return v.Text()
}

// TestEveryOperatorHasCases wants a section "eval $name" for each row.
func TestEveryOperatorHasCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^eval (\$\w+)`).FindAllStringSubmatch(string(text), -1) {
			covered[m[1]] = true
		}
	}
	seen := map[string]bool{}
	for _, op := range Operators() {
		if !covered[op.Name] {
			t.Errorf("testdata has no section \"eval %s\"", op.Name)
		}
		if seen[op.Name] {
			t.Errorf("%s has two rows", op.Name)
		}
		seen[op.Name] = true
		if !strings.HasSuffix(op.Doc, ".") || op.Since == "" {
			t.Errorf("%s: say in a sentence what it does, and since when", op.Name)
		}
	}
	for name := range covered {
		if !seen[name] {
			t.Errorf("testdata has a section for %s, which has no row", name)
		}
	}
}
