package fulltext

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// SynonymSource shows the documents of a collection that has synonyms, one after the other, until take gives an error, which it returns. There are
// none where there is no such collection.
type SynonymSource func(collection string, take func(bson.Doc) error) error

const (
	// maxSynonymDocuments is how many documents the collection of a mapping has at most.
	maxSynonymDocuments = 1 << 16
	// maxSynonymBytes is how many bytes they have together at most: they are read for each search.
	maxSynonymBytes = 16 << 20
	// maxSynonymWords is how many words are kept at most of what a search may need of them.
	maxSynonymWords = 1 << 16
	// maxTold is how much of a text is told that is wrong.
	maxTold = 100
)

// asks notes what is searched for with the synonyms of a mapping.
func (p *parser) asks(mapping string, queries []string) {
	if mapping == "" {
		return
	}
	if p.asked == nil {
		p.asked = map[string][]string{}
	}
	p.asked[mapping] = append(p.asked[mapping], queries...)
}

// thesaurus are the synonyms of a mapping, those that a search may need.
type thesaurus struct {
	name     string
	analyzer *analysis.Analyzer
	asked    map[string]bool // the words of all that is searched for
	longest  int             // how many words one text has of them
	root     branch

	documents, bytes, kept int
	tokens                 []analysis.Token
}

// branch is where the words of an input lead.
type branch struct {
	next   map[string]*branch
	groups [][][]string // what may stand for the input, of each document that has it
	ways   [][]string   // each of those once, where that has been asked for
}

// SynonymFault says what is wrong with the documents of a mapping, "" where nothing is.
func SynonymFault(of mapping.Synonyms, source SynonymSource) (fault string, err error) {
	t := &thesaurus{analyzer: of.Analyzer}
	err = source(of.Collection, func(doc bson.Doc) error {
		err := t.take(doc)
		if err != nil {
			fault = mongoerr.From(err).Message
		}
		return err
	})
	if fault != "" {
		return fault, nil
	}
	return "", err
}

// thesaurus is the mapping of a name. It is read once, for all that the query asks of it.
func (r *resolver) thesaurus(name string) (*thesaurus, error) {
	if t := r.thesauri[name]; t != nil {
		return t, nil
	}
	of, ok := r.definition.Synonyms[name]
	if !ok {
		return nil, spec.Wrong(`unknown synonym mapping name "%s"`, name)
	}
	t := &thesaurus{name: name, analyzer: of.Analyzer, asked: map[string]bool{}}
	for _, q := range r.search.query.asked[name] {
		if len(q) > maxQueryBytes {
			continue // it is refused later
		}
		tokens := of.Analyzer.Tokens(nil, q)
		t.longest = max(t.longest, len(tokens))
		for i := range tokens {
			t.asked[tokens[i].Term] = true
		}
	}
	if source := r.search.query.Synonyms; source != nil {
		if err := source(of.Collection, t.read); err != nil {
			return nil, err
		}
	}
	if r.thesauri == nil {
		r.thesauri = map[string]*thesaurus{}
	}
	r.thesauri[name] = t
	return t, nil
}

// read takes a document, or says that there can be no search.
func (t *thesaurus) read(doc bson.Doc) error {
	if err := t.take(doc); err != nil {
		return spec.Wrong(`synonym mapping "%s" is in state INVALID and is not ready to service queries: %s`, t.name, mongoerr.From(err).Message)
	}
	if t.kept > maxSynonymWords {
		return spec.Wrong(`synonym mapping "%s" has more than %d words for what is searched for`, t.name, maxSynonymWords)
	}
	return nil
}

// take keeps what a document has for the search. All of it has to be right.
func (t *thesaurus) take(doc bson.Doc) error {
	if t.documents++; t.documents > maxSynonymDocuments {
		return spec.Wrong("Synonym document field limit exceeded: %d > %d", t.documents, maxSynonymDocuments)
	}
	if t.bytes += len(doc); t.bytes > maxSynonymBytes {
		return spec.Wrong("the documents of the collection have more than %d bytes", maxSynonymBytes)
	}
	if err := t.add(doc); err != nil {
		return spec.Wrong("failed to analyze string in synonym document%s: %s", which(doc.Lookup("_id")), mongoerr.From(err).Message)
	}
	return nil
}

// which tells the _id of a document where it is one that tells nothing of what the document holds: not all who search may read it.
func which(id bson.Value) string {
	if k := kindOf(id); k != objectIDKind && k != uuidKind {
		return ""
	}
	return " with _id " + id.String()
}

func (t *thesaurus) add(doc bson.Doc) error {
	a := spec.New("", doc)
	explicit := a.Enum("mappingType", "", "equivalent", "explicit") == "explicit"
	outputs := readWords(a, "synonyms")
	inputs := outputs
	if explicit {
		inputs = readWords(a, "input")
	}
	if err := a.Err(); err != nil {
		return err
	}
	var found, group [][]string
	for _, in := range inputs {
		words, err := t.analyze(in)
		if err != nil {
			return err
		}
		if t.mayBe(words) {
			found = t.keep(found, words)
		}
	}
	if len(found) == 0 && !explicit {
		return nil
	}
	for _, out := range outputs {
		words, err := t.analyze(out)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			group = t.keep(group, words)
		}
	}
	for _, in := range found {
		b := t.root.at(in)
		b.groups = append(b.groups, group)
	}
	return nil
}

// readWords reads an array of strings that are not blank.
func readWords(a *spec.Reader, name string) (out []string) {
	for _, e := range a.RequiredList(name, false) {
		switch {
		case e.Type == bson.TypeNull:
			a.RefuseAt(e.Path, "is required")
		case e.Type != bson.TypeString:
			a.RefuseAt(e.Path, "must be a string")
		case strings.TrimSpace(e.Str()) == "":
			a.RefuseAt(e.Path, "cannot be blank")
		default:
			out = append(out, e.Str())
		}
		if a.Err() != nil {
			return nil
		}
	}
	return out
}

// analyze makes words of a text: one behind the other, as inputs and synonyms have to be.
func (t *thesaurus) analyze(text string) ([]analysis.Token, error) {
	t.tokens = t.analyzer.Tokens(t.tokens[:0], text)
	if len(t.tokens) == 0 {
		return nil, spec.Wrong("term: %s was completely eliminated by analyzer", cut(text, maxTold))
	}
	for i, tok := range t.tokens {
		if tok.Term == "" {
			return nil, spec.Wrong("term: %s analyzed to a zero-length token", cut(text, maxTold))
		}
		if apart := advance(t.tokens, i); apart != 1 {
			return nil, spec.Wrong("term: %s analyzed to a token (%s) with position increment != 1 (got: %d)", cut(text, maxTold), cut(tok.Term, maxTold), apart)
		}
	}
	return t.tokens, nil
}

// advance is how many positions a token is behind the one before it.
func advance(tokens []analysis.Token, i int) int {
	if i == 0 {
		return tokens[0].Position + 1
	}
	return tokens[i].Position - tokens[i-1].Position
}

// mayBe says whether words may be in what is searched for.
func (t *thesaurus) mayBe(words []analysis.Token) bool {
	return len(words) <= t.longest && !slices.ContainsFunc(words, func(w analysis.Token) bool { return !t.asked[w.Term] })
}

// keep appends words to others that are kept. What is too much is told when the document has been read.
func (t *thesaurus) keep(to [][]string, words []analysis.Token) [][]string {
	if t.kept += len(words); t.kept > maxSynonymWords {
		return to
	}
	return append(to, terms(words))
}

// terms are those of tokens.
func terms(tokens []analysis.Token) []string {
	out := make([]string, len(tokens))
	for i := range tokens {
		out[i] = strings.Clone(tokens[i].Term)
	}
	return out
}

// at is the branch of an input, which is made where it is not there.
func (b *branch) at(words []string) *branch {
	for _, w := range words {
		next := b.next[w]
		if next == nil {
			if b.next == nil {
				b.next = map[string]*branch{}
			}
			next = &branch{}
			b.next[w] = next
		}
		b = next
	}
	return b
}

// find is the longest input that tokens begin with, and how many of them that are: none where there is no input.
func (b *branch) find(tokens []analysis.Token) (found *branch, n int) {
	for i := range tokens {
		if b = b.next[tokens[i].Term]; b == nil {
			break
		}
		if len(b.groups) > 0 {
			found, n = b, i+1
		}
	}
	return found, n
}

// place is a part of a query, and what may stand there.
type place struct {
	ways [][]string // the words of the query themselves come last
	gap  int        // the positions that are left out in front of it
}

// several says that one of the ways has more than one word.
func (p *place) several() bool {
	return slices.ContainsFunc(p.ways, func(words []string) bool { return len(words) > 1 })
}

// places parts the tokens of a query. As in Lucene, the gap that a word has left that is not searched for is forgotten in front of an input.
func (t *thesaurus) places(tokens []analysis.Token) (places []place, err error) {
	total := 0
	for i := 0; i < len(tokens); {
		b, n := t.root.find(tokens[i:])
		var p place
		if n == 0 {
			n, p.gap = 1, max(advance(tokens, i)-1, 0)
		} else {
			p.ways = slices.Clip(b.distinct())
		}
		p.ways = append(p.ways, terms(tokens[i:i+n]))
		for _, words := range p.ways {
			total += len(words)
		}
		if total > maxClauses {
			return nil, spec.Wrong("maxClauseCount is set to %d", maxClauses)
		}
		places, i = append(places, p), i+n
	}
	return places, nil
}

// distinct are what may stand for an input, each once, and no more than can be searched for and one.
func (b *branch) distinct() [][]string {
	if b.ways != nil {
		return b.ways
	}
	seen := map[string]bool{}
	for _, group := range b.groups {
		for _, words := range group {
			key := strings.Join(words, "\x00")
			if seen[key] {
				continue
			}
			if b.ways, seen[key] = append(b.ways, words), true; len(b.ways) > maxClauses {
				return b.ways
			}
		}
	}
	return b.ways
}

// parted analyzes what is searched for in a field, and parts it by the synonyms, which have to be those of the field's analyzer.
func (r *resolver) parted(t *thesaurus, f *textField, query string) ([]analysis.Token, []place, error) {
	if name, other := t.analyzer.Name(), f.def.SearchAnalyzer.Name(); name != other {
		path := stringPath{value: f.path, multi: f.multi}
		return nil, nil, spec.Wrong(`synonym mapping "%s" is only allowed with %s analyzer, field %s is analyzed with %s analyzer`, t.name, name, path, other)
	}
	tokens, err := r.analyze(f, query)
	if err != nil {
		return nil, nil, err
	}
	places, err := t.places(tokens)
	return tokens, places, err
}

// synonymText is the node of words, of which others may stand in the place.
func (r *resolver) synonymText(t *thesaurus, f *textField, query string, all bool) (node, error) {
	tokens, places, err := r.parted(t, f, query)
	if err != nil {
		return nil, err
	}
	var each []node
	for i := range places {
		n, err := r.alternatives(f, &places[i])
		if err != nil {
			return nil, err
		}
		each = append(each, n)
	}
	n := r.either(each)
	if all && len(each) > 1 {
		n = &compound{slot: r.slot(), must: each}
	}
	if len(tokens) == 0 || len(tokens) == 1 && len(places[0].ways) == 1 {
		return n, nil
	}
	exact, err := r.words(f, tokens, all)
	return r.preferring(n, exact), err
}

// others is how much of their scores the alternatives count that are not the best.
const others = 0.1

// alternatives is the node of a place. Where some of the ways are phrases, the best one counts.
func (r *resolver) alternatives(f *textField, p *place) (node, error) {
	if !p.several() {
		return r.alike(f, p.ways)
	}
	if f.def.NoPositions {
		return nil, spec.Wrong("field %s not indexed as string with indexOptions=offset or indexOptions=positions, which is required for text operator queries using synonyms", f.path)
	}
	tie := others
	best := &compound{slot: r.slot(), tie: &tie}
	for _, words := range p.ways {
		n, err := r.phrase(f, consecutive(nil, words, 0), 0)
		if err != nil {
			return nil, err
		}
		best.should = append(best.should, n)
	}
	return best, nil
}

// consecutive appends words as tokens one behind the other, the first of them behind a gap.
func consecutive(tokens []analysis.Token, words []string, gap int) []analysis.Token {
	at := gap
	if n := len(tokens); n > 0 {
		at += tokens[n-1].Position + 1
	}
	for i, w := range words {
		tokens = append(tokens, analysis.Token{Term: w, Position: at + i})
	}
	return tokens
}

// preferring is a node whose results count more where they are exactly what is searched for.
func (r *resolver) preferring(n, exact node) node {
	const exactBoost = 2
	twice := &expression{kind: "multiply", args: []*expression{{kind: "score"}, {kind: "constant", value: exactBoost}}}
	return &either{r.slot(), []node{n, &scored{slot: r.slot(), node: exact, expr: twice, scope: r.scope}}}
}

// synonymPhrase is the node of a phrase, in which others may stand in the place of words.
func (r *resolver) synonymPhrase(t *thesaurus, f *textField, query string, slop int) (node, error) {
	tokens, places, err := r.parted(t, f, query)
	if err != nil {
		return nil, err
	}
	exact, err := r.phrase(f, tokens, slop)
	if err != nil || !slices.ContainsFunc(places, func(p place) bool { return len(p.ways) > 1 }) {
		return exact, err
	}
	var n node
	switch {
	case slices.ContainsFunc(places, func(p place) bool { return p.several() }):
		n, err = r.everyPhrase(f, places, slop)
	case len(places) == 1:
		n, err = r.alike(f, places[0].ways)
	default:
		n, err = r.phraseOf(f, places, slop)
	}
	if err != nil {
		return nil, err
	}
	return r.preferring(n, exact), nil
}

// everyPhrase is the node of all phrases that the ways of places make together. The clauses bound how many those are.
func (r *resolver) everyPhrase(f *textField, places []place, slop int) (node, error) {
	var each []node
	way := make([]int, len(places))
	for {
		var tokens []analysis.Token
		for i, p := range places {
			tokens = consecutive(tokens, p.ways[way[i]], p.gap)
		}
		n, err := r.phrase(f, tokens, slop)
		if err != nil {
			return nil, err
		}
		each = append(each, n)
		i := len(way) - 1
		for ; i >= 0; i-- {
			if way[i]++; way[i] < len(places[i].ways) {
				break
			}
			way[i] = 0
		}
		if i < 0 {
			return r.either(each), nil
		}
	}
}

// phraseOf is the node of a phrase with several words to choose from at a place.
func (r *resolver) phraseOf(f *textField, places []place, slop int) (node, error) {
	if err := f.positioned(); err != nil {
		return nil, err
	}
	n := &sequence{slot: r.slot(), field: f, slop: slop}
	at := -1
	for _, p := range places {
		at += 1 + p.gap
		s := seat{at: at - places[0].gap}
		for _, words := range p.ways {
			if err := r.clause(); err != nil {
				return nil, err
			}
			s.terms = append(s.terms, f.term(words[0]))
		}
		n.seats = append(n.seats, s)
	}
	n.describe()
	return n, nil
}

// alike finds documents with one of several terms, which count as if they were the same.
type alike struct {
	leaf
	slot  int32
	field *textField
	terms []*term // in their order; one that is there twice counts so
}

// alike is the node of ways of one word each.
func (r *resolver) alike(f *textField, ways [][]string) (node, error) {
	if len(ways) == 1 {
		return r.words(f, consecutive(nil, ways[0], 0), false)
	}
	n := &alike{slot: r.slot(), field: f}
	for _, words := range ways {
		if err := r.clause(); err != nil {
			return nil, err
		}
		n.terms = append(n.terms, f.term(words[0]))
	}
	slices.SortStableFunc(n.terms, func(a, b *term) int { return strings.Compare(a.text, b.text) })
	return n, nil
}

func (n *alike) find(ev []evidence) ([]evidence, bool) {
	freq := 0
	for _, t := range n.terms {
		if t.in() {
			freq += t.freq
		}
	}
	if freq == 0 {
		return ev, false
	}
	return append(ev, evidence{n.slot, 0, float32(freq), float32(n.field.length)}), true
}

// score is that of a term that is as common as the most common of them.
func (n *alike) score(c *cursor) (float64, *detail, bool) {
	e, ok := c.next(n.slot)
	if !ok {
		return 0, nil, false
	}
	as := &term{field: n.field, text: "synonym pseudo-term"} // whose length is that of Lucene's, which one similarity looks at
	name := ""
	for _, t := range n.terms {
		as.documents = max(as.documents, t.documents)
		if c.explain {
			name += " " + n.field.name + ":" + t.text
		}
	}
	score, d := c.relevance(n.field, "Synonym("+strings.TrimPrefix(name, " ")+")", []*term{as}, e, 1)
	return score, d, true
}

func (n *alike) mark(f *textField, mark func(int)) {
	if f != n.field {
		return
	}
	for i := range f.tokens {
		if slices.ContainsFunc(n.terms, func(t *term) bool { return t.text == f.tokens[i].Term }) {
			mark(i)
		}
	}
}
