// Package fulltext is $search and $searchMeta: it reads what is searched for, finds the documents among those that it is shown, and computes
// their scores, as Lucene does, from what all of them hold. It knows the definitions of indexes (mapping) and how texts become words (analysis), and
// nothing of where documents come from.
package fulltext

import (
	"cmp"
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fulltext/analysis"
	"github.com/ebbdb/ebb/internal/fulltext/mapping"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// Search is a search by one index while it goes on. It is used by one goroutine at a time.
type Search struct {
	query    *Query
	stored   *mapping.Stored
	root     *scope
	scope    *scope // whose documents are the results
	resolver *resolver
	node     node
	sorters  []sorter

	views    uint64
	counting bool // statistics are made
	deciding bool // what is found is kept
	err      error

	scratch []evidence
	tokens  []analysis.Token
	hits    []*hit
	total   int64
	results []*hit // in their order, when all is known
	next    int
}

// hit is a document that was found.
type hit struct {
	id      bson.Value
	ordinal int // of the document in the array that is returned
	found   []evidence
	keys    []bson.Value
	score   float32
}

// New is the search for what a query asks by an index that is defined so.
func New(d *mapping.Definition, q *Query) (*Search, error) {
	root := &scope{fields: d.Root}
	s := &Search{query: q, root: root, scope: root, stored: d.Stored}
	r := &resolver{definition: d, search: s, scope: root, fields: map[fieldKey]*textField{}}
	s.resolver = r
	if q.within != "" {
		e := d.Embedded(q.within)
		if e == nil || e.Stored == nil {
			return nil, spec.Wrong("returnScope.path '%s' must be indexed as embeddedDocuments with a storedSource", q.within)
		}
		inner, err := r.nested(q.within)
		if err != nil {
			return nil, err
		}
		s.scope, r.scope, s.stored = inner, inner, e.Stored
	}
	if q.source && s.stored == nil {
		return nil, spec.Wrong("storedSource is not configured for this index. For queries on 'embeddedDocument' fields with 'storedSource', the 'returnScope' option must be populated")
	}
	var err error
	if s.node, err = q.operator.resolve(r); err != nil {
		return nil, err
	}
	if q.highlight != nil {
		if err := q.highlight.resolve(r); err != nil {
			return nil, err
		}
	}
	for _, f := range q.facets {
		if err := f.resolve(s.scope); err != nil {
			return nil, err
		}
	}
	s.sorters = s.scope.sorters(q.order)
	for _, t := range []*token{q.after, q.before} {
		if t != nil && len(t.keys) != len(s.sorters) {
			return nil, spec.Wrong("the token of searchAfter or searchBefore is of a query that sorts otherwise")
		}
	}
	s.counting, s.deciding = true, !r.twice
	r.freeze()
	return s, nil
}

// freeze shows the patterns the terms that are asked for themselves.
func (r *resolver) freeze() {
	for _, f := range r.fields {
		for _, t := range f.terms {
			for _, p := range f.tests {
				if p.takes(t.text) && !slices.Contains(p.terms, t) {
					p.terms = append(p.terms, t)
					t.placed = t.placed || p.placed
				}
			}
		}
	}
}

func (s *Search) failed(err error) {
	if s.err == nil {
		s.err = err
	}
}

// look makes a document the view of a scope.
func (s *Search) look(sc *scope, doc bson.Doc, counting bool) {
	s.views++
	sc.view = view{doc, s.views}
	for _, w := range sc.wild {
		w.discover(doc)
	}
	for _, f := range sc.texts {
		f.load(sc.view, counting)
	}
}

// load makes a text the one that a field has, with all of its tokens.
func (s *Search) load(f *textField, text string) {
	s.views++
	f.begin(s.views, false)
	if f.grams != nil {
		f.tokens = f.grams.Tokens(nil, text)
	} else {
		f.tokens = f.def.Analyzer.Tokens(nil, text)
	}
	f.take(f.tokens)
}

// hitBytes is about what is kept of a document that was found, beside what it has.
const (
	hitBytes      = 160
	evidenceBytes = 16
)

// Add looks at a document, which has an _id, by which it is fetched again when its turn has come. memory is how many bytes are kept of it.
func (s *Search) Add(doc bson.Doc) (memory int, err error) {
	s.look(s.root, doc, s.counting)
	if s.scope == s.root {
		memory = s.consider(doc, doc, 0)
		return memory, s.err
	}
	ordinal := 0
	s.scope.each(doc, func(d bson.Doc) {
		s.look(s.scope, d, s.counting)
		memory += s.consider(doc, d, ordinal)
		ordinal++
	})
	return memory, s.err
}

// consider keeps a document, or one of its array, where it is found.
func (s *Search) consider(doc, d bson.Doc, ordinal int) int {
	s.node.observe(s.counting)
	if !s.deciding {
		return 0
	}
	ev, ok := s.node.find(s.scratch[:0])
	s.scratch = ev
	if !ok {
		return 0
	}
	s.total++
	size := 0
	for _, f := range s.query.facets {
		size += f.count(d)
	}
	h := &hit{id: doc.Lookup("_id").Clone(), ordinal: ordinal, found: slices.Clone(ev)}
	size += hitBytes + len(h.id.Data) + evidenceBytes*len(ev)
	for i := range s.sorters {
		v := s.sorters[i].value(d)
		h.keys = append(h.keys, v)
		size += hitBytes/4 + len(v.Data)
	}
	s.hits = append(s.hits, h)
	return size
}

// Again says that all documents have to be shown once more: what is found depends on what all of them hold. It is called when all have been shown.
func (s *Search) Again() bool {
	if s.deciding {
		return false
	}
	s.counting, s.deciding = false, true
	return true
}

// Finish is called when all documents have been shown.
func (s *Search) Finish() error {
	if s.err != nil {
		return s.err
	}
	for _, h := range s.hits {
		score, _, _ := s.node.score(&cursor{rest: h.found})
		h.score = float32(score)
	}
	slices.SortStableFunc(s.hits, s.compare)
	s.results = s.page(s.hits)
	return nil
}

// compare orders results: by what the query says, or by their scores.
func (s *Search) compare(a, b *hit) int {
	for i := range s.sorters {
		if c := s.sorters[i].compare(a, b, i); c != 0 {
			return c
		}
	}
	if len(s.sorters) > 0 {
		return 0
	}
	return cmp.Compare(b.score, a.score)
}

// page are the results behind a token, or before it.
func (s *Search) page(all []*hit) []*hit {
	t, backwards := s.query.after, false
	if t == nil {
		t, backwards = s.query.before, true
	}
	if t == nil {
		return all
	}
	at := slices.IndexFunc(all, func(h *hit) bool { return bson.Equal(h.id, t.id) })
	here := at >= 0
	if !here { // it is gone: where it would be
		gone := &hit{keys: t.keys, score: float32(t.score)}
		if at = slices.IndexFunc(all, func(h *hit) bool { return s.compare(gone, h) < 0 }); at < 0 {
			at = len(all)
		}
	}
	if backwards {
		out := slices.Clone(all[:at])
		slices.Reverse(out)
		return out
	}
	if here {
		at++
	}
	return all[at:]
}

// Meta is what $searchMeta gives, and $$SEARCH_META is: the count, and the facets.
func (s *Search) Meta() bson.Doc {
	kind := "lowerBound"
	if s.query.total {
		kind = "total"
	}
	b := bson.Build().Object("count").Int64(kind, s.total).End()
	if s.query.facets == nil {
		return b.Doc()
	}
	b.Object("facet")
	for _, f := range s.query.facets {
		f.write(b)
	}
	return b.End().Doc()
}

// EmptyMeta is what $searchMeta gives where no index has the name that is asked for.
func EmptyMeta() bson.Doc { return bson.Build().Object("count").Int64("total", 0).End().Doc() }

// Next is the _id of the document of the next result, in the order of results; ok is false when there is no more.
func (s *Search) Next() (id bson.Value, ok bool) {
	if s.next == len(s.results) {
		return id, false
	}
	s.next++
	return s.results[s.next-1].id, true
}

// Metadata is what is known of a result. What was not asked for is missing.
type Metadata struct {
	Score         float64
	Highlights    bson.Value // {$meta: "searchHighlights"}
	Details       bson.Value // {$meta: "searchScoreDetails"}, and "scoreDetails"
	SequenceToken bson.Value // {$meta: "searchSequenceToken"}
	Root          bson.Value // {$meta: "searchRootDocumentId"}: the _id of the document that a part that is given belongs to
}

// Result is the result that Next has just told the document of, and its metadata: what the stage gives for it. There is none where the document
// no longer has what was found.
func (s *Search) Result(doc bson.Doc) (bson.Doc, Metadata) {
	h := s.results[s.next-1]
	m := Metadata{Score: float64(h.score), SequenceToken: bson.String((&token{h.id, float64(h.score), h.keys}).String())}
	out := doc
	if s.scope != s.root {
		if out = s.part(doc, h.ordinal); out == nil {
			return nil, m
		}
		m.Root = h.id
	}
	if s.query.Details {
		_, d, _ := s.node.score(&cursor{rest: h.found, explain: true})
		m.Details = d.doc().Value()
	}
	if s.query.highlight != nil {
		m.Highlights = s.query.highlight.of(s, out)
	}
	if s.query.source {
		out = s.stored.Project(out)
	}
	return out, m
}

// part is the document of an array that was found.
func (s *Search) part(doc bson.Doc, ordinal int) (part bson.Doc) {
	s.scope.each(doc, func(d bson.Doc) {
		if ordinal == 0 {
			part = d
		}
		ordinal--
	})
	return part
}
