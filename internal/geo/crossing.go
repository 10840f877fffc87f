package geo

import (
	"errors"
	"fmt"

	"github.com/golang/geo/s2"
)

// checkCrossings refuses loops whose edges cross or touch, of one loop or of two, but for edges of a loop that follow one another,
// and corners that two loops share. s2 does not look for that itself.
func checkCrossings(loops []*s2.Loop, r Reader) error {
	for _, loop := range loops {
		if err := checkVertices(loop); err != nil {
			return err
		}
	}
	if len(loops) > 1 && shareEdge(loops) {
		return errCross
	}
	return newSweep(loops, r).cross()
}

// shareEdge says whether an edge is in two of the loops, whatever its direction.
func shareEdge(loops []*s2.Loop) bool {
	seen := map[s2.Edge]bool{}
	for _, loop := range loops {
		for i := range loop.NumEdges() {
			e := loop.Edge(i)
			if seen[e] || seen[e.Reversed()] {
				return true
			}
			seen[e] = true
		}
	}
	return false
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

// checkSharedVertices refuses a hole that has more than one corner in common with the outer loop: between two of them the polygon falls apart.
func checkSharedVertices(p *s2.Polygon) error {
	outer := map[s2.Point]bool{}
	for _, v := range p.Loop(0).Vertices() {
		outer[v] = true
	}
	for i := 1; i < p.NumLoops(); i++ {
		shared := 0
		for _, v := range p.Loop(i).Vertices() {
			if outer[v] {
				shared++
			}
		}
		if shared > 1 {
			return fmt.Errorf("Loop %d shares more than one vertex with its parent loop 0", i)
		}
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
