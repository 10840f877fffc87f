package planner

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/match"
)

// TestIntersectionOfMany: the bounds of n conditions that each take out one value are found with n log n comparisons, and
// are those that one after the other gives.
func TestIntersectionOfMany(t *testing.T) {
	const n = 2000
	var sets []Intervals
	for i := range n {
		v := bson.Int32(int32(i * 7919 % n))
		sets = append(sets, Intervals{{bson.MinKey, v, true, false}, {v, bson.MaxKey, false, true}})
	}
	want := All()
	for _, s := range sets {
		want = intersect(bson.Compare, want, s)
	}
	compared := 0
	got := (&planning{}).intersection(func(a, b bson.Value) int { compared++; return bson.Compare(a, b) }, sets)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != n+1 {
		t.Errorf("%d intervals, not %d", len(got), n+1)
	}
	if most := 10 * n * bits.Len(n); compared > most {
		t.Errorf("%d comparisons for %d sets, more than %d", compared, n, most)
	}
}

// TestPlanningOfMany plans filters of n parts: what is looked at grows with n, or it asks whether to go on, and ends when it is told to.
func TestPlanningOfMany(t *testing.T) {
	const n = 4000
	many := func(op string, part func(i int) bson.Doc) bson.Doc {
		b := bson.Build().Array(op)
		for i := range n {
			b.Document(bson.IndexKey(i), part(i))
		}
		return b.End().Doc()
	}
	unequal := func(i int) bson.Doc { return bson.Build().Object("a").Int32("$ne", int32(i)).End().Doc() }
	for name, c := range map[string]struct {
		index  string
		filter bson.Doc
		each   int // steps for each part; 0 for those that are n² however they are planned
	}{
		"values that are taken out":  {"{key: {a: 1}}", many("$and", unequal), 40},
		"through an array":           {"{key: {a: 1}} multikey a", many("$and", unequal), 4 * (maxIndexedSolutions + 4)},
		"each its own element":       {"{key: {'a.b': 1}} multikey a", many("$and", func(i int) bson.Doc { return bson.MustDoc(fmt.Sprintf("{a: {$elemMatch: {b: %d}}}", i)) }), 4 * (maxIndexedSolutions + 4)},
		"paths of a wildcard index":  {"{key: {'$**': 1}}", many("$and", func(i int) bson.Doc { return bson.MustDoc(fmt.Sprintf("{a%d: 1}", i)) }), 0},
		"ways that are taken apart":  {"{key: {a: 1}}", many("$or", func(i int) bson.Doc { return bson.MustDoc(fmt.Sprintf("{a: %d, b: 1}", i)) }), 20},
		"$or beside $or":             {"{key: {'$**': 1}}", many("$and", func(i int) bson.Doc { return bson.MustDoc(fmt.Sprintf("{$or: [{a: %d}, {b: %d}]}", i, i)) }), 2 * maxIndexedSolutions},
		"paths of a wildcard's ways": {"{key: {'$**': 1}}", many("$or", func(i int) bson.Doc { return bson.MustDoc(fmt.Sprintf("{a%d: 1}", i)) }), 0},
	} {
		filter, err := match.NewParser().Parse(c.filter, match.Options{Allow: match.AllowMatch})
		if err != nil {
			t.Fatal(err)
		}
		coll := Collection{Indexes: []Index{parseIndex(t, 1, c.index)}}
		asked := 0
		if c.each > 0 {
			if _, err := Candidates(coll, Query{Filter: filter, Interrupt: func() error { asked++; return nil }}); err != nil {
				t.Fatal(name, err)
			}
			if most := c.each * n / stepsPerAsk; asked > most || asked == 0 {
				t.Errorf("%s: has asked %d times, not once to %d times", name, asked, most)
			}
		}
		stop := errors.New("stop")
		asked = 0
		_, err = Candidates(coll, Query{Filter: filter, Interrupt: func() error { asked++; return stop }})
		if !errors.Is(err, stop) || asked != 1 {
			t.Errorf("%s: %v, having asked %d times", name, err, asked)
		}
	}
}

// TestConjunctsLeft: where each of many plans would leave nearly all of a large filter, there are fewer plans.
func TestConjunctsLeft(t *testing.T) {
	const n = 3 * maxLeftConjuncts / maxIndexedSolutions / 2
	b := bson.Build().Array("$and")
	for i := range n {
		b.Document(bson.IndexKey(i), bson.MustDoc(fmt.Sprintf("{$or: [{a: %d}, {b: %d}]}", i, i)))
	}
	filter, err := match.NewParser().Parse(b.End().Doc(), match.Options{Allow: match.AllowMatch})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := Candidates(Collection{Indexes: []Index{parseIndex(t, 1, "{key: {a: 1}}"), parseIndex(t, 2, "{key: {b: 1}}")}}, Query{Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, plan := range plans {
		left += len(conjuncts(plan.Root.(*Fetch).Filter.Root))
	}
	if left > maxLeftConjuncts || left < maxLeftConjuncts/2 || !plans[0].Reached.And {
		t.Errorf("%d plans leave %d conjuncts; told: %v", len(plans), left, plans[0].Reached.And)
	}
}

// TestListsInManyIndexes: a long list of values is kept for as many indexes as there is room for, and its hashes are put in order once.
func TestListsInManyIndexes(t *testing.T) {
	const n = maxKeptIntervals / 8
	values := make([]bson.Value, n)
	for i := range values {
		values[i] = bson.Int32(int32(i))
	}
	var indexes []Index
	for i := range 20 {
		indexes = append(indexes, parseIndex(t, uint32(i+1), fmt.Sprintf("{key: {a: 1, b%d: 1}}", i)))
	}
	filter, err := match.NewParser().Parse(bson.Build().Object("a").Value("$in", bson.ArrayOf(values...)).End().Doc(), match.Options{Allow: match.AllowMatch})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := Candidates(Collection{Indexes: indexes}, Query{Filter: filter})
	if err != nil || len(plans) != 7 || !plans[0].Reached.And { // each has an interval more, of all b
		t.Errorf("%d plans, %v", len(plans), err)
	}
	hashed := parseIndex(t, 1, "{key: {a: 'hashed'}}")
	few := values[:10_000]
	if made := testing.AllocsPerRun(1, func() { hashed.hashes(few, nil) }); made > 4*float64(len(few)) {
		t.Errorf("%d hashes take %v allocations", len(few), made)
	}
}

// TestBestIsKept: where there is no room for the intervals of more than one index, the one that looks best is kept, and not the first.
func TestBestIsKept(t *testing.T) {
	filter, err := match.NewParser().Parse(bson.MustDoc("{a: 1, b: 2}"), match.Options{Allow: match.AllowMatch})
	if err != nil {
		t.Fatal(err)
	}
	indexes := []Index{parseIndex(t, 1, "{key: {a: 1}}"), parseIndex(t, 2, "{key: {a: 1, b: 1}}"), parseIndex(t, 3, "{key: {b: 1}}")}
	p := &planning{q: Query{Filter: filter}, root: filter.Root, intervals: maxKeptIntervals}
	found := p.accesses(conjuncts(p.root), nil, indexes, true)
	if len(found) != 1 || found[0].node.(*IndexScan).Index.ID != 2 || !p.reached.And {
		t.Errorf("%d are kept: %v", len(found), found)
	}
}
