package geo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestRelations runs testdata/relations.txt: the first line is a shape as a query gives it, { $geometry: … } or { $box: … },
// the others are stored shapes; the answer says of each whether the first contains and meets it, and how far it lies from
// the first when that is a point.
func TestRelations(t *testing.T) {
	datadriven.RunTest(t, "testdata/relations.txt", func(t *testing.T, c *datadriven.TestData) string {
		lines := strings.Split(c.Input, "\n")
		d := bson.MustDoc(lines[0])
		var shape *Geometry
		var err error
		if d.FirstKey() == "$geometry" {
			shape, err = ParseQuery(d.Index(0))
		} else {
			shape, err = ParseShape(d.FirstKey(), d.Index(0))
		}
		if err != nil {
			return err.Error() + "\n"
		}
		var out strings.Builder
		for _, line := range lines[1:] {
			g, err := ParseStored(bson.MustParse(line))
			if err != nil {
				fmt.Fprintf(&out, "%s: %s\n", line, err)
				continue
			}
			fmt.Fprintf(&out, "%s:", line)
			if shape.CanContain() && shape.Contains(g) {
				out.WriteString(" inside")
			}
			if shape.CanMeet() && shape.Intersects(g) {
				out.WriteString(" meets")
			}
			if shape.Kind == PointKind {
				if r, ok := SphereDistance(shape.At, g); ok {
					fmt.Fprintf(&out, " %.0f m", r*EarthRadiusMeters)
				}
				if r, ok := FlatDistance(shape.At, g); ok {
					fmt.Fprintf(&out, " %.2f flat", r)
				}
			}
			out.WriteString("\n")
		}
		return out.String()
	})
}

// TestLargePolygon parses a ring of many corners, which must not take long or be called crossing.
func TestLargePolygon(t *testing.T) {
	b := bson.Build().String("type", "Polygon").Array("coordinates").Array("0")
	const n = 5000
	for i := range n + 1 {
		at := i % n
		x, y := float64(at%(n/2))*0.01, float64(at/(n/2))*10
		if at >= n/2 {
			x = float64(n-1-at) * 0.01
		}
		b.Array(bson.IndexKey(i)).Double("0", x).Double("1", y+0.001*float64(at%2)).End()
	}
	g, err := ParseGeoJSON(b.End().End().Doc())
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := ParseStored(bson.MustParse(`[ 5, 5 ]`)); !g.Contains(p) {
		t.Error("a point inside is outside")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(bson.MustDoc(`{ type: "Polygon", coordinates: [ [ [ 0, 0 ], [ 1, 0 ], [ 1, 1 ], [ 0, 0 ] ] ] }`)), []byte(bson.MustDoc(`{ x: 1, y: 2 }`)))
	f.Add([]byte(bson.MustDoc(`{ type: "LineString", coordinates: [ [ 0, 0 ], [ 1, 0 ] ] }`)), []byte(bson.MustDoc(`{ type: "MultiPoint", coordinates: [ [ 0, 0 ] ] }`)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if bson.Validate(a, 20) != nil || bson.Validate(b, 20) != nil {
			return
		}
		g, err := ParseQuery(bson.Doc(a).Value())
		if err != nil {
			return
		}
		if o, err := ParseStored(bson.Doc(b).Value()); err == nil {
			g.Contains(o)
			g.Intersects(o)
			SphereDistance(Point{1, 1}, o)
		}
	})
}

// TestAngleToTheLastBit holds distances about a right angle and a half turn to what they are exactly.
func TestAngleToTheLastBit(t *testing.T) {
	for _, c := range []struct {
		from, to Point
		want     float64
	}{
		{Point{180, 90}, Point{0, 0}, 1.5707963267948968}, // the pole is a little past 90°, as cos(π/2) is not 0
		{Point{0, 0}, Point{0, 0}, 0},
		{Point{0, 0}, Point{1, 0}, 0.017453292519943295},
		{Point{0, 0}, Point{-180, 0}, 3.141592653589793},
	} {
		g := &Geometry{Kind: PointKind, At: c.to}
		if got, ok := SphereDistance(c.from, g); !ok || got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
