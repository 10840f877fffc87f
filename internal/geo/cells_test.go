package geo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/testseed"
)

// random makes places, most of them at a few hot spots: poles, the antimeridian, corners of cells, and repetitions.
type random struct {
	*rand.Rand
	size float64 // of shapes, in degrees
}

func newRandom(t *testing.T) *random {
	seed := testseed.Of(t)
	return &random{rand.New(rand.NewPCG(seed, 1)), 1}
}

var hotSpots = []Point{{0, 0}, {180, 0}, {-180, 10}, {0, 90}, {30, -90}, {45, 35.264}, {13.4, 52.5}, {-179.9, 89.9}}

func (r *random) near(p Point) Point {
	x := p.X + r.size*(2*r.Float64()-1)
	if x > 180 {
		x -= 360
	}
	if x < -180 {
		x += 360
	}
	return Point{x, min(max(p.Y+r.size*(2*r.Float64()-1), -90), 90)}
}

func (r *random) point() Point {
	r.size = math.Pow(10, r.Float64()*6-4)
	if r.IntN(4) == 0 {
		return Point{360*r.Float64() - 180, 180*r.Float64() - 90}
	}
	return r.near(hotSpots[r.IntN(len(hotSpots))])
}

func (p Point) text() string { return fmt.Sprintf("[%v, %v]", p.X, p.Y) }

// ring is a polygon around p that does not cross itself, but where the sphere bends too much.
func (r *random) ring(p Point) string {
	var corners []string
	n := 3 + r.IntN(5)
	for i := range n {
		a, far := 2*math.Pi*float64(i)/float64(n), r.size*(0.3+r.Float64())
		corners = append(corners, Point{p.X + far*math.Cos(a), min(max(p.Y+far*math.Sin(a), -90), 90)}.text())
	}
	return "[" + strings.Join(append(corners, corners[0]), ", ") + "]"
}

func (r *random) line(p Point) string {
	corners := []string{p.text()}
	for range 1 + r.IntN(4) {
		corners = append(corners, r.near(p).text())
	}
	return "[" + strings.Join(corners, ", ") + "]"
}

// geometry is a shape as GeoJSON or as a legacy point; nil when what was made is none.
func (r *random) geometry() *Geometry {
	p := r.point()
	var text string
	switch r.IntN(8) {
	case 0:
		text = p.text()
	case 1:
		text = fmt.Sprintf("{ type: 'LineString', coordinates: %s }", r.line(p))
	case 2, 3:
		text = fmt.Sprintf("{ type: 'Polygon', coordinates: [%s] }", r.ring(p))
	case 4:
		text = fmt.Sprintf("{ type: 'MultiPoint', coordinates: %s }", r.line(p))
	case 5:
		text = fmt.Sprintf("{ type: 'GeometryCollection', geometries: [ { type: 'Point', coordinates: %s }, { type: 'LineString', coordinates: %s } ] }", p.text(), r.line(r.near(p)))
	default:
		text = fmt.Sprintf("{ type: 'Point', coordinates: %s }", p.text())
	}
	g, err := ParseStored(bson.MustParse(text))
	if err != nil {
		return nil
	}
	return g
}

func (r *random) query() *Geometry {
	p := r.point()
	var text string
	switch r.IntN(5) {
	case 0:
		g, _ := ParseShape("$centerSphere", bson.MustParse(fmt.Sprintf("[ %s, %v ]", p.text(), r.size/50)))
		return g
	case 1:
		text = fmt.Sprintf("{ type: 'Polygon', coordinates: [%s], crs: { type: 'name', properties: { name: 'urn:x-mongodb:crs:strictwinding:EPSG:4326' } } }", r.ring(p))
	case 2:
		return r.geometry()
	default:
		text = fmt.Sprintf("{ type: 'Polygon', coordinates: [%s] }", r.ring(p))
	}
	g, err := ParseQuery(bson.MustParse(text))
	if err != nil {
		return nil
	}
	return g
}

func share(a, b []s2.CellID) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Intersects(y) {
				return true
			}
		}
	}
	return false
}

// TestCellsHoldRelations: what contains or meets shares a cell.
func TestCellsHoldRelations(t *testing.T) {
	r := newRandom(t)
	related := 0
	for range 60 {
		q := r.query()
		if q == nil || q.CRS == Flat {
			continue
		}
		cells := q.QueryCells()
		for range 150 {
			o := r.geometry()
			if o == nil {
				continue
			}
			if !q.CanContain() || !q.Contains(o) {
				if !q.CanMeet() || !q.Intersects(o) {
					continue
				}
			}
			related++
			stored, err := o.Cells(Levels{2, 16, 20})
			if err != nil {
				t.Fatal(err)
			}
			if !share(cells, stored) {
				t.Fatalf("%+v and %+v are related and share no cell", q, o)
			}
		}
	}
	if related == 0 {
		t.Error("no shapes were related")
	}
}

// TestRingCellsHoldDistances: what lies in a ring shares a cell with it.
func TestRingCellsHoldDistances(t *testing.T) {
	r := newRandom(t)
	for range 60 {
		center := r.point()
		low := r.size / 60 * r.Float64()
		high := low + r.size/60*r.Float64()
		if r.IntN(10) == 0 {
			high = math.Pi
		}
		cells := RingCells(center, low, high)
		for range 150 {
			o := r.geometry()
			if o == nil {
				continue
			}
			if d, ok := SphereDistance(center, o); !ok || d < low || d > high {
				continue
			}
			stored, err := o.Cells(Levels{2, 16, 20})
			if err != nil {
				t.Fatal(err)
			}
			if !share(cells, stored) {
				t.Fatalf("%+v lies from %v to %v from %v and shares no cell", o, low, high, center)
			}
			if o.Kind == PointKind && !InRing(center, low, high)(stored[0]) {
				t.Fatalf("%+v lies from %v to %v from %v and not its cell", o, low, high, center)
			}
		}
	}
}

// TestGridHoldsPoints: what a shape on the plane contains, or a ring holds, hashes into its covering.
func TestGridHoldsPoints(t *testing.T) {
	r := newRandom(t)
	for range 200 {
		grid := []Grid{{26, -180, 180}, {1, -180, 180}, {32, -180, 180}, {5, -200, 1000}}[r.IntN(4)]
		p := r.point()
		q := []*Geometry{
			{Kind: Box, Corners: []Point{p, {p.X + r.size, p.Y + 2*r.size}}},
			{Kind: Circle, At: p, Radius: r.size},
			{Kind: Ring, Corners: []Point{p, r.near(p), r.near(p), r.near(p)}},
			{Kind: Cap, CRS: Sphere, At: p, Radius: r.size / 60, cap: s2.CapFromCenterAngle(p.spherical(), 0)},
		}[r.IntN(4)]
		if q.Kind == Cap {
			q, _ = ParseShape("$centerSphere", bson.MustParse(fmt.Sprintf("[ %s, %v ]", p.text(), q.Radius)))
		}
		cells := grid.Cover(q.GridOverlap, 16)
		low, high := r.size/60*r.Float64(), r.size/60*(1+r.Float64())
		flat, round := grid.Cover(FlatRing(p, low, high), 16), grid.Cover(SphereRing(p, low, high), 16)
		for range 200 {
			o := r.near(p)
			if r.IntN(3) == 0 {
				o = r.point()
			}
			if !grid.Holds(o) {
				continue
			}
			hash := grid.Hash(o)
			if q.Contains(&Geometry{At: o}) && !holds(cells, hash) {
				t.Fatalf("%+v contains %v and the covering does not", q, o)
			}
			if d, ok := FlatDistance(p, &Geometry{At: o}); ok && d >= low && d <= high && !holds(flat, hash) {
				t.Fatalf("%v lies from %v to %v from %v and not in the covering", o, low, high, p)
			}
			if d, ok := SphereDistance(p, &Geometry{At: o}); ok && d >= low && d <= high && !holds(round, hash) {
				t.Fatalf("%v lies from %v to %v from %v on the sphere and not in the covering", o, low, high, p)
			}
		}
	}
}

func holds(cells []GridCell, hash uint64) bool {
	for _, c := range cells {
		if hash >= c.Hash && hash <= c.High() {
			return true
		}
	}
	return false
}
