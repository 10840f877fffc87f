package fulltext

import (
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// operator is what a query asks for, before it is looked for in an index.
type operator interface {
	resolve(r *resolver) (node, error)
}

// text is the operator of that name: any of the words of its queries, or all of those of one.
type text struct {
	paths    []stringPath
	queries  []string
	fuzzy    *fuzziness
	synonyms string
	all      bool
}

func parseText(p *parser, a *spec.Reader) operator {
	t := &text{paths: readPaths(a, "path"), queries: a.Strings("query"), synonyms: a.Word("synonyms")}
	t.all = a.Choice("matchCriteria", "any", "any", "all") == "all"
	t.fuzzy = readFuzziness(a, 1, 50)
	a.Only("fuzzy", "synonyms")
	p.asks(t.synonyms, t.queries)
	return t
}

func (t *text) resolve(r *resolver) (node, error) {
	if t.synonyms != "" {
		thesaurus, err := r.thesaurus(t.synonyms)
		if err != nil {
			return nil, err
		}
		return r.product(t.paths, t.queries, func(f *textField, query string) (node, error) {
			return r.synonymText(thesaurus, f, query, t.all)
		})
	}
	return r.product(t.paths, t.queries, func(f *textField, query string) (node, error) {
		tokens, err := r.analyze(f, query)
		if err != nil {
			return nil, err
		}
		if t.fuzzy == nil {
			return r.words(f, tokens, t.all)
		}
		var each []node
		for _, tok := range tokens {
			n, err := r.fuzzy(f, tok.Term, t.fuzzy)
			if err != nil {
				return nil, err
			}
			each = append(each, n)
		}
		if t.all && len(each) > 1 {
			return &compound{slot: r.slot(), must: each}, nil
		}
		return r.either(each), nil
	})
}

// product is the node of each of the queries in each of the paths.
func (r *resolver) product(paths []stringPath, queries []string, one func(f *textField, query string) (node, error)) (node, error) {
	var nodes []node
	for _, p := range paths {
		in := func(f *textField) (node, error) {
			var each []node
			for _, q := range queries {
				if err := r.pair(); err != nil {
					return nil, err
				}
				n, err := one(f, q)
				if err != nil {
					return nil, err
				}
				each = append(each, n)
			}
			return r.either(each), nil
		}
		if p.wildcard != "" {
			n, err := r.wildcard(p.wildcard, in)
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n)
			continue
		}
		f, err := r.named(p)
		if err != nil {
			return nil, err
		}
		if f == nil {
			// what is wrong with a query is told though nothing can be found
			if err := r.count(queries); err != nil {
				return nil, err
			}
			continue
		}
		n, err := in(f)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return r.either(nodes), nil
}

// count holds queries to the number of terms, by the analyzer that is the usual one.
func (r *resolver) count(queries []string) error {
	if r.pairs += len(queries); r.pairs > maxClauses {
		return tooManyClauses()
	}
	standard, err := analysis.Stock(analysis.Standard)
	if err != nil {
		return err
	}
	for _, q := range queries {
		for range standard.Tokens(nil, q) {
			if err := r.clause(); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	// maxQueryBytes bounds the text of a query: one that is longer has more words than may be searched for.
	maxQueryBytes = 1 << 20
	// maxWordBytes is how long a text is at most that is one word.
	maxWordBytes = 1 << 10
)

// analyze makes tokens of a query.
func (r *resolver) analyze(f *textField, query string) ([]analysis.Token, error) {
	if len(query) > maxQueryBytes {
		return nil, tooManyClauses()
	}
	tokens := f.def.SearchAnalyzer.Tokens(nil, query)
	if len(tokens) > maxClauses {
		return nil, tooManyClauses()
	}
	return tokens, nil
}

// phrase is the operator of that name: words one behind the other.
type phrase struct {
	paths    []stringPath
	queries  []string
	slop     int
	synonyms string
}

func parsePhrase(p *parser, a *spec.Reader) operator {
	ph := &phrase{readPaths(a, "path"), a.Strings("query"), a.Count("slop", 0), a.Word("synonyms")}
	p.asks(ph.synonyms, ph.queries)
	return ph
}

func (p *phrase) resolve(r *resolver) (node, error) {
	if p.synonyms != "" {
		thesaurus, err := r.thesaurus(p.synonyms)
		if err != nil {
			return nil, err
		}
		return r.product(p.paths, p.queries, func(f *textField, query string) (node, error) {
			return r.synonymPhrase(thesaurus, f, query, p.slop)
		})
	}
	return r.product(p.paths, p.queries, func(f *textField, query string) (node, error) {
		tokens, err := r.analyze(f, query)
		if err != nil {
			return nil, err
		}
		return r.phrase(f, tokens, p.slop)
	})
}
