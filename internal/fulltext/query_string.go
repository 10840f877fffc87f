package fulltext

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// queryString is an operator whose query is a text in the language of Lucene's classic query parser.
type queryString struct {
	query, path string
	parsed      *queryNode
}

func parseQueryString(p *parser, a *spec.Reader) operator {
	q := &queryString{query: a.Word("query"), path: a.RequiredStr("defaultPath")}
	if !a.Has("query") {
		a.RefuseField("query", "is required")
	}
	if a.Err() != nil {
		return q
	}
	t := &queryParser{text: []rune(q.query)}
	q.parsed = t.all()
	if t.failed != "" {
		a.Refuse("Cannot parse '%s': %s", q.query, t.failed)
	}
	return q
}

// queryNode is a part of such a text.
type queryNode struct {
	field  string // "" where it has none of its own
	text   string
	kind   queryKind
	from   string // of a range
	open   [2]bool
	slop   int
	edits  int
	boost  float64
	occurs occurrence
	parts  []*queryNode // of a group
}

type queryKind int

const (
	plainTerm queryKind = iota
	quotedTerm
	patternTerm
	regexTerm
	fuzzyTerm
	rangeTerm
	everything
	groupOf
)

type occurrence int

const (
	may occurrence = iota
	mustOccur
	mustNotOccur
)

// queryParser reads one.
type queryParser struct {
	text   []rune
	at     int
	depth  int
	count  int
	failed string
}

func (p *queryParser) fail(format string) {
	if p.failed == "" {
		p.failed = format
	}
}

func (p *queryParser) space() {
	for p.at < len(p.text) && strings.ContainsRune(" \t\n\r\u3000", p.text[p.at]) {
		p.at++
	}
}

func (p *queryParser) more() bool { return p.at < len(p.text) && p.failed == "" }

// all reads the whole.
func (p *queryParser) all() *queryNode {
	n := p.group("")
	if p.more() {
		p.fail("Encountered \"" + string(p.text[p.at]) + "\" at column " + strconv.Itoa(p.at) + ".")
	}
	return n
}

// group reads clauses up to the end or a closing parenthesis.
func (p *queryParser) group(field string) *queryNode {
	n := &queryNode{kind: groupOf, field: field, boost: 1}
	if p.depth++; p.depth > maxDepth {
		p.fail("too many parentheses")
	}
	defer func() { p.depth-- }()
	for p.space(); p.more() && p.text[p.at] != ')'; p.space() {
		and, or := p.word("AND", "&&"), false
		if !and {
			or = p.word("OR", "||")
		}
		if (and || or) && len(n.parts) == 0 {
			p.fail("Encountered a conjunction at column " + strconv.Itoa(p.at) + ".")
		}
		occurs := may
		switch {
		case p.word("NOT", "!"), p.sign('-'):
			occurs = mustNotOccur
		case p.sign('+'):
			occurs = mustOccur
		}
		c := p.clause(field)
		if c == nil {
			return n
		}
		if and {
			if last := n.parts[len(n.parts)-1]; last.occurs == may {
				last.occurs = mustOccur
			}
			if occurs == may {
				occurs = mustOccur
			}
		}
		c.occurs = occurs
		n.parts = append(n.parts, c)
	}
	if len(n.parts) == 0 {
		p.fail("Encountered \"<EOF>\" at column " + strconv.Itoa(p.at) + ".")
	}
	return n
}

// word reads one of two ways to write a conjunction.
func (p *queryParser) word(long, short string) bool {
	p.space()
	for _, w := range []string{long, short} {
		end := p.at + len(w)
		if end > len(p.text) || string(p.text[p.at:end]) != w {
			continue
		}
		if w == long && end < len(p.text) && !strings.ContainsRune(" \t\n\r(", p.text[end]) {
			continue
		}
		p.at = end
		p.space()
		return true
	}
	return false
}

func (p *queryParser) sign(c rune) bool {
	if p.more() && p.text[p.at] == c {
		p.at++
		p.space()
		return true
	}
	return false
}

// clause reads one, with the field that it names.
func (p *queryParser) clause(field string) *queryNode {
	if !p.more() {
		p.fail("Encountered \"<EOF>\" at column " + strconv.Itoa(p.at) + ".")
		return nil
	}
	if name, ok := p.fieldName(); ok {
		field = name
		if strings.HasPrefix(field, "$") {
			p.fail("field " + field + " cannot begin with $")
		}
		p.space()
	}
	if !p.more() {
		p.fail("Encountered \"<EOF>\" at column " + strconv.Itoa(p.at) + ".")
		return nil
	}
	for _, w := range []string{"AND", "OR", "NOT"} {
		if start := p.at; p.word(w, w) {
			p.fail("Encountered \" <" + w + "> \" at column " + strconv.Itoa(start) + ".")
			return nil
		}
	}
	if p.count++; p.count > maxClauses {
		p.fail("too many boolean clauses")
	}
	n := &queryNode{field: field, boost: 1}
	switch c := p.text[p.at]; c {
	case '(':
		p.at++
		n = p.group(field)
		if !p.sign(')') {
			p.fail("Encountered \"<EOF>\": a parenthesis is not closed.")
		}
	case '"':
		n.kind, n.text = quotedTerm, p.until('"')
	case '/':
		n.kind, n.text = regexTerm, p.until('/')
	case '[', '{':
		p.rangeOf(n)
	case ')', ':', '^', '~', ']', '}':
		p.fail("Encountered \"" + string(c) + "\" at column " + strconv.Itoa(p.at) + ".")
	default:
		p.term(n)
	}
	p.suffixes(n)
	return n
}

// fieldName reads a name and the colon behind it, where they are next.
func (p *queryParser) fieldName() (string, bool) {
	var b strings.Builder
	for i := p.at; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\' && i+1 < len(p.text):
			i++
			b.WriteRune(p.text[i])
		case c == ':' && b.Len() > 0:
			p.at = i + 1
			return b.String(), true
		case strings.ContainsRune(" \t\n\r()[]{}\"^~/:", c), i == p.at && strings.ContainsRune("+-!", c):
			return "", false
		default:
			b.WriteRune(c)
		}
	}
	return "", false
}

// until reads up to a character that closes what was opened.
func (p *queryParser) until(end rune) string {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\' && p.at+1 < len(p.text):
			p.at++
			if end == '/' && p.text[p.at] != '/' {
				b.WriteRune('\\')
			}
			b.WriteRune(p.text[p.at])
		case c == end:
			p.at++
			return b.String()
		default:
			b.WriteRune(c)
		}
	}
	p.fail("Lexical error: \"" + string(end) + "\" is not closed.")
	return ""
}

// term reads a word, which may be a pattern. Backslashes stay before what patterns would take for their own.
func (p *queryParser) term(n *queryNode) {
	var plain, pattern strings.Builder
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		if c == '\\' {
			if p.at++; p.at == len(p.text) {
				p.fail("Term can not end with escape character.")
				return
			}
			plain.WriteRune(p.text[p.at])
			pattern.WriteString(escapeGlob(string(p.text[p.at])))
			continue
		}
		if strings.ContainsRune(" \t\n\r\u3000()[]{}\"^~:", c) {
			break
		}
		if c == '*' || c == '?' {
			n.kind = patternTerm
		}
		plain.WriteRune(c)
		pattern.WriteRune(c)
	}
	if p.at < len(p.text) && p.text[p.at] == ':' {
		p.fail("Encountered \":\" at column " + strconv.Itoa(p.at) + ".")
	}
	n.text = plain.String()
	if n.kind == patternTerm {
		n.text = pattern.String()
		switch {
		case n.text == "*" && n.field == "*":
			n.kind = everything
		case n.text != "*" && (n.text[0] == '*' || n.text[0] == '?'):
			p.fail("'*' or '?' not allowed as first character in WildcardQuery")
		}
	}
}

// rangeOf reads a range.
func (p *queryParser) rangeOf(n *queryNode) {
	n.kind = rangeTerm
	n.open[0] = p.text[p.at] == '{'
	p.at++
	var words []string
	for p.space(); p.more() && p.text[p.at] != ']' && p.text[p.at] != '}'; p.space() {
		if p.text[p.at] == '"' {
			words = append(words, p.until('"'))
			continue
		}
		start := p.at
		for p.at < len(p.text) && !strings.ContainsRune(" \t\n\r]}", p.text[p.at]) {
			p.at++
		}
		words = append(words, strings.ReplaceAll(string(p.text[start:p.at]), `\`, ""))
	}
	if !p.more() || len(words) != 3 || words[1] != "TO" {
		p.fail("a range must be [a TO b]")
		return
	}
	n.from, n.text, n.open[1] = words[0], words[2], p.text[p.at] == '}'
	p.at++
}

// suffixes reads what may stand behind a clause: ~ and how near, ^ and what it counts.
func (p *queryParser) suffixes(n *queryNode) {
	for p.more() {
		switch c := p.text[p.at]; {
		case c == '~' && (n.kind == plainTerm || n.kind == quotedTerm):
			p.at++
			value, ok := p.number()
			switch {
			case n.kind == quotedTerm && ok:
				n.slop = int(min(max(value, 0), maxClauses))
			case n.kind == plainTerm:
				n.kind, n.edits = fuzzyTerm, 2
				if ok && value >= 0 && value <= 2 {
					n.edits = int(value)
				}
			}
		case c == '^':
			p.at++
			value, ok := p.number()
			if !ok {
				p.fail("a boost must be a number")
			}
			n.boost = value
		default:
			return
		}
	}
}

func (p *queryParser) number() (float64, bool) {
	start := p.at
	for p.at < len(p.text) && strings.ContainsRune("0123456789.", p.text[p.at]) {
		p.at++
	}
	f, err := strconv.ParseFloat(string(p.text[start:p.at]), 64)
	return f, err == nil
}

func (q *queryString) resolve(r *resolver) (node, error) { return q.node(r, q.parsed) }

// node is what one part searches for.
func (q *queryString) node(r *resolver, part *queryNode) (node, error) {
	n, err := q.plain(r, part)
	if err != nil || part.boost == 1 {
		return n, err
	}
	e := &expression{kind: "multiply", args: []*expression{{kind: "score"}, {kind: "constant", value: part.boost}}}
	return &scored{slot: r.slot(), node: n, expr: e, scope: r.scope}, nil
}

func (q *queryString) plain(r *resolver, part *queryNode) (node, error) {
	switch part.kind {
	case groupOf:
		return q.group(r, part)
	case everything:
		return everywhere{}.resolve(r)
	}
	path := part.field
	if path == "" {
		path = q.path
	}
	f := r.text(path, "")
	if f == nil {
		return nothing{}, nil
	}
	analyzer := f.def.SearchAnalyzer
	switch part.kind {
	case patternTerm:
		return r.matching(f, glob(analyzer.Normalize(part.text)))
	case regexTerm:
		source, err := luceneRegexp(analyzer.Normalize(part.text))
		if err != nil {
			return nil, err
		}
		return r.matching(f, source)
	case fuzzyTerm:
		return r.fuzzy(f, analyzer.Normalize(part.text), &fuzziness{maxEdits: part.edits, maxExpansions: 50})
	case rangeTerm:
		return r.matches(f, part.holds(analyzer.Normalize)), nil
	}
	tokens, err := r.analyze(f, part.text)
	if err != nil {
		return nil, err
	}
	if part.kind == quotedTerm {
		return r.phrase(f, tokens, part.slop)
	}
	return r.words(f, tokens, false)
}

// holds is the test of a range of terms.
func (n *queryNode) holds(normalize func(string) string) func(string) bool {
	from, to := normalize(n.from), normalize(n.text)
	return func(text string) bool {
		if n.from != "*" && (text < from || text == from && n.open[0]) {
			return false
		}
		return n.text == "*" || text < to || text == to && !n.open[1]
	}
}

// group combines clauses. One that says only what must not be finds nothing.
func (q *queryString) group(r *resolver, part *queryNode) (node, error) {
	if len(part.parts) == 1 && part.parts[0].occurs != mustNotOccur {
		return q.node(r, part.parts[0])
	}
	c := &compound{slot: r.slot()}
	for _, each := range part.parts {
		n, err := q.node(r, each)
		if err != nil {
			return nil, err
		}
		switch each.occurs {
		case mustOccur:
			c.must = append(c.must, n)
		case mustNotOccur:
			c.mustNot = append(c.mustNot, n)
		default:
			c.should = append(c.should, n)
		}
	}
	if len(c.must)+len(c.should) == 0 {
		return nothing{}, nil
	}
	return c, nil
}
