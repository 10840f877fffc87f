package anomaly

import (
	"slices"
	"strings"
)

// kind of an edge.
type kind uint8

const (
	writeWrite kind = 1 << iota // the next append to a list
	writeRead                   // a read of what was appended
	readWrite                   // the append that follows what was read
	realTime                    // a beginning after an end
	within                      // from the beginning of a transaction to its end
)

// graph has two nodes for each transaction: the moment whose state it reads, and the one at which its writes take effect. Under snapshot
// isolation an append or a read after an append begins after the other's end, and an append that a read has not seen ends after the
// read began. These moments can be put into an order if and only if no circle of dependencies is without two
// read-write edges side by side, which is what snapshot isolation forbids (Fekete et al., 2005; Cerone and Gotsman, 2018).
type graph struct {
	edges [][]edge // by node
}

type edge struct {
	to   int // a node
	kind kind
	key  string
}

func newGraph(txns int) graph {
	g := graph{make([][]edge, 2*txns)}
	for i := range txns {
		g.edges[begins(i)] = append(g.edges[begins(i)], edge{ends(i), within, ""})
	}
	return g
}

func begins(txn int) int { return 2 * txn }
func ends(txn int) int   { return 2*txn + 1 }

// depend draws edges between transactions. None depends on itself.
func (g *graph) depend(from int, to []int, k kind, key string) {
	for _, t := range to {
		if t == from {
			continue
		}
		if k == readWrite {
			g.edges[begins(from)] = append(g.edges[begins(from)], edge{ends(t), k, key})
		} else {
			g.edges[ends(from)] = append(g.edges[ends(from)], edge{begins(t), k, key})
		}
	}
}

// knots are the groups of nodes of which each can be reached from each other.
func (g *graph) knots() [][]int { return components(len(g.edges), g.next) }

func (g *graph) next(node, i int) (to int, ok bool) {
	if i >= len(g.edges[node]) {
		return 0, false
	}
	return g.edges[node][i].to, true
}

// skews counts the knots of transactions taken whole, less those that are forbidden as well.
func (g *graph) skews() int {
	whole := components(len(g.edges)/2, func(txn, i int) (int, bool) {
		from := g.edges[begins(txn)]
		if i >= len(from) {
			i -= len(from)
			from = g.edges[ends(txn)]
		}
		if i >= len(from) {
			return 0, false
		}
		return from[i].to / 2, true
	})
	return max(0, len(whole)-len(g.knots()))
}

// components are the strongly connected components of more than one node, by Tarjan's algorithm with a stack of its own.
func components(nodes int, next func(node, i int) (int, bool)) (out [][]int) {
	type frame struct{ node, edge int }
	index, low := make([]int, nodes), make([]int, nodes) // index counts from 1
	onStack := make([]bool, nodes)
	var stack []int
	count := 0
	for root := range nodes {
		if index[root] != 0 {
			continue
		}
		var calls []frame
		enter := func(node int) {
			count++
			index[node], low[node] = count, count
			stack = append(stack, node)
			onStack[node] = true
			calls = append(calls, frame{node, 0})
		}
		enter(root)
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if to, ok := next(f.node, f.edge); ok {
				f.edge++
				if index[to] == 0 {
					enter(to)
				} else if onStack[to] {
					low[f.node] = min(low[f.node], index[to])
				}
				continue
			}
			node := f.node
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				above := calls[len(calls)-1].node
				low[above] = min(low[above], low[node])
			}
			if low[node] != index[node] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != node {
				at--
			}
			for _, n := range stack[at:] {
				onStack[n] = false
			}
			if len(stack)-at > 1 {
				out = append(out, slices.Clone(stack[at:]))
			}
			stack = stack[:at]
		}
	}
	return out
}

// step is an edge between transactions on the way around a circle.
type step struct {
	from, to int // transactions
	kind     kind
	key      string
}

func (s step) label() string {
	name := map[kind]string{writeWrite: "ww", writeRead: "wr", readWrite: "rw", realTime: "realtime"}[s.kind]
	return strings.TrimSpace(name + " " + s.key)
}

// classes are the circles that snapshot isolation forbids, the gravest first: each has an edge of one kind, and the rest of some others.
var classes = []struct {
	name     string
	one, all kind
}{
	{"G0", writeWrite, writeWrite},
	{"G1c", writeRead, writeWrite | writeRead},
	{"G-single", readWrite, writeWrite | writeRead},
	{"G-nonadjacent", readWrite, writeWrite | writeRead | readWrite},
	{"G0-realtime", writeWrite, writeWrite | realTime},
	{"G1c-realtime", writeRead, writeWrite | writeRead | realTime},
	{"G-single-realtime", readWrite, writeWrite | writeRead | realTime},
	{"G-nonadjacent-realtime", readWrite, writeWrite | writeRead | readWrite | realTime},
}

// One fault may tie a whole history into one knot. So all its edges are tried for circles of shortWay nodes, and only maxTried for longer
// ones.
const (
	shortWay = 4
	maxTried = 50
)

// classify names the gravest circle of a knot, and returns the shortest of its kind.
func (g *graph) classify(knot []int) (string, []step) {
	inside := make(map[int]bool, len(knot))
	for _, n := range knot {
		inside[n] = true
	}
	for _, class := range classes {
		best := g.circle(knot, inside, class.one, class.all|within, len(g.edges), shortWay)
		if best == nil {
			best = g.circle(knot, inside, class.one, class.all|within, maxTried, len(knot))
		}
		if best == nil {
			continue
		}
		if class.name == "G-single" && isLostUpdate(best) {
			return "lost update", best
		}
		return class.name, best
	}
	panic("a knot without a circle")
}

// circle is the shortest circle found that has an edge of one kind and others of some kinds, of which at most so many are tried, with ways back of up to
// so many edges.
func (g *graph) circle(knot []int, inside map[int]bool, one, all kind, most, longest int) (best []step) {
	for _, n := range knot {
		for _, e := range g.edges[n] {
			if e.kind != one || !inside[e.to] {
				continue
			}
			if most--; most < 0 {
				return best
			}
			way := g.way(inside, e.to, n, all, longest)
			if way == nil {
				continue
			}
			if circle := steps(n, append([]edge{e}, way...)); best == nil || len(circle) < len(best) {
				best = circle
			}
		}
	}
	return best
}

// isLostUpdate says whether two transactions read one state of a list and both appended to it.
func isLostUpdate(circle []step) bool {
	if len(circle) != 2 || circle[0].key != circle[1].key {
		return false
	}
	return circle[0].kind|circle[1].kind == readWrite|writeWrite
}

// way is the shortest way between two nodes of a knot over edges of some kinds, and not more than so many.
func (g *graph) way(inside map[int]bool, from, to int, kinds kind, longest int) []edge {
	type arrival struct {
		node, edges int
		by          edge
	}
	came := map[int]arrival{from: {node: -1}}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if came[n].edges == longest {
			return nil
		}
		for _, e := range g.edges[n] {
			if _, known := came[e.to]; known || !inside[e.to] || e.kind&kinds == 0 {
				continue
			}
			came[e.to] = arrival{n, came[n].edges + 1, e}
			if e.to != to {
				queue = append(queue, e.to)
				continue
			}
			var way []edge
			for at := to; at != from; at = came[at].node {
				way = append(way, came[at].by)
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

// steps are the edges of a way between transactions, without those from a transaction's beginning to its end.
func steps(from int, way []edge) (out []step) {
	for _, e := range way {
		if e.kind != within {
			out = append(out, step{from / 2, e.to / 2, e.kind, e.key})
		}
		from = e.to
	}
	return out
}
