package geo

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"
)

// crossEach is checkCrossings by looking at each pair of edges.
func crossEach(loops []*s2.Loop) error {
	type numbered struct {
		s2.Edge
		loop int
	}
	var edges []numbered
	for i, loop := range loops {
		if err := checkVertices(loop); err != nil {
			return err
		}
		for k := range loop.NumEdges() {
			edges = append(edges, numbered{loop.Edge(k), i})
		}
	}
	for i, e := range edges {
		for _, f := range edges[:i] {
			if e.loop != f.loop && (e.Edge == f.Edge || e.Edge == f.Reversed()) || s2.CrossingSign(e.V0, e.V1, f.V0, f.V1) == s2.Cross {
				return errCross
			}
		}
	}
	return nil
}

// TestSweep compares the sweep with a look at each pair: of loops in all places of the sphere, around its poles, large and small,
// with corners in rows, corners on edges, corners and edges of others.
func TestSweep(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 26))
	crossed, clean := 0, 0
	for range 30_000 {
		var loops []*s2.Loop
		lat, lng, step := r.Float64()*170-85, r.Float64()*360-180, []float64{1e-6, 0.01, 1, 25}[r.IntN(4)]
		if r.IntN(2) == 0 {
			lat, lng = float64(r.IntN(7)-3)*30, float64(r.IntN(8)-4)*45
		}
		for range 1 + r.IntN(3) {
			points, side, last := []s2.Point{}, 2+r.IntN(5), s2.Point{}
			for range 3 + r.IntN(6) {
				y, x := lat+step*float64(r.IntN(side)), lng+step*float64(r.IntN(side))
				p := s2.PointFromLatLng(s2.LatLngFromDegrees(min(max(y, -90), 90), x))
				if p != last && p.Vector != last.Mul(-1) && (len(points) == 0 || p != points[0] && p.Vector != points[0].Mul(-1)) {
					points, last = append(points, p), p
				}
			}
			if len(points) >= 3 {
				loops = append(loops, s2.LoopFromPoints(points))
			}
		}
		want, got := crossEach(loops), checkCrossings(loops, Reader{})
		if (got == nil) != (want == nil) {
			for _, l := range loops {
				t.Log(l.Vertices())
			}
			t.Fatalf("%v, should be %v", got, want)
		}
		if errors.Is(got, errCross) {
			crossed++
		} else if got == nil && len(loops) > 0 {
			clean++
		}
	}
	t.Log(crossed, "cross,", clean, "do not")
	if crossed < 3000 || clean < 3000 {
		t.Error("the generator is of no use")
	}
}

// TestManyCorners: the checks of a shape of 50 000 corners end, whoever wants to know. The test's time limit fails otherwise.
func TestManyCorners(t *testing.T) {
	big := star(50_000, 20)
	if _, err := ParseStored(big); err != nil {
		t.Errorf("%.200v", err)
	}
}
