package fulltext

import (
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// scope is what is searched: the documents of the collection, or those of an array in them that is indexed as embeddedDocuments.
type scope struct {
	parent *scope // nil: the documents of the collection
	root   string // the path of the array, "" of documents
	path   fieldpath.Path
	fields *mapping.Document

	texts []*textField // whose statistics are asked for
	wild  []*wildcard
	// view is what is looked at.
	view view
}

// view is one document of a scope.
type view struct {
	doc bson.Doc
	// number is another for each view of the search.
	number uint64
}

// below is what remains of a path in the scope's documents.
func (s *scope) below(path string) (rest string, ok bool) {
	if s.root == "" {
		return path, true
	}
	return strings.CutPrefix(path, s.root+".")
}

// field is as what a path is indexed in the scope, nil where it is not.
func (s *scope) field(path string) *mapping.Field {
	rest, ok := s.below(path)
	if !ok {
		return nil
	}
	return s.fields.Field(rest)
}

// values are where a path is found in the scope's documents.
func (s *scope) values(path string) fieldpath.Path {
	rest, _ := s.below(path)
	return fieldpath.Split(rest)
}

// each shows visit the scope's documents in one of the scope above.
func (s *scope) each(doc bson.Doc, visit func(bson.Doc)) {
	s.path.Values(doc, fieldpath.Names, func(v bson.Value) {
		if v.Type == bson.TypeObject {
			visit(v.Doc())
		}
	})
}

// textField is a path with strings, analyzed in one way, and what the documents have there. Of the view that was loaded last it knows where the
// terms are that are asked for.
type textField struct {
	name  string // as scores are explained
	path  string
	multi string
	at    fieldpath.Path
	def   *mapping.String
	grams *analysis.Autocomplete // in place of the analyzer

	terms   map[string]*term
	tests   []*pattern  // of terms that are not known beforehand
	matches []*matching // of terms, all of which count alike

	loaded   uint64
	counting bool              // statistics are made of it
	position int               // behind the last token
	length   int               // how many positions have a token
	total    int               // how many tokens there are
	scratch  *[]analysis.Token // for all fields of a search
	tokens   []analysis.Token  // of a text that is marked
	large    []*[]int          // places that take much room, which are given back with the view
	sieve    *analysis.Sieve   // of as many terms as sifted says
	sifted   int

	documents, lengths int64 // the statistics of those that have the field
}

// term is a word that is asked for in a field.
type term struct {
	field     *textField
	text      string
	loaded    uint64 // the view that it was found in last
	freq      int
	placed    bool // places are asked for
	positions []int
	documents int64
}

// places are where the view that is loaded has the term.
func (t *term) places() []int {
	if !t.in() {
		return nil
	}
	return t.positions
}

// in says whether the view that is loaded has the term.
func (t *term) in() bool { return t.loaded == t.field.loaded && t.freq > 0 }

// term is one of the field's, from now on.
func (f *textField) term(text string) *term {
	t := f.terms[text]
	if t == nil {
		t = &term{field: f, text: text}
		f.terms[text] = t
	}
	return t
}

// load looks at what a view has at the field. counting says that the statistics are made.
func (f *textField) load(v view, counting bool) {
	if f.loaded == v.number {
		return
	}
	f.begin(v.number, counting)
	f.at.Values(v.doc, fieldpath.Names, func(v bson.Value) {
		if v.Type == bson.TypeString {
			f.add(v.Str())
		}
	})
	if counting && f.total > 0 {
		f.documents++
		f.lengths += int64(f.total)
	}
}

// begin forgets the view before.
func (f *textField) begin(number uint64, counting bool) {
	for _, places := range f.large {
		*places = nil
	}
	f.large = f.large[:0]
	f.loaded, f.counting, f.position, f.length, f.total = number, counting, 0, 0, 0
}

// partBytes is how long a part of a text is of which tokens are made at once, where it can be divided.
const partBytes = 1 << 16

// add adds the tokens of one string behind those of others.
func (f *textField) add(text string) {
	switch {
	case f.grams != nil:
		f.take(f.kept(f.grams.Tokens((*f.scratch)[:0], text)))
		return
	case f.def.IgnoreAbove > 0 && utf8.RuneCountInString(text) > f.def.IgnoreAbove:
		return
	case !f.def.Analyzer.Parts():
		f.take(f.kept(f.def.Analyzer.Tokens((*f.scratch)[:0], text)))
		return
	}
	sifts, sieve := f.def.Analyzer.Sifts(), f.sieveOf()
	for len(text) > 0 {
		part := text[:endOfPart(text)]
		text = text[len(part):]
		before := f.position
		if sifts {
			n := f.def.Analyzer.Sift(sieve, part, f.sift)
			f.position, f.length, f.total = before+n, f.length+n, f.total+n
			continue
		}
		tokens, positions := f.def.Analyzer.Part((*f.scratch)[:0], part)
		f.take(f.kept(tokens))
		f.position = before + positions
	}
}

// What is kept from one document to the next: room for so many tokens, and for so many places of a term.
const (
	keptTokens = 1 << 16
	keptPlaces = 1 << 12
)

// kept keeps the room of tokens for others, unless it is large.
func (f *textField) kept(tokens []analysis.Token) []analysis.Token {
	if *f.scratch = nil; cap(tokens) <= keptTokens {
		*f.scratch = tokens
	}
	return tokens
}

// place notes a place, and that the room is to be given back where there are many.
func (f *textField) place(places *[]int, at int) {
	if *places = append(*places, at); len(*places) == keptPlaces {
		f.large = append(f.large, places)
	}
}

// sieveOf is the sieve of the terms that are asked for, nil where all terms have to be looked at.
func (f *textField) sieveOf() *analysis.Sieve {
	if len(f.matches) > 0 || f.counting && len(f.tests) > 0 {
		return nil
	}
	if f.sieve == nil || f.sifted != len(f.terms) {
		f.sieve, f.sifted = analysis.NewSieve(maps.Keys(f.terms)), len(f.terms)
	}
	return f.sieve
}

// sift looks at a token that may be one of the terms.
func (f *textField) sift(text string, position int) { f.look(text, f.position+position) }

// look looks at a token at a place.
func (f *textField) look(text string, at int) {
	if t := f.found(text); t != nil {
		if t.freq++; t.placed {
			f.place(&t.positions, at)
		}
	}
	for _, m := range f.matches {
		m.look(text, at)
	}
}

// endOfPart is where a text is divided: at the last space that is not too far behind, or at the first one.
func endOfPart(text string) int {
	if len(text) <= partBytes {
		return len(text)
	}
	if i := strings.LastIndexByte(text[:partBytes], ' '); i > 0 {
		return i
	}
	if i := strings.IndexByte(text[partBytes:], ' '); i >= 0 {
		return partBytes + i + 1
	}
	return len(text)
}

// take looks at tokens for the terms that are asked for. They begin at the field's position.
func (f *textField) take(tokens []analysis.Token) {
	start, last := f.position, -1
	for i := range tokens {
		tok := &tokens[i]
		at := start + tok.Position
		f.total++
		if at != last {
			f.length, last = f.length+1, at
		}
		f.look(tok.Term, at)
	}
	f.position = max(f.position, last+1)
}

// found is the term of a token that is asked for, made ready for the view, nil where it is none.
func (f *textField) found(text string) *term {
	t := f.terms[text]
	if t == nil && f.counting {
		t = f.expand(text)
	}
	if t != nil && t.loaded != f.loaded {
		t.loaded, t.freq, t.positions = f.loaded, 0, t.positions[:0]
		if f.counting {
			t.documents++
		}
	}
	return t
}

// expand is the term of a token that a pattern matches, nil where none does.
func (f *textField) expand(text string) (found *term) {
	for _, p := range f.tests {
		if !p.takes(text) {
			continue
		}
		if found == nil {
			found = f.term(strings.Clone(text))
		}
		p.terms, p.bytes = append(p.terms, found), p.bytes+len(text)
		found.placed = found.placed || p.placed
	}
	return found
}

// resolver finds what a query names in an index.
type resolver struct {
	definition *mapping.Definition
	search     *Search
	scope      *scope
	fields     map[fieldKey]*textField
	slots      int32
	clauses    int
	pairs      int // of paths and queries
	thesauri   map[string]*thesaurus
	// twice says that all documents have to be seen before it can be told which are found.
	twice bool
}

type fieldKey struct {
	scope *scope
	name  string
}

// maxClauses bounds the terms that are searched for.
const maxClauses = 1024

// clause counts one more of what is searched for.
func (r *resolver) clause() error {
	r.clauses++
	if r.clauses > maxClauses {
		return tooManyClauses()
	}
	return nil
}

// pair counts one more query in one more path.
func (r *resolver) pair() error {
	if r.pairs++; r.pairs > maxClauses {
		return tooManyClauses()
	}
	return nil
}

func tooManyClauses() error { return spec.Wrong("maxClauseCount is set to %d", maxClauses) }

// slot is the number of one more operator that leaves evidence.
func (r *resolver) slot() int32 {
	r.slots++
	return r.slots
}

// text is a path with strings that are analyzed, nil where it is not indexed so.
func (r *resolver) text(path, multi string) *textField {
	field := r.scope.field(path)
	if field == nil || field.String == nil {
		return nil
	}
	def, name := field.String, "$type:string/"+path
	if multi != "" {
		if def = field.String.Multi[multi]; def == nil {
			return nil
		}
		name = "$multi/" + path + "." + multi
	}
	f := r.intern(name, path)
	f.def, f.multi = def, multi
	return f
}

// named is a path that a query names, nil where it is not indexed. An analysis that there is not is told.
func (r *resolver) named(p stringPath) (*textField, error) {
	f := r.text(p.value, p.multi)
	if f == nil && p.multi != "" {
		return nil, spec.Wrong("%s not found in index: %s", p, r.search.query.Index)
	}
	return f, nil
}

// grams is a path that is indexed as autocomplete.
func (r *resolver) grams(path string) *textField {
	field := r.scope.field(path)
	if field == nil || field.Autocomplete == nil {
		return nil
	}
	a := field.Autocomplete
	f := r.intern("$type:autocomplete/"+path, path)
	f.def = &mapping.String{Analyzer: a.Base, SearchAnalyzer: a.Base, Similarity: a.Similarity}
	f.grams = &a.Autocomplete
	return f
}

func (r *resolver) intern(name, path string) *textField {
	s := r.scope
	key := fieldKey{s, name}
	f := r.fields[key]
	if f == nil {
		f = &textField{name: name, path: strings.Clone(path), at: s.values(path), terms: map[string]*term{}, scratch: &r.search.tokens}
		r.fields[key] = f
		s.texts = append(s.texts, f)
	}
	return f
}
