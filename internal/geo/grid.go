package geo

import (
	"cmp"
	"math"
	"slices"
)

// Grid parts a square of the plane into cells: four halves of halves on each level, Bits levels deep.
type Grid struct {
	Bits     int
	Min, Max float64
}

// MaxGridBits is how deep a Grid may be.
const MaxGridBits = 32

// GridCell is a square of a Grid: the first 2*Level bits of the Hash of each of its points.
type GridCell struct {
	Hash  uint64
	Level int
}

// High is the largest Hash of a point in c; the smallest is c.Hash.
func (c GridCell) High() uint64 {
	if c.Level >= MaxGridBits {
		return c.Hash
	}
	return c.Hash | (1<<(64-2*c.Level) - 1)
}

// Holds says whether p lies in the square.
func (g Grid) Holds(p Point) bool {
	return p.X >= g.Min && p.X <= g.Max && p.Y >= g.Min && p.Y <= g.Max
}

// Hash is the cell of p, which the grid holds: a bit of x and one of y in turn, the highest first, zeros after Bits of each.
func (g Grid) Hash(p Point) uint64 {
	hash := spread(g.scaled(p.X))<<1 | spread(g.scaled(p.Y))
	return hash &^ (GridCell{Level: g.Bits}.High())
}

// scaled is where f lies between Min and Max, as 32 bits.
func (g Grid) scaled(f float64) uint32 {
	at := (f - g.Min) * ((1 << 32) / (g.Max - g.Min))
	return uint32(min(max(at, 0), math.MaxUint32))
}

// spread puts bit i of n at 2*i.
func spread(n uint32) uint64 {
	x := uint64(n)
	x = (x | x<<16) & 0x0000FFFF0000FFFF
	x = (x | x<<8) & 0x00FF00FF00FF00FF
	x = (x | x<<4) & 0x0F0F0F0F0F0F0F0F
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

func gather(x uint64) uint32 {
	x &= 0x5555555555555555
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0F0F0F0F0F0F0F0F
	x = (x | x>>4) & 0x00FF00FF00FF00FF
	x = (x | x>>8) & 0x0000FFFF0000FFFF
	return uint32(x | x>>16)
}

// Square is where the points of c lie, and a little more than that for the errors of arithmetic.
func (g Grid) Square(c GridCell) Rect {
	size := math.Ldexp(g.Max-g.Min, -c.Level)
	blur := max(math.Abs(g.Min), math.Abs(g.Max)) * 0x1p-48
	at := func(n uint32) float64 { return g.Min + float64(n)/(1<<32)*(g.Max-g.Min) }
	x, y := at(gather(c.Hash>>1)), at(gather(c.Hash))
	return Rect{Point{x - blur, y - blur}, Point{x + size + blur, y + size + blur}}
}

func (g Grid) quarters(c GridCell) [4]GridCell {
	level := c.Level + 1
	var out [4]GridCell
	for i := range out {
		out[i] = GridCell{c.Hash | uint64(i)<<(64-2*level), level}
	}
	return out
}

// Rect is a rectangle: its lower left and its upper right corner.
type Rect struct{ Low, High Point }

// Overlap is how a rectangle and a region lie.
type Overlap uint8

// Apart: no point in common. Partly may be any, where it is not known better. Inside: the rectangle is all in the region.
const (
	Apart Overlap = iota
	Partly
	Inside
)

// Cover finds about maxCells cells that hold all points of a region, whose overlap with rectangles is given. They are in the
// order of their hashes.
func (g Grid) Cover(overlap func(Rect) Overlap, maxCells int) []GridCell {
	var done []GridCell
	open := []GridCell{{}}
	for len(open) > 0 && len(open)+len(done) < maxCells {
		c := open[0] // the largest, since they are in the order of their levels
		open = open[1:]
		for _, q := range g.quarters(c) {
			switch o := overlap(g.Square(q)); {
			case o == Apart:
			case o == Inside || q.Level == g.Bits:
				done = append(done, q)
			default:
				open = append(open, q)
			}
		}
	}
	done = append(done, open...)
	slices.SortFunc(done, func(a, b GridCell) int { return cmp.Compare(a.Hash, b.Hash) })
	return done
}
