package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestCursorsWhileDocumentsChange: between the batches of a cursor documents change, move and go. What it gives then is what
// is there and matches, and whatever matches all the time comes once, unless it is found by what has changed.
func TestCursorsWhileDocumentsChange(t *testing.T) {
	seed := *trySeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	started := clock.Wall().Now()
	for n := uint64(0); !t.Failed() && (n < 3*fewestWorlds || clock.Since(clock.Wall(), started) < *tryFor); n++ {
		readWhileDocumentsChange(t, seed+n)
	}
}

// changingReads are the queries, with their indexes.
var changingReads = []struct{ find, indexes string }{
	{`{filter: {$or: [{a: {$in: [1, 2]}}, {b: 1}]}, sort: {s: 1}}`, `[{v: 2, key: {a: 1, s: 1}, name: 'as'}, {v: 2, key: {b: 1, s: 1}, name: 'bs'}]`},
	{`{filter: {$or: [{a: 1, c: {$gt: 0}}, {b: 1}]}, sort: {s: -1}}`, `[{v: 2, key: {a: 1, s: 1}, name: 'as'}, {v: 2, key: {b: 1, s: 1}, name: 'bs'}]`},
	{`{filter: {$or: [{a: 1}, {b: 1}]}}`, `[{v: 2, key: {a: 1}, name: 'a'}, {v: 2, key: {b: 1}, name: 'b'}]`},
	{`{filter: {a: {$in: [0, 1, 2]}}, sort: {s: 1}}`, `[{v: 2, key: {a: 1, s: 1}, name: 'as'}]`},
	{`{filter: {a: {$ne: 1}}}`, `[{v: 2, key: {a: 1}, name: 'a'}]`},
	{`{filter: {a: {$gt: 0, $lt: 3}}}`, `[{v: 2, key: {a: 1}, name: 'a'}]`},
	{`{filter: {a: {$gt: 0}, b: {$lt: 2}}}`, `[{v: 2, key: {a: 1}, name: 'a'}, {v: 2, key: {b: 1}, name: 'b'}]`}, // a race
	{`{filter: {a: {$gt: 0}}, hint: {$natural: 1}}`, `[]`},
	{`{filter: {a: {$gt: 0}}, hint: {$natural: -1}}`, `[]`},
	{`{filter: {p: {$near: [0, 0]}, a: {$gt: 0}}}`, `[{v: 2, key: {p: '2d'}, name: 'p'}]`},
	{`{filter: {$text: {$search: 'one two'}, a: {$gt: 0}}, hint: null}`, `[{v: 2, key: {t: 'text'}, name: 't'}]`},
}

func readWhileDocumentsChange(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 13))
	x := &tried{t: t, world: world{r: r}, ns: namespace.NS{DB: "test", Coll: "c"}, seed: seed}
	defer x.open()()
	ctx := context.Background()
	_, err := x.engine.Store.CreateCollection(ctx, x.ns, bson.EmptyDoc)
	x.must(err)
	asks := changingReads[r.IntN(len(changingReads))]
	for it := bson.MustParse(asks.indexes).Doc().Iter(); it.Next(); {
		x.indexOf(it.Value().Text())
	}
	reclustered := r.IntN(2)
	if reclustered == 0 {
		x.indexOf("{v: 2, name: 'd', key: {d: 1}, expireAfterSeconds: 100000}")
	}
	changes := &changes{tried: x, steady: map[string]bool{}}
	many := 5 + r.IntN(60)
	for i := range many {
		changes.insert(i)
	}
	spec := bson.MustDoc(asks.find)
	f := Find{NS: x.ns, Filter: spec.Lookup("filter").Doc(), Hint: spec.Lookup("hint")}
	if s := spec.Lookup("sort"); !s.IsMissing() {
		f.Sort = s.Doc()
	}
	for _, d := range changes.matching(f.Filter) {
		changes.steady[d.Lookup("_id").Text()] = true
	}
	rows, err := x.engine.Find(ctx, f, x.call())
	x.must(err)
	defer rows.Close()
	came := map[string]int{}
	for n := 0; ; n++ {
		doc, err := rows.Next(ctx)
		x.must(err)
		if doc == nil {
			break
		}
		id := doc.Lookup("_id").Text()
		came[id]++
		now := changes.matching(f.Filter)
		if !slices.ContainsFunc(now, func(d bson.Doc) bool { return d.String() == doc.String() }) {
			t.Errorf("seed %d: %s gives %s, which is not so or does not match\n%s", seed, asks.find, doc, x.log.String())
		}
		if r.IntN(3) > 0 {
			continue
		}
		rows.Park()
		if n == 2 && reclustered == 1 {
			x.indexOf("{v: 2, name: 'd', key: {d: 1}, expireAfterSeconds: 100000}")
		}
		for range r.IntN(8) {
			changes.change(r.IntN(many))
		}
		if r.IntN(4) == 0 {
			_, _, err = x.sweeps.Recluster(ctx, x.engine.Store.Catalog().Collection(x.ns).ID, 1+r.IntN(8))
			x.must(err)
		}
	}
	for id, steady := range changes.steady {
		if n := came[id]; steady && n != 1 {
			t.Errorf("seed %d: %s gives %s %d times\n%s", seed, asks.find, id, n, x.log.String())
		}
	}
}

// changes are made to the documents of a collection.
type changes struct {
	*tried
	// steady has the documents that match from the beginning, true for those that only move.
	steady map[string]bool
}

func (c *changes) number() string {
	if c.world.chance(10) {
		return c.world.pick("[0, 3]", "[1, 5]", "[]", "null")
	}
	return c.world.pick("0", "1", "2")
}

func (c *changes) date() string {
	return fmt.Sprintf("Date(%d)", testTime+c.world.r.Int64N(1_000_000))
}

func (c *changes) insert(i int) {
	doc := fmt.Sprintf("{_id: %d, a: %d, b: %d, c: %d, s: %d, d: %s, p: [%d, 1], t: '%s'}", i, c.world.r.IntN(3), c.world.r.IntN(3), c.world.r.IntN(3), c.world.r.IntN(9), c.date(),
		c.world.r.IntN(20), c.world.pick("one", "two", "one two", "three"))
	fmt.Fprintf(&c.log, "%s\n", doc)
	_, _, err := c.engine.Insert(context.Background(), c.ns, []bson.Doc{bson.MustDoc(doc)}, true, c.call())
	c.must(err)
}

func (c *changes) change(i int) {
	ctx, id := context.Background(), bson.MustDoc(fmt.Sprintf("{_id: %d}", i))
	set := "{$set: {d: " + c.date() + "}}"
	if c.world.chance(50) {
		set = "{$set: {" + c.world.pick("a", "b", "c", "s") + ": " + c.number() + "}}"
		if c.world.chance(20) {
			set = c.world.pick("{$set: {p: [30, 1]}}", "{$set: {p: [0, 0]}}", "{$set: {t: 'four'}}", "{$set: {t: 'two'}}")
		}
		c.steady[fmt.Sprint(i)] = false
	}
	if c.world.chance(5) {
		c.steady[fmt.Sprint(i)] = false
		_, _, err := c.engine.Delete(ctx, Delete{NS: c.ns, Filter: id}, c.call())
		c.must(err)
		fmt.Fprintf(&c.log, "delete %d\n", i)
		return
	}
	fmt.Fprintf(&c.log, "update %d %s\n", i, set)
	_, err := c.engine.Update(ctx, Update{NS: c.ns, Filter: id, Change: bson.MustParse(set)}, c.call())
	if err != nil && mongoerr.From(err).Code != mongoerr.CannotIndexParallelArrays {
		c.must(err)
	}
}

// matching are the documents that match now.
func (c *changes) matching(filter bson.Doc) (out []bson.Doc) {
	ctx := context.Background()
	b := bson.Build()
	for it := filter.Iter(); it.Next(); {
		if k := it.Key(); k != "$text" && k != "p" {
			b.Value(k, it.Value())
		}
	}
	r, err := c.engine.Find(ctx, Find{NS: c.ns, Filter: b.Doc(), Hint: natural()}, c.call())
	c.must(err)
	text := !filter.Lookup("$text").IsMissing()
	c.must(r.All(ctx, func(d bson.Doc) error {
		if t := d.Lookup("t").Str(); !text || t != "three" && t != "four" {
			out = append(out, d.Clone())
		}
		return nil
	}))
	return out
}
