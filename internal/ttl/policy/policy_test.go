package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
)

// TestPolicy runs testdata. "rules" names a collection's indexes, one a line, and clustered=seconds its own TTL, or
// series=seconds that of a time series by its field t in cells of cell=seconds; the
// others take one document a line: "when modified=ms" says when each expires, by which rule or why not; "hidden
// modified=ms now=ms" which of them are invisible then (all: with the server's ttlHideExpired).
func TestPolicy(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var rules Rules
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "rules":
				rules = readRules(t, d)
				return fmt.Sprintf("%d, hiding %v, with ttlHideExpired %v\n", len(rules.All()), rules.Hiding(false), rules.Hiding(true))
			case "when":
				return eachLine(d, func(doc bson.Doc) string { return when(rules, doc, number(t, d, "modified")) })
			case "hidden":
				return eachLine(d, func(doc bson.Doc) string {
					return fmt.Sprint(rules.Hidden(doc, number(t, d, "modified"), number(t, d, "now"), d.HasArg("all")))
				})
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func readRules(t *testing.T, d *datadriven.TestData) Rules {
	parser := index.NewParser(match.NewParser())
	var defs []*index.Definition
	for i, line := range lines(d) {
		def, err := parser.Load(bson.MustDoc(line), nil)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		defs = append(defs, def.WithID(uint32(i+1)))
	}
	switch {
	case d.HasArg("clustered"):
		own := ForClustered(number(t, d, "clustered"))
		return NewRules(defs, &own, 0)
	case d.HasArg("series"):
		own := ForSeries("t", number(t, d, "series"), number(t, d, "cell"))
		return NewRules(defs, &own, own.Cell)
	}
	return NewRules(defs, nil, number(t, d, "cell"))
}

func number(t *testing.T, d *datadriven.TestData, name string) (n int64) {
	if d.HasArg(name) {
		d.ScanArgs(t, name, &n)
	}
	return n
}

func lines(d *datadriven.TestData) []string {
	return strings.FieldsFunc(d.Input, func(r rune) bool { return r == '\n' })
}

func eachLine(d *datadriven.TestData, f func(bson.Doc) string) string {
	var b strings.Builder
	for _, line := range lines(d) {
		fmt.Fprintf(&b, "%s\n", f(bson.MustDoc(line)))
	}
	return b.String()
}

func when(rules Rules, doc bson.Doc, modified int64) string {
	if at, by := rules.Deadline(doc, modified); by != nil {
		return fmt.Sprintf("%d by %q", at, by.Name())
	}
	var why []string
	for _, r := range rules.All() {
		_, reason := r.Deadline(doc, modified)
		why = append(why, reason.String())
	}
	return "never: " + strings.Join(why, "; ")
}
