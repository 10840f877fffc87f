package expr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// TestLetOfCommand reads testdata/command/let.txt: one let and one expression a line.
func TestLetOfCommand(t *testing.T) {
	datadriven.RunTest(t, "testdata/command/let.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			vars, text, _ := strings.Cut(line, " in ")
			p := testParser()
			scope, err := p.Let(bson.MustDoc(vars), nil)
			if err != nil {
				fmt.Fprintf(&out, "%d: %s\n", mongoerr.From(err).Code, err)
				continue
			}
			e, err := p.Parse(bson.MustParse(text), scope)
			if err != nil {
				fmt.Fprintf(&out, "%d: %s\n", mongoerr.From(err).Code, err)
				continue
			}
			fmt.Fprintln(&out, e.Value().Text())
		}
		return out.String()
	})
}
