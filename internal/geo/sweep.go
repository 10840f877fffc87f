package geo

import (
	"errors"
	"math/rand/v2"

	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/ordering"
)

// sweep looks for edges that cross, in n log n. A meridian goes around an axis; the edges that it meets at the moment are kept in
// their order from one pole to the other. Edges that cross are beside one another before the meridian comes to where they do, so
// that only neighbours are compared, as they become that.
//
// All is decided by on which side of two points a third lies, which s2 does exactly and, where three lie on one great circle, by
// moving them as little as makes a difference, always in the same way. So no edge lies along a meridian, none goes through a pole,
// and no corner lies on an edge. The axis and the meridian where it begins may be any; they are no corners.
//
// There is no first meridian on a sphere: which edges meet it, and in which order, is not known at the start. So it goes around
// twice, and begins with none: an edge is met from its western end on, and in the second round none is missing.
type sweep struct {
	axis, begin s2.Point
	edges       []sweepEdge
	events      []sweepEvent
	status      status
	reader      Reader
}

// sweepEdge is an edge from its western to its eastern end.
type sweepEdge struct{ west, east s2.Point }

// sweepEvent is an end of an edge.
type sweepEvent struct {
	at   s2.Point
	edge int
	east bool
}

func newSweep(loops []*s2.Loop, r Reader) *sweep {
	corners := map[s2.Point]bool{}
	for _, loop := range loops {
		for _, p := range loop.Vertices() {
			corners[p] = true
		}
	}
	s := &sweep{reader: r}
	s.axis = besides(corners, 0.4619, -0.3127, 0.8300)
	s.begin = besides(corners, -0.7071, 0.2213, 0.6716)
	for _, loop := range loops {
		for i := range loop.NumEdges() {
			e := loop.Edge(i)
			if s2.RobustSign(e.V0, e.V1, s.axis) != s2.CounterClockwise {
				e.V0, e.V1 = e.V1, e.V0
			}
			n := len(s.edges)
			s.edges = append(s.edges, sweepEdge{e.V0, e.V1})
			s.events = append(s.events, sweepEvent{e.V0, n, false}, sweepEvent{e.V1, n, true})
		}
	}
	return s
}

// besides is a point near that direction which is none of the corners.
func besides(corners map[s2.Point]bool, x, y, z float64) s2.Point {
	for ; ; x += 1.0 / 1024 {
		if p := s2.PointFromCoords(x, y, z); !corners[p] {
			return p
		}
	}
}

// isFirstHalf says whether the meridian comes by the point in the first half of a round.
func (s *sweep) isFirstHalf(p s2.Point) bool {
	return s2.RobustSign(s.begin, p, s.axis) == s2.CounterClockwise
}

// compare is the order in which the meridian comes to ends of edges; at one point edges end before others begin.
func (s *sweep) compare(a, b sweepEvent) int {
	if first := s.isFirstHalf(a.at); first != s.isFirstHalf(b.at) {
		if first {
			return -1
		}
		return 1
	}
	if side := s2.RobustSign(a.at, b.at, s.axis); side != s2.Indeterminate {
		return -int(side)
	}
	switch {
	case a.east == b.east:
		return 0
	case a.east:
		return -1
	}
	return 1
}

var (
	errCross = errors.New("edges cross")
	errOver  = errors.New("nobody wants to know any more")
)

// cross says whether any edges do, by an error.
func (s *sweep) cross() error {
	if err := ordering.Any(s.events, s.compare, s.reader.Ask); err != nil {
		return errOver
	}
	s.status = status{edges: s.edges, nodes: make([]*statusNode, len(s.edges)), random: rand.New(rand.NewPCG(1, 2))}
	for range 2 {
		for i, e := range s.events {
			if s.reader.over(i) {
				return errOver
			}
			if e.east && s.status.nodes[e.edge] == nil { // it was begun before the first round
				continue
			}
			if e.east {
				before, after := s.status.remove(e.edge)
				if s.crosses(before, after) {
					return errCross
				}
				continue
			}
			before, after := s.status.insert(e.edge)
			if s.crosses(before, e.edge) || s.crosses(e.edge, after) {
				return errCross
			}
		}
	}
	return nil
}

// crosses says whether two edges cross; none crosses noEdge.
func (s *sweep) crosses(a, b int) bool {
	if a == noEdge || b == noEdge {
		return false
	}
	e, f := s.edges[a], s.edges[b]
	return s2.CrossingSign(e.west, e.east, f.west, f.east) == s2.Cross
}

const noEdge = -1

// status are the edges that the meridian meets, in their order from pole to pole: a treap that is also a list.
type status struct {
	edges  []sweepEdge
	nodes  []*statusNode // by edge; nil when it is not met
	root   *statusNode
	random *rand.Rand
}

type statusNode struct {
	edge                int
	weight              uint64 // no child has a greater one
	parent, left, right *statusNode
	before, after       *statusNode
}

func (n *statusNode) number() int {
	if n == nil {
		return noEdge
	}
	return n.edge
}

// isBeyond says whether an edge that begins lies on the axis's side of one that is met.
func (s *status) isBeyond(begins, met int) bool {
	e, f := s.edges[begins], s.edges[met]
	p := e.west
	if p == f.west {
		p = e.east
	}
	return s2.RobustSign(f.west, f.east, p) == s2.CounterClockwise
}

// insert adds an edge that begins, and gives its neighbours.
func (s *status) insert(edge int) (before, after int) {
	n := &statusNode{edge: edge, weight: s.random.Uint64()}
	s.nodes[edge] = n
	place := &s.root
	for *place != nil {
		n.parent = *place
		if s.isBeyond(edge, n.parent.edge) {
			n.before, place = n.parent, &n.parent.right
		} else {
			n.after, place = n.parent, &n.parent.left
		}
	}
	*place = n
	if n.before != nil {
		n.before.after = n
	}
	if n.after != nil {
		n.after.before = n
	}
	for n.parent != nil && n.parent.weight < n.weight {
		s.lift(n)
	}
	return n.before.number(), n.after.number()
}

// remove removes an edge, and gives those that were its neighbours.
func (s *status) remove(edge int) (before, after int) {
	n := s.nodes[edge]
	s.nodes[edge] = nil
	for n.left != nil || n.right != nil {
		child := n.left
		if child == nil || n.right != nil && n.right.weight > child.weight {
			child = n.right
		}
		s.lift(child)
	}
	*s.placeOf(n) = nil
	if n.before != nil {
		n.before.after = n.after
	}
	if n.after != nil {
		n.after.before = n.before
	}
	return n.before.number(), n.after.number()
}

// placeOf is where n hangs.
func (s *status) placeOf(n *statusNode) **statusNode {
	switch {
	case n.parent == nil:
		return &s.root
	case n.parent.left == n:
		return &n.parent.left
	}
	return &n.parent.right
}

// lift has a node and its parent change places.
func (s *status) lift(n *statusNode) {
	p := n.parent
	*s.placeOf(p) = n
	n.parent, p.parent = p.parent, n
	var moved *statusNode
	if p.left == n {
		moved, p.left, n.right = n.right, n.right, p
	} else {
		moved, p.right, n.left = n.left, n.left, p
	}
	if moved != nil {
		moved.parent = p
	}
}
