package geo

import (
	"math"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// MaxLevel is the level of the smallest cells of the sphere, of about a square centimeter.
const MaxLevel = s2.MaxLevel

// Levels bounds the cells that cover a shape on the sphere.
type Levels struct {
	Coarsest, Finest int
	// MaxCells is about how many cells there may be.
	MaxCells int
}

// queryLevels bounds the cells that cover what a query asks for.
var queryLevels = Levels{Coarsest: 0, Finest: 23, MaxCells: 20}

func (l Levels) cover(r s2.Region) []s2.CellID {
	coverer := s2.RegionCoverer{MinLevel: l.Coarsest, MaxLevel: l.Finest, LevelMod: 1, MaxCells: l.MaxCells}
	return coverer.Covering(r)
}

// manyParts is how many parts a shape may have that are looked at one by one to see which cells it meets.
const manyParts = 32

// Cells are the cells by which an index on the sphere finds a stored shape: the smallest one for a point, else a covering.
func (g *Geometry) Cells(l Levels) ([]s2.CellID, error) {
	if g.CRS == StrictSphere {
		return nil, badValue("can't index geometry with strict winding order")
	}
	if g.Kind == PointKind {
		if !g.At.OnSphere() {
			return nil, outOfBounds(g.At)
		}
		return []s2.CellID{s2.CellFromPoint(g.At.spherical()).ID()}, nil
	}
	region := g.region()
	if len(g.Points)+len(g.Lines)+len(g.Polygons) > manyParts {
		region = newWidened(g)
	}
	cells := l.cover(region)
	if len(cells) == 0 {
		return nil, mongoerr.New(16756, "Unable to generate keys for (likely malformed) geometry")
	}
	return cells, nil
}

// region is all of g.
func (g *Geometry) region() s2.Region {
	if g.Kind == Cap {
		return g.cap
	}
	var all s2.RegionUnion
	for _, p := range g.Points {
		all = append(all, p)
	}
	for _, l := range g.Lines {
		all = append(all, l)
	}
	for _, p := range g.Polygons {
		all = append(all, p)
	}
	return &all
}

// OnSphere says whether g can be covered by cells of the sphere.
func (g *Geometry) OnSphere() bool { return g.CRS != Flat }

// QueryCells cover all that stored shapes can have in common with g. A shape that is on a border by the rules of Contains and
// Intersects, which are not sharp, is in.
func (g *Geometry) QueryCells() []s2.CellID {
	return queryLevels.cover(newWidened(g))
}

// blur is wider than what the relations of shapes take for touching.
const blur = 4 * onLine

// widened is a shape with all that is nearly in it.
type widened struct {
	s2.Region
	query *s2.EdgeQuery
}

func newWidened(g *Geometry) s2.Region {
	if g.Kind == Cap {
		return g.cap.Expanded(blur)
	}
	index := s2.NewShapeIndex()
	points := s2.PointVector(g.Points)
	index.Add(&points)
	for _, l := range g.Lines {
		index.Add(l)
	}
	for _, p := range g.Polygons {
		index.Add(p)
	}
	return &widened{g.region(), s2.NewClosestEdgeQuery(index, s2.NewClosestEdgeQueryOptions().IncludeInteriors(true))}
}

// CapBound implements s2.Region.
func (w *widened) CapBound() s2.Cap { return w.Region.CapBound().Expanded(blur) }

// CellUnionBound implements s2.Region.
func (w *widened) CellUnionBound() []s2.CellID { return w.CapBound().CellUnionBound() }

// IntersectsCell implements s2.Region.
func (w *widened) IntersectsCell(c s2.Cell) bool {
	return w.query.IsConservativeDistanceLessOrEqual(s2.NewMinDistanceToCellTarget(c), s1.ChordAngleFromAngle(blur))
}

// RingCells cover the places on the sphere that lie from low to high radians from center.
func RingCells(center Point, low, high float64) []s2.CellID {
	return queryLevels.cover(newRing(center, low, high))
}

// InRing says of cells whether they have places that lie from low to high radians from center, or nearly so.
func InRing(center Point, low, high float64) func(s2.CellID) bool {
	r := newRing(center, low, high)
	return func(cell s2.CellID) bool { return r.IntersectsCell(s2.CellFromCellID(cell)) }
}

// sphereRing is a ring around a point on the sphere, or a disc.
type sphereRing struct {
	s2.Cap    // the disc that the ring is cut from
	center    s2.Point
	low, high s1.ChordAngle
}

// ringBlur is wider than the error of distances, which is largest near the point opposite of the center.
const ringBlur = 1e-7

func newRing(center Point, low, high float64) *sphereRing {
	chord := func(radians float64) s1.ChordAngle {
		return s1.ChordAngleFromAngle(s1.Angle(min(max(radians, 0), math.Pi)))
	}
	at := center.spherical()
	r := &sphereRing{center: at, low: chord(low - ringBlur), high: chord(high + ringBlur)}
	r.Cap = s2.CapFromCenterChordAngle(at, r.high)
	return r
}

// IntersectsCell implements s2.Region.
func (r *sphereRing) IntersectsCell(c s2.Cell) bool {
	return c.Distance(r.center) <= r.high && (r.low == 0 || c.MaxDistance(r.center) >= r.low)
}

// ContainsCell implements s2.Region.
func (r *sphereRing) ContainsCell(c s2.Cell) bool {
	return c.MaxDistance(r.center) <= r.high && c.Distance(r.center) >= r.low
}

// CellAngle is how many radians from at the middle of a cell lies.
func CellAngle(cell s2.CellID, at Point) float64 {
	return cell.Point().Distance(at.spherical()).Radians()
}

// SphereAngle is the distance of two places in radians; what is no longitude and latitude is taken as if it went on.
func SphereAngle(a, b Point) float64 { return a.spherical().Distance(b.spherical()).Radians() }
