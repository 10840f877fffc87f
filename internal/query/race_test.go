package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// openSkewed is a collection of 4000 documents of which 9 in 10 have a: 0 and 9 in 10 have b: 0, each rare value 4 times, with
// an index of each field.
func openSkewed(t *testing.T) *tried {
	x := &tried{t: t, world: world{r: rand.New(rand.NewPCG(1, 7))}, ns: namespace.NS{DB: "test", Coll: "c"}}
	t.Cleanup(x.open())
	_, err := x.engine.Store.CreateCollection(context.Background(), x.ns, bson.EmptyDoc)
	x.must(err)
	var docs []bson.Doc
	for i := range 4000 {
		a, b := 0, 0
		if i%10 == 1 {
			a = 1 + i/40
		}
		if i%10 == 2 {
			b = 1 + i/40
		}
		docs = append(docs, bson.MustDoc(fmt.Sprintf("{_id: %d, a: %d, b: %d}", i, a, b)))
	}
	_, _, err = x.engine.Insert(context.Background(), x.ns, docs, true, x.call())
	x.must(err)
	_, err = x.engine.DDL.CreateIndexes(context.Background(), x.ns, func(c *catalog.Collection) (all []*index.Definition, err error) {
		for _, spec := range []string{"{v: 2, name: 'a', key: {a: 1}}", "{v: 2, name: 'b', key: {b: 1}}"} {
			d, err := x.engine.Indexes().Parse(bson.MustDoc(spec), nil)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
		return all, nil
	})
	x.must(err)
	x.coll = x.engine.Store.Catalog().Collection(x.ns)
	return x
}

// walk runs a find to its end: the plan it went by and the keys that it looked at.
func (x *tried) walk(filter string) (summary string, keys int64) {
	call := x.call()
	r, err := x.engine.Find(context.Background(), Find{NS: x.ns, Filter: bson.MustDoc(filter)}, call)
	x.must(err)
	x.must(r.All(context.Background(), func(bson.Doc) error { return nil }))
	return call.PlanSummary, call.Seen.Keys
}

// TestSkewedData holds the race and the memory of its winners to data in which the best index depends on the values.
func TestSkewedData(t *testing.T) {
	x := openSkewed(t)
	const rareA, rareB = "{a: 5, b: 0}", "{a: 0, b: 5}"
	for _, c := range []struct{ filter, want string }{
		{rareB, "IXSCAN { b: 1 }"}, // a race
		{rareB, "IXSCAN { b: 1 }"}, // another, which makes the entry active
		{rareB, "IXSCAN { b: 1 }"}, // remembered
		{rareA, "IXSCAN { a: 1 }"}, // what is remembered takes ten times the works, and the plans race again
		{rareB, "IXSCAN { b: 1 }"},
	} {
		plan, keys := x.walk(c.filter)
		if plan != c.want || keys > 20 {
			t.Errorf("%s goes by %s and looks at %d keys, not by %s and a few", c.filter, plan, keys, c.want)
		}
	}
	entries := x.engine.Plans.Of(x.coll.ID).Entries()
	if len(entries) != 1 {
		t.Errorf("%d plans are remembered, not one", len(entries))
	}
}

// TestRaceKeepsWhatItFound: no document is lost or given twice when a race is won in its middle.
func TestRaceKeepsWhatItFound(t *testing.T) {
	x := openSkewed(t)
	for range 3 {
		seen := map[string]bool{}
		r, err := x.engine.Find(context.Background(), Find{NS: x.ns, Filter: bson.MustDoc("{a: 0, b: 0}")}, x.call())
		x.must(err)
		n := 0
		x.must(r.All(context.Background(), func(d bson.Doc) error {
			seen[d.Lookup("_id").String()] = true
			if n++; n%50 == 0 {
				r.Park()
			}
			return nil
		}))
		if n != 3200 || len(seen) != n {
			t.Errorf("%d documents, %d different ones, not 3200", n, len(seen))
		}
	}
}

// TestSortIsRaced: a plan that sorts does not win for having found much before the sort gives anything.
func TestSortIsRaced(t *testing.T) {
	x := openSkewed(t)
	call := x.call()
	r, err := x.engine.Find(context.Background(), Find{NS: x.ns, Filter: bson.MustDoc("{a: 0}"), Sort: bson.MustDoc("{b: -1}"), Limit: 5}, call)
	x.must(err)
	x.must(r.All(context.Background(), func(bson.Doc) error { return nil }))
	if call.PlanSummary != "IXSCAN { b: 1 }" {
		t.Errorf("goes by %s, which has to sort", call.PlanSummary)
	}
}

// TestErrorWhilePlansRace: an error that the candidates meet is told as what it is, and the store's snapshot given back.
func TestErrorWhilePlansRace(t *testing.T) {
	x := openSkewed(t)
	filter := bson.MustDoc("{a: {$gte: 0}, b: {$gte: 0}, $expr: {$gt: [{$divide: [1, {$subtract: ['$_id', '$_id']}]}, 1]}}")
	ctx, before := context.Background(), int64(0)
	for i := range 3 {
		for name, ask := range map[string]func() error{
			"find":  func() error { _, err := x.engine.Find(ctx, Find{NS: x.ns, Filter: filter}, x.call()); return err },
			"count": func() error { _, err := x.engine.Count(ctx, Count{NS: x.ns, Filter: filter}, x.call()); return err },
			"distinct": func() error {
				_, err := x.engine.Distinct(ctx, Distinct{NS: x.ns, Key: "a", Filter: filter}, x.call())
				return err
			},
		} {
			if err := ask(); !mongoerr.Is(err, mongoerr.BadValue) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, _, err := x.engine.Insert(ctx, x.ns, []bson.Doc{bson.MustDoc(fmt.Sprintf("{_id: %d}", 4000+i))}, true, x.call()) // the next snapshot is another
		x.must(err)
		switch open := x.engine.Store.EngineStats().Snapshots; {
		case i == 0:
			before = open
		case open > before:
			t.Errorf("%d snapshots are open, and %d were before", open, before)
		}
	}
}
