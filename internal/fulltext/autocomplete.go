package fulltext

import (
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// autocomplete finds words by how they begin, or by other parts of them.
type autocomplete struct {
	path       string
	queries    []string
	fuzzy      *fuzziness
	sequential bool
}

func parseAutocomplete(p *parser, a *spec.Reader) operator {
	return &autocomplete{a.RequiredStr("path"), a.Strings("query"), readFuzziness(a, 1, 50), a.Choice("tokenOrder", "any", "any", "sequential") == "sequential"}
}

func (o *autocomplete) resolve(r *resolver) (node, error) {
	f := r.grams(o.path)
	if f == nil {
		return nil, spec.Wrong("autocomplete index field definition not present at path %s", o.path)
	}
	for _, q := range o.queries {
		if len(q) > maxQueryBytes {
			return nil, tooManyClauses()
		}
	}
	var nodes []node
	for _, text := range f.grams.QueryTokens(o.queries, o.sequential) {
		var n node
		var err error
		if o.fuzzy != nil {
			n, err = r.fuzzyPart(f, text, o.fuzzy)
		} else {
			n, err = r.words(f, []analysis.Token{{Term: text}}, false)
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, spec.Wrong("no search tokens produced for autocomplete query after analysis; query tokens may have been removed by token filters such as stop word filters")
	}
	if exact := r.text(o.path, ""); exact != nil {
		// where the strings are indexed as such, whole words count more
		n, err := r.product([]stringPath{{value: o.path}}, o.queries, func(f *textField, query string) (node, error) {
			tokens, err := r.analyze(f, query)
			if err != nil {
				return nil, err
			}
			if o.sequential {
				return r.phrase(f, tokens, 0)
			}
			return r.words(f, tokens, false)
		})
		if err != nil {
			return nil, err
		}
		return &compound{slot: r.slot(), must: []node{r.either(nodes)}, should: []node{n}}, nil
	}
	return r.either(nodes), nil
}

// fuzzyPart is the node of the parts of words that are near one. All count alike.
func (r *resolver) fuzzyPart(f *textField, text string, how *fuzziness) (node, error) {
	if err := r.clause(); err != nil {
		return nil, err
	}
	runes := []rune(text)
	p := &pattern{runes: runes, prefix: string(runes[:min(how.prefixLength, len(runes))]), maxEdits: how.maxEdits}
	if how.prefixLength >= len(runes) {
		p.maxEdits = 0
	}
	return r.matches(f, p.takes), nil
}
