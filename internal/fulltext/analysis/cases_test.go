package analysis

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestAnalyzers runs the cases of testdata/cases: stock divides texts with an analyzer that needs no definition, custom with one that is defined
// on the first line, and normalize shows what they make of texts that are not divided.
func TestAnalyzers(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			lines := strings.Split(td.Input, "\n")
			var a *Analyzer
			var err error
			if td.Cmd == "stock" || td.HasArg("name") {
				var name string
				td.ScanArgs(t, "name", &name)
				a, err = Stock("lucene." + name)
			} else {
				a, err = custom(lines[0])
				lines = lines[1:]
			}
			if err != nil {
				return err.Error()
			}
			var out []string
			for _, text := range lines {
				text = strings.NewReplacer(`\n`, "\n", `\u200c`, "\u200c").Replace(text)
				if td.Cmd == "normalize" {
					out = append(out, a.Normalize(text))
				} else {
					out = append(out, shown(text, a.Tokens(nil, text)))
				}
			}
			return strings.Join(out, "\n")
		})
	})
}

// custom is an analyzer that is defined so, without its name.
func custom(definition string) (*Analyzer, error) {
	d, err := bson.ParseDoc(`{analyzers: [{name: "a", ` + definition + `}]}`)
	if err != nil {
		return nil, err
	}
	all, err := ParseCustom(d.Lookup("analyzers"))
	return all["a"], err
}
