package geo

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// star is a polygon of n corners, by turns near and far from its center: each of its long edges has many neighbours.
func star(n int, radius float64) bson.Value {
	b := bson.Build().String("type", "Polygon").Array("coordinates").Array("0")
	for i := range n + 1 {
		at, r := 2*math.Pi*float64(i%n)/float64(n), radius*(1+0.5*float64(i%n%2))
		b.Array(bson.IndexKey(i)).Double("0", r*math.Cos(at)).Double("1", r*math.Sin(at)).End()
	}
	return b.End().End().Doc().Value()
}

// TestEnds: the checks of a shape end when nobody wants to know any more.
func TestEnds(t *testing.T) {
	stop := errors.New("stop")
	asked := 0
	r := Reader{Ask: func() error { asked++; return stop }}
	big := star(50_000, 20)
	for name, parse := range map[string]func(bson.Value) (*Geometry, error){"stored": r.ParseStored, "query": r.ParseQuery} {
		if _, err := parse(big); err == nil || !strings.Contains(err.Error(), "nobody wants to know") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	// What goes on is what it would be.
	asked = 0
	r.Ask = func() error { asked++; return nil }
	small, err := r.ParseStored(star(500, 20))
	if err != nil || asked == 0 {
		t.Fatal(err, asked)
	}
	around, err := ParseQuery(star(500, 21))
	if err != nil {
		t.Fatal(err)
	}
	if !around.Intersects(small) {
		t.Error("two stars around one place do not meet")
	}
	small.reader.Ask = func() error { return stop }
	same, err := ParseQuery(star(500, 20))
	if err != nil {
		t.Fatal(err)
	}
	_ = same.Contains(small) // whatever it says, it ends
}

// square adds the corners of one to an array of loops.
func square(b *bson.Builder, key string, x, y, side float64) {
	b.Array(key)
	for i, p := range [5][2]float64{{x, y}, {x + side, y}, {x + side, y + side}, {x, y + side}, {x, y}} {
		b.Array(bson.IndexKey(i)).Double("0", p[0]).Double("1", p[1]).End()
	}
	b.End()
}

// holed is a square with n holes.
func holed(n int) bson.Value {
	b := bson.Build().String("type", "Polygon").Array("coordinates")
	square(b, "0", -60, -30, 100)
	for i := range n {
		square(b, bson.IndexKey(i+1), float64(i%200)/3-50, float64(i/200)/3-20, 0.2)
	}
	return b.End().Doc().Value()
}

// TestManyLoops: s2 holds each loop of a polygon against each other, which nothing ends, so there are not too many.
func TestManyLoops(t *testing.T) {
	if _, err := ParseQuery(holed(200)); err != nil {
		t.Error(err)
	}
	if _, err := ParseQuery(holed(maxLoops)); err == nil || !strings.Contains(err.Error(), "10001 loops, which are more than 10000") {
		t.Errorf("%.200v", err)
	}
}

// TestReadingEnds: shapes of many corners and parts are given up while they are read.
func TestReadingEnds(t *testing.T) {
	stop := errors.New("stop")
	for name, shape := range map[string]bson.Value{
		"positions": star(5000, 20),
		"holes":     holed(200),
		"points":    bson.MustParse(`{type: "MultiPoint", coordinates: [` + strings.Repeat("[1, 2], ", 5000) + `[3, 4]]}`),
	} {
		asked := 0
		r := Reader{Ask: func() error { asked++; return stop }}
		if _, err := r.ParseStored(shape); err == nil || asked != 1 {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
	}
}
