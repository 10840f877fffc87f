package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/namespace"
)

// BenchmarkPlaces searches 100 000 points on the sphere: the ten nearest, and those in a thousandth of its area, by an index
// and by looking at all documents.
func BenchmarkPlaces(b *testing.B) {
	t := &testing.T{}
	x := &tried{t: t, world: world{r: rand.New(rand.NewPCG(1, 1))}, ns: namespace.NS{DB: "test", Coll: "c"}, cacheBytes: 256 << 20}
	defer x.open()()
	ctx := context.Background()
	_, err := x.engine.Store.CreateCollection(ctx, x.ns, bson.EmptyDoc)
	x.must(err)
	for n := range 100 {
		var docs []bson.Doc
		for i := range 1000 {
			lng, lat := 360*x.world.r.Float64()-180, 180*x.world.r.Float64()-90
			docs = append(docs, bson.MustDoc(fmt.Sprintf("{_id: %d, p: {type: 'Point', coordinates: [%v, %v]}, f: [%v, %v]}", n*1000+i, lng, lat, lng, lat)))
		}
		_, _, err := x.engine.Insert(ctx, x.ns, docs, true, x.call())
		x.must(err)
	}
	x.indexOf("{key: {p: '2dsphere'}, name: 'p'}")
	x.indexOf("{key: {f: '2d'}, name: 'f'}")
	search := func(b *testing.B, f Find) {
		for b.Loop() {
			r, err := x.engine.Find(ctx, f, x.call())
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			if err := r.All(ctx, func(bson.Doc) error { n++; return nil }); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n), "found")
		}
	}
	at := func(deltaLng float64) string { return fmt.Sprintf("[%v, %v]", 10+deltaLng, 20.5) }
	for name, filter := range map[string]string{
		"near":       "{p: {$near: {$geometry: {type: 'Point', coordinates: " + at(0) + "}}}}",
		"near2d":     "{f: {$near: " + at(0) + "}}",
		"nearSphere": "{f: {$nearSphere: " + at(0) + "}}",
	} {
		b.Run(name+"/index", func(b *testing.B) { search(b, Find{NS: x.ns, Filter: bson.MustDoc(filter), Limit: 10}) })
	}
	b.Run("nearAll/index", func(b *testing.B) {
		search(b, Find{NS: x.ns, Filter: bson.MustDoc("{p: {$near: {$geometry: {type: 'Point', coordinates: " + at(0) + "}}}}")})
	})
	b.Run("near/scan", func(b *testing.B) {
		near, err := match.ParseGeoNear("p", bson.MustDoc("{$near: {$geometry: {type: 'Point', coordinates: "+at(0)+"}}}"))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			r, err := x.engine.Find(ctx, Find{NS: x.ns, Filter: bson.EmptyDoc}, x.call())
			if err != nil {
				b.Fatal(err)
			}
			if err := r.All(ctx, func(d bson.Doc) error { near.Nearest(d, nil); return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, filter := range map[string]string{
		"within":   "{p: {$geoWithin: {$centerSphere: [" + at(0) + ", 0.063]}}}",
		"within2d": "{f: {$geoWithin: {$box: [" + at(0) + ", [21.4, 26.2]]}}}",
	} {
		b.Run(name+"/index", func(b *testing.B) { search(b, Find{NS: x.ns, Filter: bson.MustDoc(filter)}) })
		b.Run(name+"/scan", func(b *testing.B) { search(b, Find{NS: x.ns, Filter: bson.MustDoc(filter), Hint: natural()}) })
	}
}
