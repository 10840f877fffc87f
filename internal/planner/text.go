package planner

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/textsearch"
)

// TextMatch holds the documents of its child, a TextOr or a Fetch, against a search: its phrases and negated words.
type TextMatch struct {
	Child Node
	Index Index
	Query *textsearch.Query
	// Prefix are the values of the fields in front of the index's text.
	Prefix bson.Doc
}

// Stage implements Node.
func (*TextMatch) Stage() string { return "TEXT_MATCH" }

// Children implements Node.
func (n *TextMatch) Children() []Node { return []Node{n.Child} }

// Describe implements Node.
func (n *TextMatch) Describe(b *bson.Builder) {
	b.Document("indexPrefix", n.Prefix).String("indexName", n.Index.Name).Document("parsedTextQuery", n.Query.Doc())
	b.Number("textIndexVersion", n.Index.Spec.Lookup("textIndexVersion").TruncInt64())
}

// TextOr gives each record that any of its inputs, a scan a word, gives, once, with the sum of its scores, if it matches.
type TextOr struct {
	Inputs []Node
	Filter *match.Filter
}

// Stage implements Node.
func (*TextOr) Stage() string { return "TEXT_OR" }

// Children implements Node.
func (n *TextOr) Children() []Node { return n.Inputs }

// Describe implements Node.
func (*TextOr) Describe(*bson.Builder) {}

// Scores says whether the plan finds documents with a score as metadata.
func (p *Plan) Scores() bool { return p.scores }

// text plans a query with a $text, which its text index alone can answer: every way to a document of it goes through there.
func (p *Plan) text(c Collection, q Query, t *match.Text) error {
	switch {
	case q.Hint.Type == bson.TypeObject && q.Hint.Doc().FirstKey() == "$natural":
		return mongoerr.New(mongoerr.BadValue, "text expression not allowed with $natural sort order")
	case !q.Hint.IsNullish() || q.Min != nil || q.Max != nil:
		return mongoerr.New(mongoerr.BadValue, "text and hint not allowed in same query")
	}
	i := slices.IndexFunc(c.Indexes, func(x Index) bool { return x.Kind == index.Text })
	switch {
	case i < 0:
		return mongoerr.New(mongoerr.IndexNotFound, "text index required for $text query")
	case c.Indexes[i].Hidden || !c.Indexes[i].Built():
		return noTextIndex(q)
	}
	s := textPlanner{collection: c, query: q, index: c.Indexes[i]}
	var err error
	if s.text, err = t.Bind(s.index.Text()); err != nil {
		return err
	}
	if p.Root, err = s.search(q.Filter.Root); err != nil {
		return err
	}
	p.Filter = FilterOf(p.Root)
	if m, ok := p.Root.(*TextMatch); ok {
		p.Filter = FilterOf(m.Child)
	}
	p.Ordered, p.scores = len(q.Order) == 0, q.TextScore
	return nil
}

// textPlanner makes the tree of a query with a $text.
type textPlanner struct {
	collection Collection
	query      Query
	index      Index
	text       *textsearch.Query
}

// search finds what matches n, which has the $text somewhere below conjunctions and alternatives.
func (s *textPlanner) search(n match.Node) (Node, error) {
	switch n := n.(type) {
	case *match.And:
		return s.conjunction(n)
	case *match.Or:
		return s.alternatives(n)
	}
	return s.match(nil)
}

func (s *textPlanner) conjunction(n *match.And) (Node, error) {
	i := slices.IndexFunc(n.Children, func(c match.Node) bool { return match.TextIn(c) != nil })
	rest := slices.Delete(slices.Clone(n.Children), i, i+1)
	if _, ok := n.Children[i].(*match.Text); ok {
		return s.match(rest)
	}
	below, err := s.search(n.Children[i])
	if err != nil {
		return nil, err
	}
	return &Fetch{Child: below, Filter: s.filter(rest)}, nil
}

// alternatives finds what any of several filters matches. Those beside the one with the $text need an index each: to look
// at all documents for one of them would make the search worthless.
func (s *textPlanner) alternatives(n *match.Or) (Node, error) {
	or := &Or{}
	for _, c := range n.Children {
		in, err := s.alternative(c)
		if err != nil {
			return nil, err
		}
		or.Inputs = append(or.Inputs, in)
	}
	return &Fetch{Child: or}, nil
}

func (s *textPlanner) alternative(n match.Node) (Node, error) {
	if match.TextIn(n) != nil {
		return s.search(n)
	}
	q := s.query
	q.Filter, q.Order, q.Sort, q.Counts, q.Fields = s.filter([]match.Node{n}), nil, nil, false, nil
	alone := &planning{c: s.collection, q: q, root: n, filter: q.Filter}
	if plans := alone.indexed(alone.usable(), true); len(plans) > 0 {
		return plans[0].Root, nil
	}
	return nil, s.query.unplanned(mongoerr.NoQueryExecutionPlans, "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.")
}

// filter is one that all of nodes must match, nil for none.
func (s *textPlanner) filter(nodes []match.Node) *match.Filter {
	if len(nodes) == 0 {
		return nil
	}
	root := match.Node(&match.And{Children: nodes})
	if len(nodes) == 1 {
		root = nodes[0]
	}
	return &match.Filter{Root: root, Source: s.query.Filter.Source, Collation: s.query.Filter.Collation}
}

// match is the search itself, among the documents that match rest.
func (s *textPlanner) match(rest []match.Node) (Node, error) {
	prefix, rest, err := s.prefix(rest)
	if err != nil {
		return nil, err
	}
	scans := s.scans(prefix)
	filter := s.filter(rest)
	n := &TextMatch{Index: s.index, Query: s.text, Prefix: prefix}
	switch {
	case len(scans) == 0:
		n.Child = &EOF{}
	case s.query.TextScore:
		n.Child = &TextOr{Inputs: scans, Filter: filter}
	case len(scans) == 1:
		n.Child = &Fetch{Child: scans[0], Filter: filter}
	default:
		n.Child = &Fetch{Child: &Or{Inputs: scans}, Filter: filter}
	}
	return n, nil
}

// prefix takes the values of the fields in front of the text out of rest, where each must have one.
func (s *textPlanner) prefix(rest []match.Node) (bson.Doc, []match.Node, error) {
	x := s.index
	if x.Partial() != nil && !implies(predicates(&match.And{Children: rest}), x.Partial().Root, s.query.Collation) {
		return nil, nil, noTextIndex(s.query)
	}
	b := bson.Build()
	for _, f := range x.Fields[:x.WordField()] {
		i := slices.IndexFunc(rest, func(n match.Node) bool { return isValueOf(n, f.Path) })
		if i < 0 {
			return nil, nil, noTextIndex(s.query)
		}
		v := rest[i].(*match.Compare).Value
		b.Value(f.Path, v)
		if v.Type != bson.TypeNull { // which a missing value also matches
			rest = slices.Delete(slices.Clone(rest), i, i+1)
		}
	}
	return b.Doc(), rest, nil
}

// isValueOf says whether n holds path to one value, as an index without a collation has it.
func isValueOf(n match.Node, path string) bool {
	c, ok := n.(*match.Compare)
	return ok && c.Op == match.Eq && c.Path.String() == path && (c.Collation == nil || c.Value.IsNumber())
}

// scans are a walk for each word through its scores, the highest first.
func (s *textPlanner) scans(prefix bson.Doc) (scans []Node) {
	var key []byte
	i := 0
	for it := prefix.Iter(); it.Next(); i++ {
		key = s.index.AppendKey(key, i, it.Value())
	}
	for _, word := range s.text.Terms {
		low := s.index.AppendKey(clip(key), i, index.WordValue(word))
		scans = append(scans, &IndexScan{Index: s.index, Ranges: []Range{{low, successor(low)}}, Backward: true, Once: true})
	}
	return scans
}

func noTextIndex(q Query) error {
	return q.unplanned(mongoerr.NoQueryExecutionPlans, "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)")
}
