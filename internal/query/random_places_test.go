package query

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestRandomPlaces tries random searches for places on random documents with geospatial indexes: by shape, the answer is what
// looking at all documents gives; by distance, it is in the order of the distances, and of the documents where those are
// the same.
func TestRandomPlaces(t *testing.T) {
	seed := *trySeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	started := clock.Wall().Now()
	for n := uint64(0); !t.Failed() && (n < fewestPlaces || clock.Since(clock.Wall(), started) < *tryFor); n++ {
		tryPlaces(t, seed+n)
	}
}

// places makes places: most of them at a few spots, the poles, the antimeridian and corners of cells, and some twice.
type places struct {
	world
	flat bool
	size float64
}

var spots = [][2]float64{{0, 0}, {180, 0}, {-180, 10}, {0, 90}, {30, -90}, {45, 35.264}, {13.4, 52.5}, {-179.9, 89.9}}

func (w *places) point() (x, y float64) {
	w.size = math.Pow(10, w.r.Float64()*6-4)
	s := spots[w.r.IntN(len(spots))]
	switch w.r.IntN(6) {
	case 0:
		return 360*w.r.Float64() - 180, 180*w.r.Float64() - 90
	case 1:
		return s[0], s[1]
	}
	return w.near(s[0], s[1])
}

func (w *places) near(x, y float64) (float64, float64) {
	x, y = x+w.size*(2*w.r.Float64()-1), y+w.size*(2*w.r.Float64()-1)
	return min(max(x, -180), 180), min(max(y, -90), 90)
}

func at(x, y float64) string { return fmt.Sprintf("[%v, %v]", x, y) }

func (w *places) line() string {
	x, y := w.point()
	corners := []string{at(x, y)}
	for range 1 + w.r.IntN(3) {
		corners = append(corners, at(w.near(x, y)))
	}
	return "[" + strings.Join(corners, ", ") + "]"
}

func (w *places) ring() string {
	x, y := w.point()
	var corners []string
	n := 3 + w.r.IntN(5)
	for i := range n {
		a, far := 2*math.Pi*float64(i)/float64(n), w.size*(0.3+w.r.Float64())
		corners = append(corners, at(min(max(x+far*math.Cos(a), -180), 180), min(max(y+far*math.Sin(a), -90), 90)))
	}
	return "[" + strings.Join(append(corners, corners[0]), ", ") + "]"
}

// place is the value of a place's field.
func (w *places) place() string {
	x, y := w.point()
	if w.flat {
		switch w.r.IntN(6) {
		case 0:
			return fmt.Sprintf("[%s, %s]", at(x, y), at(w.point()))
		case 1:
			return fmt.Sprintf("{x: %v, y: %v}", x, y)
		case 2:
			return w.pick("null", "[]", "7")
		}
		return at(x, y)
	}
	switch w.r.IntN(9) {
	case 0:
		return fmt.Sprintf("{type: 'LineString', coordinates: %s}", w.line())
	case 1:
		return fmt.Sprintf("{type: 'Polygon', coordinates: [%s]}", w.ring())
	case 2:
		return fmt.Sprintf("{type: 'MultiPoint', coordinates: %s}", w.line())
	case 3:
		return fmt.Sprintf("{type: 'GeometryCollection', geometries: [{type: 'Point', coordinates: %s}, {type: 'LineString', coordinates: %s}]}", at(x, y), w.line())
	case 4:
		return w.pick("null", "[]")
	case 5:
		return at(x, y)
	}
	return fmt.Sprintf("{type: 'Point', coordinates: %s}", at(x, y))
}

func (w *places) document(id int) string {
	parts := []string{fmt.Sprintf("_id: %d", id)}
	if w.chance(90) {
		parts = append(parts, "p: "+w.place())
	}
	if w.chance(90) {
		parts = append(parts, "a: "+w.pick("1", "2", "'x'", "[1, 2]", "[]", "null"))
	}
	if w.chance(50) {
		parts = append(parts, fmt.Sprintf("l: [{p: %s, a: 1}, {p: %s, a: 2}]", at(w.point()), at(w.point())))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (w *places) indexes() []string {
	if w.flat {
		return []string{fmt.Sprintf("{key: {p: '2d'}, name: 'p', bits: %d}", 1+w.r.IntN(32)), "{key: {'l.p': '2d', a: 1}, name: 'l', min: -200, max: 500}"}
	}
	return []string{
		fmt.Sprintf("{key: {p: '2dsphere'}, name: 'p', '2dsphereIndexVersion': %d}", 2+w.r.IntN(2)),
		w.pick("{key: {a: 1, p: '2dsphere'}, name: 'ap'}", "{key: {p: '2dsphere', a: -1}, name: 'pa'}", "{key: {p: '2dsphere', 'l.p': '2dsphere'}, name: 'pl'}"),
		w.pick("{key: {'l.a': -1, 'l.p': '2dsphere'}, name: 'lap'}", "{key: {'l.p': '2dsphere', 'l.a': 1}, name: 'lp', finestIndexedLevel: 5}"),
	}
}

// shape is a search by shape.
func (w *places) shape() string {
	x, y := w.point()
	polygon := fmt.Sprintf("{$geometry: {type: 'Polygon', coordinates: [%s]}}", w.ring())
	if w.flat {
		x2, y2 := w.near(x, y)
		return "{$geoWithin: " + w.pick(fmt.Sprintf("{$box: [%s, %s]}", at(x, y), at(x2, y2)), fmt.Sprintf("{$center: [%s, %v]}", at(x, y), w.size),
			fmt.Sprintf("{$polygon: %s}", w.ring()), fmt.Sprintf("{$centerSphere: [%s, %v]}", at(x, y), w.size/50), polygon) + "}"
	}
	return w.pick("{$geoWithin: "+polygon+"}", "{$geoIntersects: "+polygon+"}", fmt.Sprintf("{$geoIntersects: {$geometry: %s}}", strings.ReplaceAll(w.solid(), "null", "[0, 0]")),
		fmt.Sprintf("{$geoWithin: {$centerSphere: [%s, %v]}}", at(x, y), w.size/50), fmt.Sprintf("{$geoWithin: {$box: [%s, %s]}}", at(x, y), at(w.near(x, y))))
}

// solid is a place that is one.
func (w *places) solid() string {
	for {
		if p := w.place(); p != "null" && p != "[]" {
			return p
		}
	}
}

func (w *places) rest() string {
	return w.pick("", "", ", a: 1", ", a: {$in: [1, 'x']}", ", a: null", ", a: {$gt: 0}", ", 'l.a': 1", ", l: {$elemMatch: {a: 2}}")
}

func (w *places) search() string {
	x, y := w.point()
	limits := ""
	unit := 1.0
	if !w.flat {
		unit = 111_000
	}
	if w.chance(50) {
		limits = fmt.Sprintf(", $maxDistance: %v", 2*w.size*unit)
	}
	if w.chance(30) {
		limits += fmt.Sprintf(", $minDistance: %v", w.size*unit/3)
	}
	if w.flat {
		return w.pick(fmt.Sprintf("{$near: %s%s}", at(x, y), limits), fmt.Sprintf("{$nearSphere: %s}", at(x, y)))
	}
	return fmt.Sprintf("{$near: {$geometry: {type: 'Point', coordinates: %s}%s}}", at(x, y), limits)
}

func tryPlaces(t *testing.T, seed uint64) {
	x := &tried{t: t, world: world{r: rand.New(rand.NewPCG(seed, 11))}, ns: namespace.NS{DB: "test", Coll: "c"}, seed: seed}
	defer x.open()()
	w := &places{world: x.world, flat: x.world.chance(40)}
	_, err := x.engine.Store.CreateCollection(t.Context(), x.ns, bson.EmptyDoc)
	x.must(err)
	for i, spec := range w.indexes() {
		if i == 0 || w.chance(50) {
			x.indexOf(spec)
		}
	}
	for i := range 20 + x.world.r.IntN(150) {
		doc := w.document(i)
		_, refused, err := x.engine.Insert(t.Context(), x.ns, []bson.Doc{bson.MustDoc(doc)}, true, x.call())
		x.must(err)
		if len(refused) == 0 {
			fmt.Fprintf(&x.log, "%s\n", doc)
		}
	}
	v, err := x.engine.Store.Validate(t.Context(), x.ns, nil)
	x.must(err)
	if !v.Valid {
		t.Fatalf("seed %d: %+v", seed, v)
	}
	for range queriesPerWorld {
		path := w.pick("p", "p", "l.p")
		x.compareShapes(fmt.Sprintf("{%s: %s%s}", "'"+path+"'", w.shape(), w.rest()))
		x.compareDistances(path, w.search(), w.rest())
	}
}

func (x *tried) compareShapes(filter string) {
	q := &asked{}
	d := bson.MustDoc(filter)
	want, err := x.run(Find{NS: x.ns, Filter: d, Hint: natural()}, q)
	if err != nil {
		return // what was made is no shape
	}
	got, err := x.run(Find{NS: x.ns, Filter: d}, q)
	x.must(err)
	if g, w := sortedIDs(got), sortedIDs(want); !slices.Equal(g, w) {
		x.t.Fatalf("seed %d: %s\ngot  %v\nwant %v\n%s", x.seed, filter, g, w, x.log.String())
	}
}

func sortedIDs(docs []bson.Doc) []int32 {
	ids := idsIn(docs)
	slices.Sort(ids)
	return ids
}

func idsIn(docs []bson.Doc) (ids []int32) {
	for _, d := range docs {
		ids = append(ids, d.Lookup("_id").Int32())
	}
	return ids
}

func (x *tried) compareDistances(path, search, rest string) {
	near, err := match.ParseGeoNear(path, bson.MustDoc(search))
	x.must(err)
	all, err := x.run(Find{NS: x.ns, Filter: bson.MustDoc("{" + strings.TrimPrefix(rest, ", ") + "}"), Hint: natural()}, &asked{})
	x.must(err)
	type found struct {
		id  int32
		far float64
	}
	var want []found
	for _, d := range all {
		if far, _, ok := near.Nearest(d, nil); ok {
			want = append(want, found{d.Lookup("_id").Int32(), far})
		}
	}
	slices.SortStableFunc(want, func(a, b found) int { return cmp.Compare(a.far, b.far) })
	filter := fmt.Sprintf("{'%s': %s%s}", path, search, rest)
	got, err := x.run(Find{NS: x.ns, Filter: bson.MustDoc(filter)}, &asked{})
	if err != nil && mongoerr.From(err).Code == mongoerr.NoQueryExecutionPlans {
		return
	}
	x.must(err)
	var ids []int32
	for _, f := range want {
		ids = append(ids, f.id)
	}
	if !slices.Equal(idsIn(got), ids) {
		x.t.Fatalf("seed %d: %s\ngot  %v\nwant %v\n%s", x.seed, filter, idsIn(got), want, x.log.String())
	}
}
