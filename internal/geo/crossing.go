package geo

import (
	"errors"

	"github.com/golang/geo/s2"
)

// checkCrossings refuses loops whose edges cross or touch, of one loop or of two, but for edges of a loop that follow one
// another. s2 does not look for that itself.
func checkCrossings(loops []*s2.Loop, r Reader) error {
	index := s2.NewShapeIndex()
	for _, loop := range loops {
		index.Add(loop)
	}
	query := s2.NewCrossingEdgeQuery(index)
	for i, loop := range loops {
		if err := checkVertices(loop); err != nil {
			return err
		}
		for e := range loop.NumEdges() {
			if r.over(e) {
				return errors.New("nobody wants to know any more")
			}
			edge := loop.Edge(e)
			for shape, found := range query.CrossingsEdgeMap(edge.V0, edge.V1, s2.CrossingTypeAll) {
				for _, other := range found {
					if shape != s2.Shape(loop) || !follow(e, other, loop.NumEdges()) {
						if shape != s2.Shape(loop) && !shareEdge(loops[i], shape, e, other) {
							continue // loops may touch in a vertex
						}
						return errors.New("edges cross")
					}
				}
			}
		}
	}
	return nil
}

// shareEdge says whether edges of two loops cross or are the same, and not only touch in a vertex.
func shareEdge(a *s2.Loop, b s2.Shape, e, f int) bool {
	x, y := a.Edge(e), b.Edge(f)
	if s2.CrossingSign(x.V0, x.V1, y.V0, y.V1) == s2.Cross {
		return true
	}
	return x.V0 == y.V0 && x.V1 == y.V1 || x.V0 == y.V1 && x.V1 == y.V0
}

// follow says whether edges e and f of a loop of n are the same or share a vertex in the loop's order.
func follow(e, f, n int) bool {
	return e == f || (e+1)%n == f || (f+1)%n == e
}

func checkVertices(loop *s2.Loop) error {
	seen := make(map[s2.Point]bool, loop.NumVertices())
	for i := range loop.NumVertices() {
		if seen[loop.Vertex(i)] {
			return errors.New("duplicate vertices")
		}
		seen[loop.Vertex(i)] = true
	}
	return nil
}

// lineCrosses says whether an edge of the line crosses or touches one of the polygon.
func lineCrosses(line *s2.Polyline, polygon *s2.Polygon, r Reader) bool {
	index := s2.NewShapeIndex()
	index.Add(polygon)
	query := s2.NewCrossingEdgeQuery(index)
	for i := range line.NumEdges() {
		if r.over(i) {
			return false
		}
		e := line.Edge(i)
		if len(query.Crossings(e.V0, e.V1, polygon, s2.CrossingTypeAll)) > 0 {
			return true
		}
	}
	return false
}
