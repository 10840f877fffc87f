package update

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/projection"
)

// testNow is the time of all operations here: 2024-01-02T03:04:05Z.
const (
	testNow       = 1704164645000
	testTimestamp = 1704164645<<32 | 7
)

// language is what a test parses and evaluates with.
type language struct {
	updates *Parser
	matches *match.Parser
	exprs   *expr.Parser
	env     *expr.Env
}

func newLanguage() language {
	exprs, matches := expr.NewParser(expr.Options{Now: testNow}), match.NewParser()
	return language{NewParser(matches, projection.NewParser(matches)), matches, exprs, exprs.NewEnv()}
}

// run applies an update to a document, if filter matches it, and shows what comes out.
func (l language) run(update, filter, doc string, o Options, insert bool) string {
	q, err := l.matches.Parse(bson.MustDoc(filter), match.Options{Allow: match.AllowAll, Exprs: l.exprs})
	if err != nil {
		return show(err)
	}
	o.Exprs = l.exprs
	u, err := l.updates.Parse(bson.MustParse(update), o)
	if err != nil {
		return "parse " + show(err)
	}
	args := Args{Now: testNow, Timestamp: testTimestamp, Env: l.env, Insert: insert, Details: &match.Details{Position: -1}}
	var d bson.Doc
	if insert {
		if d, err = u.UpsertSeed(q); err != nil {
			return "seed " + show(err)
		}
	} else {
		d = bson.MustDoc(doc)
		if ok, err := q.MatchDetails(nil, d, args.Details); err != nil || !ok {
			return fmt.Sprintf("no match %v\n", err)
		}
	}
	out, changed, err := u.Apply(nil, d, args)
	if err != nil {
		return show(err)
	}
	if err := bson.Validate(out, bson.MaxDepth+1); err != nil {
		return err.Error()
	}
	if !changed && !insert {
		return "unchanged\n"
	}
	return out.Text() + "\n"
}

func show(err error) string {
	e := mongoerr.From(err)
	return fmt.Sprintf("%d %s: %s\n", e.Code, e.Code.Name(), e.Message)
}

// TestOperators runs testdata/*.txt. A command is named for the operator whose rule it shows, its argument says the rule;
// its input is the update, and then lines of
//
//	filter {…}, filters [{…}], collation {…}, multi, insert
//
// which hold for the documents that follow, one a line.
func TestOperators(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, c *datadriven.TestData) string { return runCase(c.Input) })
	})
}

func runCase(input string) string {
	l, o, filter, update := newLanguage(), Options{}, "{}", ""
	var out strings.Builder
	for line := range strings.Lines(input + "\n") {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case update == "":
			update = line
		case word == "filter":
			filter = rest
		case word == "filters":
			o.ArrayFilters = bson.MustParse(rest).Doc().Values(nil)
		case word == "collation":
			var err error
			if o.Collation, err = collation.Parse(bson.MustDoc(rest)); err != nil {
				return show(err)
			}
		case word == "multi":
			o.Multi = true
		case word == "insert":
			out.WriteString(l.run(update, filter, "", o, true))
		default:
			out.WriteString(l.run(update, filter, line, o, false))
		}
	}
	return out.String()
}
