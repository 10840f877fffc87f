package fulltext

import (
	"strings"

	"github.com/ebbdb/ebb/internal/fulltext/analysis"
)

// node is an operator of a query that has found its fields in an index.
type node interface {
	// observe looks at the view of its scope, whether that will be found or not, for what scores are computed of.
	observe(counting bool)
	// find says whether the view is found, and appends evidence of it.
	find(ev []evidence) ([]evidence, bool)
	// score is computed of the evidence; ok is false where the operator did not find the document.
	score(c *cursor) (score float64, d *detail, ok bool)
	// mark marks the tokens of a field that the operator looks for, where the view that is loaded has them.
	mark(f *textField, mark func(i int))
}

// leaf is what nodes have that have nothing to observe, and nothing to mark.
type leaf struct{}

func (leaf) observe(bool)               {}
func (leaf) mark(*textField, func(int)) {}

// nothing finds nothing.
type nothing struct{ leaf }

func (nothing) find(ev []evidence) ([]evidence, bool)  { return ev, false }
func (nothing) score(*cursor) (float64, *detail, bool) { return 0, nil, false }

// either finds what any of several nodes finds, and adds their scores.
type either struct {
	slot  int32
	nodes []node
}

// either is a node of several, the one where that is all.
func (r *resolver) either(nodes []node) node {
	switch len(nodes) {
	case 0:
		return nothing{}
	case 1:
		return nodes[0]
	}
	return &either{r.slot(), nodes}
}

func (n *either) observe(counting bool) {
	for _, each := range n.nodes {
		each.observe(counting)
	}
}

func (n *either) find(ev []evidence) ([]evidence, bool) {
	start, found := len(ev), false
	ev = append(ev, evidence{slot: n.slot})
	for _, each := range n.nodes {
		var ok bool
		ev, ok = each.find(ev)
		found = found || ok
	}
	if !found {
		ev = ev[:start]
	}
	return ev, found
}

func (n *either) score(c *cursor) (float64, *detail, bool) {
	if _, ok := c.next(n.slot); !ok {
		return 0, nil, false
	}
	total, parts := 0.0, []*detail(nil)
	for _, each := range n.nodes {
		if score, d, ok := each.score(c); ok {
			total, parts = total+score, append(parts, d)
		}
	}
	score, d := c.sum(total, parts)
	return score, d, true
}

func (n *either) mark(f *textField, mark func(int)) {
	for _, each := range n.nodes {
		each.mark(f, mark)
	}
}

// words finds documents with one of several terms in a field, or with all of them.
type words struct {
	leaf
	slot  int32
	field *textField
	terms []*term
	all   bool
}

// words is the node of the tokens that a query has in a field.
func (r *resolver) words(f *textField, tokens []analysis.Token, all bool) (node, error) {
	if len(tokens) == 0 {
		return nothing{}, nil
	}
	n := &words{slot: r.slot(), field: f, all: all}
	for _, t := range tokens {
		if err := r.clause(); err != nil {
			return nil, err
		}
		n.terms = append(n.terms, f.term(strings.Clone(t.Term)))
	}
	return n, nil
}

func (n *words) find(ev []evidence) ([]evidence, bool) {
	start, found := len(ev), false
	for i, t := range n.terms {
		switch {
		case t.in():
			ev = append(ev, evidence{n.slot, int32(i), float32(t.freq), float32(n.field.length)})
			found = true
		case n.all:
			return ev[:start], false
		}
	}
	return ev, found
}

func (n *words) score(c *cursor) (float64, *detail, bool) {
	return c.all(n.slot, func(e evidence) (float64, *detail) { return c.ofTerm(n.terms[e.item], e, 1) })
}

func (n *words) mark(f *textField, mark func(int)) {
	if f != n.field {
		return
	}
	for i := range f.tokens {
		for _, t := range n.terms {
			if f.tokens[i].Term == t.text {
				mark(i)
				break
			}
		}
	}
}

// constant finds what holds, and gives each the same score.
type constant struct {
	leaf
	slot  int32
	name  string
	holds func() bool
}

func (n *constant) find(ev []evidence) ([]evidence, bool) {
	if !n.holds() {
		return ev, false
	}
	return append(ev, evidence{slot: n.slot}), true
}

func (n *constant) score(c *cursor) (float64, *detail, bool) {
	_, ok := c.next(n.slot)
	return 1, c.detail(1, nil, "ConstantScore(%s)", n.name), ok
}

// measured finds what has a score of its own, whatever other documents hold.
type measured struct {
	leaf
	slot    int32
	name    string
	measure func() (float64, bool)
}

func (n *measured) find(ev []evidence) ([]evidence, bool) {
	score, ok := n.measure()
	if !ok {
		return ev, false
	}
	return append(ev, evidence{slot: n.slot, freq: float32(score)}), true
}

func (n *measured) score(c *cursor) (float64, *detail, bool) {
	e, ok := c.next(n.slot)
	return float64(e.freq), c.detail(float64(e.freq), nil, "%s", n.name), ok
}
