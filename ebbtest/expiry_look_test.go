package ebbtest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// crowd is how many documents are too many to look at them on all ways each time.
const crowd = 100

// look compares all that can be seen with the truth, on every way there is; where there are many documents, on some, which
// the number chooses.
func (x *trial) look(number uint64) {
	x.ways = rand.New(rand.NewPCG(number, 0))
	reply := x.ask(bson.MustDoc("{listCollections: 1, nameOnly: true, cursor: {batchSize: 100}}"))
	var names []string
	for it := reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		if name := it.Value().Doc().Lookup("name").Str(); !strings.HasPrefix(name, "system.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(x.truth.colls)); !slices.Equal(names, want) {
		failf("the collections are %v, not %v", names, want)
	}
	for _, name := range names {
		x.lookAt(name, x.truth.colls[name])
	}
}

func (x *trial) lookAt(name string, c *truthColl) {
	x.lookByFilter(name, c, "{}", "")
	if c.cell == 0 {
		x.lookByFilter(name, c, "{}", "{$natural: 1}")
		x.lookByFilter(name, c, "{_id: {$gte: MinKey}}", "")
		x.lookByID(name, c)
	}
	if !c.clustered && c.cell == 0 {
		x.lookByFilter(name, c, "{}", "{_id: 1}")
	}
	for _, filter := range []string{"{k: 3}", "{k: {$gte: 2}, n: {$lt: 7}}", "{d: {$type: 'date'}}", "{a: 2}", "{n: {$gte: 6}}", "{$or: [{k: 1}, {u: 3}]}",
		fmt.Sprintf("{d: {$gte: Date(%d)}}", x.truth.now), fmt.Sprintf("{d: {$lt: Date(%d)}, k: {$gte: 1}}", x.truth.now)} {
		x.lookByFilter(name, c, filter, "")
	}
	x.lookAtCounts(name, c)
	for _, ix := range c.indexes {
		if !ix.hidden {
			x.lookByIndex(name, c, ix)
		}
	}
}

// lookByIndex looks at what is in an index by a hint.
func (x *trial) lookByIndex(name string, c *truthColl, ix *truthIndex) {
	hint := fmt.Sprintf("%q", ix.name)
	switch {
	case ix.fields[0] == "_ts":
	case ix.kind == "hashed":
		x.lookByFilter(name, c, "{k: {$in: [0, 1, 2, 3, 4, null]}}", hint)
	case ix.kind == "wildcard":
		x.lookByFilter(name, c, "{k: {$exists: true}}", hint)
		x.lookByFilter(name, c, "{a: 2}", hint)
	case ix.partial != nil:
		x.lookByFilter(name, c, ix.partial.Source.Text(), hint)
	case ix.sparse:
		x.lookByFilter(name, c, fmt.Sprintf("{%q: {$exists: true}}", ix.fields[0]), hint)
	default:
		x.lookByFilter(name, c, "{}", hint)
		x.lookSorted(name, c, ix)
		x.lookCovered(name, c, ix)
		n := x.ask(bson.MustDoc(fmt.Sprintf("{count: %q, query: {}, hint: %s}", name, hint))).Lookup("n").TruncInt64()
		if seen := int64(len(x.truth.seen(c, bson.EmptyDoc))); n != seen {
			failf("count of %s by index %s is %d, not %d", name, ix.name, n, seen)
		}
	}
}

func (x *trial) lookByFilter(name string, c *truthColl, filter, hint string) {
	find := fmt.Sprintf("{find: %q, filter: %s", name, filter)
	if hint != "" {
		find += ", hint: " + hint
	}
	if len(c.docs) > crowd && x.ways.IntN(5) > 0 {
		return
	}
	docs := x.all(bson.MustDoc(find + "}"))
	x.same(find, shown(docs), c, filter)
}

func shown(docs []bson.Doc) []string {
	out := make([]string, len(docs))
	for i, doc := range docs {
		out[i] = canonical(doc)
	}
	return out
}

// same compares what came with what can be seen.
func (x *trial) same(what string, got []string, c *truthColl, filter string) {
	var want []string
	for _, d := range x.truth.seen(c, bson.MustDoc(filter)) {
		want = append(want, d.text)
	}
	equal(what, got, want)
}

func equal(what string, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return
	}
	missing, more := without(want, got), without(got, want)
	failf("%s\nhas %d, not %d; missing:\n  %s\nand too many:\n  %s", what, len(got), len(want), strings.Join(missing[:min(5, len(missing))], "\n  "), strings.Join(more[:min(5, len(more))], "\n  "))
}

// without is what of a is not in b.
func without(a, b []string) (out []string) {
	left := map[string]int{}
	for _, s := range b {
		left[s]++
	}
	for _, s := range a {
		if left[s]--; left[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

func (x *trial) lookByID(name string, c *truthColl) {
	for n := range 6 {
		id := fmt.Sprint(x.ways.IntN(45))
		if len(c.docs) > 0 && n%2 == 0 {
			id = c.docs[x.ways.IntN(len(c.docs))].id().Text()
		}
		x.lookByFilter(name, c, "{_id: "+id+"}", "")
	}
}

// lookSorted looks whether an index gives the order that it has, and everything in it.
func (x *trial) lookSorted(name string, c *truthColl, ix *truthIndex) {
	if len(c.docs) > crowd && x.ways.IntN(5) > 0 {
		return
	}
	key := ix.spec.Lookup("key").Doc()
	find := bson.Build().String("find", name).Document("sort", key).String("hint", ix.name).Doc()
	docs := x.all(find)
	x.same(find.Text(), shown(docs), c, "{}")
	down := key.Lookup(ix.fields[0]).AsDouble() < 0
	for i := 1; i < len(docs); i++ {
		before, after := docs[i-1].Lookup(ix.fields[0]), docs[i].Lookup(ix.fields[0])
		if before.Type != bson.TypeDate || after.Type != bson.TypeDate {
			continue // arrays sort by one of theirs
		}
		if order := bson.Compare(before, after); order > 0 && !down || order < 0 && down {
			failf("%s\nshows %s before %s", find.Text(), before.Text(), after.Text())
		}
	}
}

// lookCovered looks at the values of k by an index on it alone, without documents.
func (x *trial) lookCovered(name string, c *truthColl, ix *truthIndex) {
	if len(ix.fields) != 1 || ix.fields[0] != "k" {
		return
	}
	find := bson.MustDoc(fmt.Sprintf("{find: %q, filter: {k: {$gte: 0}}, projection: {_id: 0, k: 1}, hint: %q}", name, ix.name))
	var want []string
	for _, d := range x.truth.seen(c, bson.MustDoc("{k: {$gte: 0}}")) {
		want = append(want, canonical(bson.Build().Value("k", d.doc.Lookup("k")).Doc()))
	}
	equal(find.Text(), shown(x.all(find)), want)
}

func (x *trial) lookAtCounts(name string, c *truthColl) {
	seen := x.truth.seen(c, bson.EmptyDoc)
	x.met[metHidden] += len(c.docs) - len(seen)
	if n := x.ask(bson.Build().String("count", name).Doc()).Lookup("n").TruncInt64(); n != int64(len(seen)) {
		failf("count of %s is %d, not %d", name, n, len(seen))
	}
	k := x.ways.IntN(5)
	filter := fmt.Sprintf("{k: %d}", k)
	of := int64(len(x.truth.seen(c, bson.MustDoc(filter))))
	if n := x.ask(bson.MustDoc(fmt.Sprintf("{count: %q, query: %s}", name, filter))).Lookup("n").TruncInt64(); n != of {
		failf("count of %s with %s is %d, not %d", name, filter, n, of)
	}
	group := fmt.Sprintf("{aggregate: %q, pipeline: [{$group: {_id: '$k', n: {$sum: 1}}}], cursor: {batchSize: 1000}}", name)
	counts := map[string]int64{}
	for _, d := range seen {
		counts[orNull(d.doc.Lookup("k"))]++
	}
	got := map[string]int64{}
	for it := x.ask(bson.MustDoc(group)).Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		got[orNull(it.Value().Doc().Lookup("_id"))] = it.Value().Doc().Lookup("n").TruncInt64()
	}
	if !maps.Equal(got, counts) {
		failf("%s\nhas %v, not %v", group, got, counts)
	}
	x.lookAtDistinct(name, seen)
}

func orNull(v bson.Value) string {
	if v.IsMissing() {
		return "null"
	}
	return v.Text()
}

func (x *trial) lookAtDistinct(name string, seen []*truthDoc) {
	var got, want []string
	for it := x.ask(bson.MustDoc(fmt.Sprintf("{distinct: %q, key: 'k'}", name))).Lookup("values").Doc().Iter(); it.Next(); {
		got = append(got, it.Value().Text())
	}
	for _, d := range seen {
		if v := d.doc.Lookup("k"); !v.IsMissing() && !slices.Contains(want, v.Text()) {
			want = append(want, v.Text())
		}
	}
	equal("distinct k of "+name, got, want)
}

func (x *trial) validate() {
	for name := range x.truth.colls {
		reply := x.ask(bson.MustDoc(fmt.Sprintf("{validate: %q, full: true}", name)))
		if !reply.Lookup("valid").Truthy() {
			failf("validate %s: %s", name, reply.Text())
		}
	}
}
