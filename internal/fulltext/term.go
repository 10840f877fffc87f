package fulltext

import (
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// termOperator is term: a word as it is, or what is like it.
type termOperator struct {
	paths                   []stringPath
	queries                 []string
	fuzzy                   *fuzziness
	prefix, regex, wildcard bool
}

func parseTerm(p *parser, a *spec.Reader) operator { return readTerm(a) }

func readTerm(a *spec.Reader) *termOperator {
	t := &termOperator{paths: readPlainPaths(a, "path"), queries: a.Strings("query")}
	if sub := a.Inner("fuzzy"); sub != nil {
		t.fuzzy = &fuzziness{maxEdits: sub.IntWithin("maxEdits", 0, 2, 2), prefixLength: sub.Count("prefixLength", 0), maxExpansions: sub.Positive("maxExpansions", 256)}
		sub.Done()
	}
	t.prefix, t.regex, t.wildcard = a.Bool("prefix", false), a.Bool("regex", false), a.Bool("wildcard", false)
	n := 0
	for _, set := range []bool{t.fuzzy != nil, t.prefix, t.regex, t.wildcard} {
		if set {
			n++
		}
	}
	if n > 1 {
		a.Refuse("only one of [fuzzy, prefix, regex, wildcard] may be present")
	}
	return t
}

func (t *termOperator) resolve(r *resolver) (node, error) {
	return r.product(t.paths, t.queries, t.in(r))
}

// in is what is searched for in one field.
func (t *termOperator) in(r *resolver) func(f *textField, query string) (node, error) {
	return func(f *textField, query string) (node, error) {
		query = f.def.SearchAnalyzer.Normalize(query)
		source, err := t.expression(query)
		switch {
		case err != nil:
			return nil, err
		case source != "":
			if err := r.clause(); err != nil {
				return nil, err
			}
			return r.matching(f, source)
		case t.fuzzy != nil:
			return r.fuzzy(f, query, t.fuzzy)
		}
		return r.words(f, []analysis.Token{{Term: query}}, false)
	}
}

// expression is the regular expression of a term that is a pattern, "" of one that is none.
func (t *termOperator) expression(query string) (string, error) {
	switch {
	case t.prefix:
		return glob(escapeGlob(query) + "*"), nil
	case t.wildcard:
		return glob(query), nil
	case t.regex:
		return luceneRegexp(query)
	}
	return "", nil
}

// escapeGlob takes their meanings from the characters of a pattern.
func escapeGlob(text string) string {
	var out []byte
	for i := range len(text) {
		if text[i] == '*' || text[i] == '?' || text[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return string(out)
}

// searchOperator is search, an older form of text and phrase.
type searchOperator struct {
	paths   []stringPath
	queries []string
	phrase  bool
	prefix  bool
	slop    int
}

func parseSearchOperator(p *parser, a *spec.Reader) operator {
	s := &searchOperator{paths: readPlainPaths(a, "path"), queries: a.Strings("query")}
	if sub := a.Inner("phrase"); sub != nil {
		s.phrase, s.prefix, s.slop = true, sub.Bool("prefix", false), sub.IntWithin("slop", 0, 100, 0)
		sub.IntWithin("maxExpansions", 0, 1000, 50)
		if !s.prefix && sub.Has("maxExpansions") {
			sub.Refuse("maxExpansions can only be present with prefix: true")
		}
		sub.Done()
	}
	return s
}

func (s *searchOperator) resolve(r *resolver) (node, error) {
	if s.prefix {
		return nil, spec.Wrong("search.phrase.prefix is not supported by this server")
	}
	return r.product(s.paths, s.queries, func(f *textField, query string) (node, error) {
		tokens, err := r.analyze(f, query)
		if err != nil {
			return nil, err
		}
		if s.phrase {
			return r.phrase(f, tokens, s.slop)
		}
		return r.words(f, tokens, false)
	})
}
