package fulltext

import (
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/fieldpath"
	"github.com/ebbdb/ebb/internal/fulltext/spec"
)

// embeddedOperator looks at the documents of an array, each for itself.
type embeddedOperator struct {
	path      string
	inner     operator
	aggregate string
}

func parseEmbedded(p *parser, a *spec.Reader) operator {
	e := &embeddedOperator{path: a.Word("path"), aggregate: "sum"}
	if !a.Has("path") {
		a.RefuseField("path", "is required")
	}
	e.inner = p.join(a, scopeName{e.path, "embeddedDocument.path"}, a.RequiredInner("operator"))
	return e
}

// nested is the scope of an array in a scope's documents.
func (r *resolver) nested(path string) (*scope, error) {
	e := r.definition.Embedded(path)
	below, ok := r.scope.below(path)
	if e == nil || !ok {
		return nil, spec.Wrong("embeddedDocument requires path '%s' to be indexed as 'embeddedDocuments'", path)
	}
	return &scope{parent: r.scope, root: strings.Clone(path), path: fieldpath.Split(below), fields: &e.Document}, nil
}

func (o *embeddedOperator) resolve(r *resolver) (node, error) {
	if o.path == r.scope.root && r.scope.root != "" {
		return o.inner.resolve(r)
	}
	s, err := r.nested(o.path)
	if err != nil {
		return nil, err
	}
	outer := r.scope
	n := &embedded{slot: r.slot(), outer: outer, inner: s, aggregate: o.aggregate, search: r.search}
	r.scope = s
	defer func() { r.scope = outer }()
	n.node, err = o.inner.resolve(r)
	return n, err
}

// embedded finds documents with one of an array that another operator finds.
type embedded struct {
	slot         int32
	outer, inner *scope
	node         node
	aggregate    string
	search       *Search
	found        []evidence // in the view of the outer scope
}

func (n *embedded) observe(counting bool) {
	n.found = n.found[:0]
	n.inner.each(n.outer.view.doc, func(d bson.Doc) {
		n.search.look(n.inner, d, counting)
		n.node.observe(counting)
		if !n.search.deciding {
			return
		}
		mark := len(n.found)
		ev, ok := n.node.find(append(n.found, evidence{slot: n.slot}))
		if !ok {
			ev = ev[:mark]
		}
		n.found = ev
	})
}

func (n *embedded) find(ev []evidence) ([]evidence, bool) {
	return append(ev, n.found...), len(n.found) > 0
}

func (n *embedded) score(c *cursor) (float64, *detail, bool) {
	sum, low, high, count, parts := 0.0, math.Inf(1), 0.0, 0.0, []*detail(nil)
	for _, ok := c.next(n.slot); ok; _, ok = c.next(n.slot) {
		score, d, _ := n.node.score(c)
		sum, low, high, count, parts = sum+score, min(low, score), max(high, score), count+1, append(parts, d)
	}
	if count == 0 {
		return 0, nil, false
	}
	score := sum
	switch n.aggregate {
	case "maximum":
		score = high
	case "minimum":
		score = low
	case "mean":
		score = sum / count
	}
	return score, c.detail(score, parts, "Score based on %g child docs, %s of:", count, n.aggregate), true
}

func (n *embedded) mark(*textField, func(int)) {}

// upward is hasAncestor and hasRoot: what is around the documents of an array is looked at.
type upward struct {
	path  string // of the ancestor, "" of the root
	inner operator
}

func parseHasAncestor(p *parser, a *spec.Reader) operator {
	u := &upward{path: a.RequiredStr("ancestorPath")}
	sub := a.RequiredInner("operator")
	p.needsRoot(a, "hasAncestor")
	if from := p.scope; from.path != "" && !strings.HasPrefix(from.path, u.path+".") {
		a.Refuse("hasAncestor.ancestorPath '%s' must be a parent of %s '%s'", u.path, from.source, from.path)
	}
	u.inner = p.join(a, scopeName{u.path, "hasAncestor.ancestorPath"}, sub)
	return u
}

func parseHasRoot(p *parser, a *spec.Reader) operator {
	sub := a.RequiredInner("operator")
	p.needsRoot(a, "hasRoot")
	return &upward{inner: p.join(a, scopeName{}, sub)}
}

func (u *upward) resolve(r *resolver) (node, error) {
	inner := r.scope
	s := inner
	for s != nil && s.root != u.path {
		s = s.parent
	}
	if s == nil {
		return nil, spec.Wrong("hasAncestor requires path '%s' to be indexed as 'embeddedDocuments'", u.path)
	}
	r.scope = s
	defer func() { r.scope = inner }()
	// what the ancestor is searched for is the same for all that it holds: it has been looked at when they are
	return u.inner.resolve(r)
}
