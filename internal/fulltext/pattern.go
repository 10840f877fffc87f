package fulltext

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// termLevel is wildcard or regex: patterns that whole terms are compared with.
type termLevel struct {
	paths    []stringPath
	queries  []string
	analyzed bool // fields that are analyzed are wanted
	regex    bool
}

func parseWildcard(p *parser, a *spec.Reader) operator {
	return &termLevel{readPaths(a, "path"), a.Strings("query"), a.Bool("allowAnalyzedField", false), false}
}

func parseRegex(p *parser, a *spec.Reader) operator {
	return &termLevel{readPaths(a, "path"), a.Strings("query"), a.Bool("allowAnalyzedField", false), true}
}

func (t *termLevel) resolve(r *resolver) (node, error) {
	if !t.analyzed {
		for _, p := range t.paths {
			if p.wildcard == "" && !r.isWhole(p) {
				return nil, isAnalyzed(p.String())
			}
		}
	}
	return r.product(t.paths, t.queries, func(f *textField, query string) (node, error) {
		if !t.analyzed && !f.def.Analyzer.IsKeyword() {
			return nil, isAnalyzed(f.path)
		}
		if err := r.clause(); err != nil {
			return nil, err
		}
		query = f.def.SearchAnalyzer.Normalize(query)
		source := glob(query)
		if t.regex {
			var err error
			if source, err = luceneRegexp(query); err != nil {
				return nil, err
			}
		}
		return r.matching(f, source)
	})
}

func isAnalyzed(path string) error {
	return spec.Wrong("Field %s is analyzed. Use a keyword analyzed field or set allowAnalyzedField to true.", path)
}

// isWhole says that the strings of a path stay whole. Those of one that is not indexed would not.
func (r *resolver) isWhole(p stringPath) bool {
	f := r.scope.field(p.value)
	if f == nil || f.String == nil {
		return f != nil && f.Token != nil
	}
	def := f.String
	if p.multi != "" {
		def = def.Multi[p.multi]
	}
	return def != nil && def.Analyzer.IsKeyword()
}

// glob is a pattern of * and ? as a regular expression. A backslash takes the meaning of what stands behind it away.
func glob(pattern string) string {
	var b strings.Builder
	escaped := false
	for _, c := range pattern {
		switch {
		case escaped:
			b.WriteString(regexp.QuoteMeta(string(c)))
			escaped = false
		case c == '\\':
			escaped = true
		case c == '*':
			b.WriteString(`.*`)
		case c == '?':
			b.WriteByte('.')
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if escaped {
		b.WriteString(`\\`)
	}
	return b.String()
}

// luceneRegexp is a regular expression of Lucene in the language of Go's. What that has no word for is refused: complements, intersections and
// ranges of numbers.
func luceneRegexp(pattern string) (string, error) {
	var b strings.Builder
	runes := []rune(pattern)
	inClass := false
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '\\':
			if i++; i == len(runes) {
				return "", spec.Wrong("end-of-string expected at position %d", i)
			}
			if strings.ContainsRune("dDwWsS", runes[i]) {
				b.WriteRune('\\')
				b.WriteRune(runes[i])
				continue
			}
			if isLetter(runes[i]) {
				return "", spec.Wrong(`Inappropriate use of backslashes is not allowed. Starting from Lucene 9,an expression like '\p' is not interpreted as the letter 'p' anymore.See LUCENE-9370 for details.`)
			}
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		case inClass:
			if c == ']' {
				inClass = false
			}
			if c == '[' {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
		case c == '[':
			inClass = true
			b.WriteRune(c)
		case c == '~' || c == '&' || c == '<':
			return "", spec.Wrong("the operator %c of regular expressions is not supported by this server", c)
		case c == '@':
			b.WriteString(`.*`)
		case c == '#':
			b.WriteString(`[^\x{0}-\x{10FFFF}]`)
		case c == '"':
			end := i + 1
			for end < len(runes) && runes[end] != '"' {
				end++
			}
			if end == len(runes) {
				return "", spec.Wrong(`expected '"' at position %d`, end)
			}
			b.WriteString("(?:" + regexp.QuoteMeta(string(runes[i+1:end])) + ")")
			i = end
		case c == '^' || c == '$':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '(':
			b.WriteString("(?:")
		case strings.ContainsRune("?*+}", c) && i+1 < len(runes) && (runes[i+1] == '?' || runes[i+1] == '+' || runes[i+1] == '*'):
			// which would mean something else to Go
			return "", spec.Wrong("a repetition behind a repetition is not supported by this server: %s", string(runes[i:i+2]))
		default:
			b.WriteRune(c)
		}
	}
	return b.String(), nil
}

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// maxPattern bounds what a regular expression may be made of.
const maxPattern = 1 << 18

// matching is the node of the terms of a field that match a regular expression as a whole.
func (r *resolver) matching(f *textField, source string) (node, error) {
	re, err := compile(source)
	if err != nil {
		return nil, err
	}
	return r.matches(f, re.MatchString), nil
}

// compile makes a regular expression that whole terms match.
func compile(source string) (*regexp.Regexp, error) {
	if len(source) > maxPattern {
		return nil, spec.Wrong("a pattern cannot have more than %d bytes", maxPattern)
	}
	if _, err := regexp.Compile(source); err != nil {
		if bad, ok := errors.AsType[*syntax.Error](err); ok {
			return nil, spec.Wrong("invalid regular expression: %s: %s", bad.Code, bad.Expr)
		}
		return nil, spec.Wrong("invalid regular expression: %s", err)
	}
	re, err := regexp.Compile(`(?s)\A(?:` + source + `)\z`)
	if err != nil {
		return nil, spec.Wrong("invalid regular expression: %s", err)
	}
	return re, nil
}

// matching finds documents with a term in a field that passes a test.
type matching struct {
	slot int32
	leaf
	field  *textField
	test   func(string) bool
	seen   map[string]bool
	loaded uint64 // the view that has one
	placed bool   // places are asked for
	at     []int  // where
}

// matches is the node of the terms of a field that pass a test.
func (r *resolver) matches(f *textField, test func(string) bool) *matching {
	m := &matching{slot: r.slot(), field: f, test: test}
	f.matches = append(f.matches, m)
	return m
}

// maxRemembered is how many terms a test remembers what it said of, and maxRememberedBytes how long they are at most.
const (
	maxRemembered      = 1 << 14
	maxRememberedBytes = 64
)

func (n *matching) takes(text string) bool {
	ok, known := n.seen[text]
	if known {
		return ok
	}
	ok = n.test(text)
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	if len(n.seen) < maxRemembered && len(text) <= maxRememberedBytes {
		n.seen[strings.Clone(text)] = ok
	}
	return ok
}

// look looks at a token of the view that its field loads.
func (n *matching) look(text string, at int) {
	if !n.takes(text) {
		return
	}
	if n.loaded != n.field.loaded {
		n.loaded, n.at = n.field.loaded, n.at[:0]
	}
	if n.placed {
		n.field.place(&n.at, at)
	}
}

// places are where the view has such a term.
func (n *matching) places() []int {
	if n.loaded != n.field.loaded {
		return nil
	}
	return n.at
}

func (n *matching) find(ev []evidence) ([]evidence, bool) {
	if n.loaded != n.field.loaded {
		return ev, false
	}
	return append(ev, evidence{slot: n.slot}), true
}

func (n *matching) score(c *cursor) (float64, *detail, bool) {
	_, ok := c.next(n.slot)
	return 1, c.detail(1, nil, "ConstantScore(%s)", n.field.name), ok
}

func (n *matching) mark(f *textField, mark func(int)) {
	if f != n.field {
		return
	}
	for i := range f.tokens {
		if n.takes(f.tokens[i].Term) {
			mark(i)
		}
	}
}
