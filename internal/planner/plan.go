package planner

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// Plan is how a query's documents are found: a tree of nodes, whose root gives them.
type Plan struct {
	Root Node
	// Filter is the whole of what a document must match; nil when any does. The nodes see to it: each holds the part of it
	// that its children have not seen to.
	Filter *match.Filter
	// Ordered says that the documents come in the query's order, so that nothing need be sorted.
	Ordered bool
	// Counted says that the plan sees to the skip and limit.
	Counted bool
	// Express is how the plan is shown, instead of Root, when it is an express one; nil for others.
	Express *Express
	// Reached are the limits that left out some candidates.
	Reached Limits

	scores bool
	sorts  bool // the order is not that of an index
	score  int  // how well it looks before it is tried
}

// Limits says which bounds a query has met while its plans were enumerated.
type Limits struct {
	// Or: of ways to find the branches of an $or; And: of plans; Explode: of scans made of one.
	Or, And, Explode bool
}

// Node is one node of a plan. Its type is a struct of this package, of which there is a file each.
type Node interface {
	// Stage is what MongoDB calls the node.
	Stage() string
	// Children are the nodes that it reads from, none for a leaf.
	Children() []Node
	// Describe appends what explain says of the node besides its name, its filter and its children.
	Describe(b *bson.Builder)
}

// Nothing is the plan of a query that no document can match.
func Nothing() *Plan { return &Plan{Root: &EOF{}, Ordered: true, Counted: true} }

// Summary is what the plan is called: its leaves, as MongoDB's planSummary.
func (p *Plan) Summary() string {
	if p.Express != nil {
		return p.Express.Summary()
	}
	var names []string
	for n := range Leaves(p.Root) {
		names = append(names, summary(n))
	}
	return strings.Join(names, ", ")
}

func summary(n Node) string {
	if x := IndexOf(n); x != nil {
		return n.Stage() + " " + x.KeyText()
	}
	return n.Stage()
}

// Leaves are the nodes without children, from the left.
func Leaves(n Node) func(yield func(Node) bool) {
	return func(yield func(Node) bool) { eachLeaf(n, yield) }
}

func eachLeaf(n Node, yield func(Node) bool) bool {
	children := n.Children()
	if len(children) == 0 {
		return yield(n)
	}
	for _, c := range children {
		if !eachLeaf(c, yield) {
			return false
		}
	}
	return true
}

// IndexOf is the index that a leaf walks, nil when it walks none.
func IndexOf(n Node) *Index {
	switch n := n.(type) {
	case *IndexScan:
		return &n.Index
	case *CountScan:
		return &n.Index
	case *DistinctScan:
		return &n.Index
	case *GeoNear:
		return &n.Index
	}
	return nil
}

// FilterOf is what a node holds its documents, or keys, against; nil when it takes what it gets.
func FilterOf(n Node) *match.Filter {
	switch n := n.(type) {
	case *CollScan:
		return n.Filter
	case *IndexScan:
		return n.Filter
	case *Fetch:
		return n.Filter
	case *GeoNear:
		return n.besideNear()
	case *Or:
		return n.Filter
	case *TextOr:
		return n.Filter
	}
	return nil
}

// find is the first leaf of a type, the zero value when there is none.
func find[T Node](root Node) (found T) {
	for n := range Leaves(root) {
		if t, ok := n.(T); ok {
			return t
		}
	}
	return found
}

// Near is the search by distance that the plan makes, nil when it makes none.
func (p *Plan) Near() *GeoNear { return find[*GeoNear](p.Root) }

// Sorts says whether a node of the plan sorts.
func (p *Plan) Sorts() bool { return sortsIn(p.Root) }

func sortsIn(n Node) bool {
	if _, sort := n.(*Sort); sort {
		return true
	}
	return slices.ContainsFunc(n.Children(), sortsIn)
}

// Scan is the first walk of an index, nil when there is none.
func (p *Plan) Scan() *IndexScan { return find[*IndexScan](p.Root) }

func direction(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}
