package query

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/collation"
	"github.com/ebbdb/ebb/internal/expr"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/sortpattern"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/indexddl"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
)

// tryFor makes the tests longer: go test ./internal/query -run RandomPlans -timeout 0 -args -for 1h
var (
	tryFor  = flag.Duration("for", 0, "for how long to try random queries")
	trySeed = flag.Uint64("seed", 0, "the first seed of random queries, 0 for any")
)

const (
	fewestWorlds    = 80
	fewestPlaces    = 30 // worlds of places, which take longer
	queriesPerWorld = 40
	testTime        = int64(1_700_000_000_000)
)

// TestRandomPlans tries random queries on random documents with random indexes: whatever the plan, the one chosen or one
// that is forced by a hint, the answer is what looking at all documents gives, in the order that the sort demands.
func TestRandomPlans(t *testing.T) { tryWorlds(t, world{}, (*tried).try) }

// tryWorlds calls try many times on each of many collections; it says whether there was an answer.
func tryWorlds(t *testing.T, w world, try func(*tried) bool) {
	seed := *trySeed
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	started := clock.Wall().Now()
	worlds, queries := uint64(0), 0
	for ; worlds < fewestWorlds || clock.Since(clock.Wall(), started) < *tryFor; worlds++ {
		queries += tryWorld(t, seed+worlds, w, try)
		if t.Failed() {
			break
		}
	}
	t.Logf("seed %d: %d worlds, %d queries with an answer", seed, worlds, queries)
	if queries < int(worlds)*queriesPerWorld/2 {
		t.Errorf("only %d queries have an answer: the generator is of no use", queries)
	}
}

// tried is a collection under test.
type tried struct {
	t      *testing.T
	world  world
	engine *Engine
	sweeps *sweeper.Sweeper
	ns     namespace.NS
	seed   uint64
	coll   *catalog.Collection
	log    strings.Builder
	// cacheBytes are added to the engine's cache.
	cacheBytes int64
}

func tryWorld(t *testing.T, seed uint64, w world, try func(*tried) bool) (answered int) {
	w.r = rand.New(rand.NewPCG(seed, 7))
	w.deep = w.chance(40)
	x := &tried{t: t, world: w, ns: namespace.NS{DB: "test", Coll: "c"}, seed: seed}
	defer x.open()()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("seed %d: %v\n%s", seed, p, x.log.String())
			panic(p)
		}
	}()
	x.populate()
	for range queriesPerWorld {
		if t.Failed() {
			break
		}
		if try(x) {
			answered++
		}
	}
	return answered
}

func (x *tried) open() (closed func()) {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1<<20 + x.cacheBytes, MemTableBytes: 1 << 20})
	x.must(err)
	return x.openOver(engine)
}

func (x *tried) openOver(engine kv.Engine) (closed func()) {
	filters := match.NewParser()
	store, ddl, err := indexddl.Open(context.Background(), engine, storage.Options{Clock: clock.NewFake(time.UnixMilli(testTime)), Indexes: index.NewParser(filters),
		HideExpired: func() bool { return false }})
	x.must(err)
	x.engine, x.sweeps = New(store, ddl, filters), ddl.Sweeper
	return func() { x.must(errors.Join(store.Close(), engine.Close())) }
}

func (x *tried) must(err error) {
	if err != nil {
		x.t.Helper()
		x.t.Fatalf("seed %d: %v\n%s", x.seed, err, x.log.String())
	}
}

func (x *tried) call() *Call { return &Call{Now: testTime, Durability: kv.Buffered} }

// populate makes the collection with some indexes before its documents and some behind.
func (x *tried) populate() {
	options := "{}"
	switch {
	case x.world.chance(15):
		options = "{collation: {locale: 'en', strength: 2}}"
	case x.world.chance(15):
		options = "{clusteredIndex: {v: 2, key: {_id: 1}, name: 'cl', unique: true}}"
	}
	fmt.Fprintf(&x.log, "create %s\n", options)
	_, err := x.engine.Store.CreateCollection(context.Background(), x.ns, bson.MustDoc(options))
	x.must(err)
	n := x.world.r.IntN(5)
	early := x.world.r.IntN(n + 1)
	if x.world.deep && x.world.chance(70) {
		early = n // documents that an index cannot take are left out, not the index
	}
	for i := range early {
		x.index(i)
	}
	flat := x.world.chance(40)
	for i := range 1 + x.world.r.IntN(60) {
		id := fmt.Sprint(i)
		if x.world.chance(10) {
			id = x.world.pick("'a'", "'B'", "NaN", "null", "{x: 1}", date(0), "1.5", "NumberLong(\"7\")")
		}
		doc := x.world.document(id, flat)
		_, refused, err := x.engine.Insert(context.Background(), x.ns, []bson.Doc{bson.MustDoc(doc)}, true, x.call())
		x.must(err)
		if len(refused) == 0 {
			fmt.Fprintf(&x.log, "%s\n", doc)
		}
	}
	for i := early; i < n; i++ {
		x.index(i)
	}
	x.coll = x.engine.Store.Catalog().Collection(x.ns)
}

func (x *tried) index(i int) {
	x.indexOf(x.world.index(fmt.Sprintf("x%d", i)))
}

func (x *tried) indexOf(spec string) {
	_, err := x.engine.DDL.CreateIndexes(context.Background(), x.ns, func(c *catalog.Collection) ([]*index.Definition, error) {
		d, err := x.engine.Indexes().Parse(bson.MustDoc(spec), c.Options.Collation)
		return []*index.Definition{d}, err
	})
	if err == nil {
		fmt.Fprintf(&x.log, "index %s\n", spec)
	} else if mongoerr.From(err).Code == mongoerr.InternalError {
		x.must(err)
	}
}

// asked is one query with what looking at all documents answers.
type asked struct {
	Find
	text      string
	collation *collation.Collation
	collated  bool

	// shown are the answers as the projection leaves them, in the order of the sort; those with the same number in group may
	// change places.
	shown []string
	group []int
}

func (x *tried) try() bool {
	q := x.ask()
	if !x.answer(q) {
		return false
	}
	for range 3 { // by a race, by another that confirms it, and by the plan that is remembered
		x.check(q, bson.Missing, false)
	}
	x.check(q, natural(), false)
	for _, d := range x.coll.Indexes {
		partly := d.Sparse || d.PartialFilter != nil
		x.check(q, bson.String(d.Name), partly)
	}
	if x.coll.IsClustered() {
		x.check(q, bson.String("cl"), false)
	}
	return true
}

func natural() bson.Value { return bson.MustDoc("{$natural: 1}").Value() }

func (x *tried) ask() *asked {
	w := x.world
	q := &asked{Find: Find{NS: x.ns}}
	say := func(name, text string) bson.Doc {
		q.text += name + ": " + text + ", "
		return bson.MustDoc(text)
	}
	q.Filter = say("filter", w.filter(2))
	if w.chance(50) {
		q.Sort = say("sort", w.sort())
	}
	if w.chance(50) {
		q.Projection = say("projection", w.projection())
	}
	if w.chance(20) {
		q.Skip = int64(w.r.IntN(5))
	}
	if w.chance(30) {
		q.Limit = int64(1 + w.r.IntN(8))
	}
	q.text += fmt.Sprintf("skip: %d, limit: %d", q.Skip, q.Limit)
	if w.chance(25) {
		text := w.collation()
		q.text += ", collation: " + text
		c, err := collation.Parse(bson.MustDoc(text))
		x.must(err)
		q.collation, q.collated = c, true
	}
	return q
}

// run gives the answers of f, let go of the store now and then as a cursor that waits for its client does.
func (x *tried) run(f Find, q *asked) (docs []bson.Doc, err error) {
	call := x.call()
	call.Collation, call.Collated = q.collation, q.collated
	ctx := context.Background()
	r, err := x.engine.Find(ctx, f, call)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		doc, err := r.Next(ctx)
		if doc == nil || err != nil {
			return docs, err
		}
		docs = append(docs, doc.Clone())
		if x.world.chance(10) {
			r.Park()
		}
	}
}

// answer fills in what is right; false when the query is refused whatever its plan.
func (x *tried) answer(q *asked) bool {
	plain := Find{NS: q.NS, Hint: natural()}
	all, err := x.run(plain, q)
	x.must(err)
	plain.Projection = q.Projection
	allShown, err := x.run(plain, q)
	if err != nil {
		return false
	}
	filter, env, err := x.filter(q)
	if err != nil {
		return false
	}
	var whole, shown []bson.Doc
	for i, d := range all {
		matches, err := filter.Match(env, d)
		if err != nil {
			return false
		}
		if matches {
			whole, shown = append(whole, d), append(shown, allShown[i])
		}
	}
	order, groups, ok := x.order(q, whole)
	if !ok {
		return false
	}
	for i, at := range order {
		q.shown = append(q.shown, canonical(shown[at]))
		q.group = append(q.group, groups[i])
	}
	return true
}

// filter is q's, for documents that no plan has found.
func (x *tried) filter(q *asked) (*match.Filter, *expr.Env, error) {
	call := x.call()
	call.Collation, call.Collated = q.collation, q.collated
	lang, err := x.engine.language(context.Background(), call, x.coll)
	x.must(err)
	filter, err := lang.filter(x.engine, q.Filter)
	return filter, lang.env, err
}

// order sorts docs as the query asks: their positions, and a number that is the same for those whose keys are equal.
func (x *tried) order(q *asked, docs []bson.Doc) (order, groups []int, ok bool) {
	keys := make([][]bson.Value, len(docs))
	for i := range docs {
		order = append(order, i)
	}
	groups = make([]int, len(docs))
	if q.Sort.IsEmpty() {
		return order, groups, true
	}
	pattern, err := sortpattern.Parse(q.Sort)
	if err != nil {
		return nil, nil, false
	}
	collator := x.collator(q)
	for i, d := range docs {
		if keys[i], err = pattern.Key(nil, d, nil, collator, nil); err != nil {
			return nil, nil, false
		}
	}
	compare := func(a, b int) int { return pattern.Compare(keys[a], keys[b], collator) }
	slices.SortStableFunc(order, compare)
	for i := 1; i < len(order); i++ {
		groups[i] = groups[i-1]
		if compare(order[i-1], order[i]) != 0 {
			groups[i]++
		}
	}
	return order, groups, true
}

func (x *tried) collator(q *asked) bson.Collator {
	c := q.collation
	if !q.collated && x.coll.Options.Collation != nil {
		c, _ = collation.Parse(x.coll.Options.Collation)
	}
	if c == nil {
		return nil
	}
	return c
}

// canonical is a document whose fields are in order: an answer out of an index has them as the index has.
func canonical(d bson.Doc) string {
	var fields []string
	for it := d.Iter(); it.Next(); {
		v := it.Value()
		text := v.Text()
		if v.Type == bson.TypeObject {
			text = canonical(v.Doc())
		}
		fields = append(fields, fmt.Sprintf("%s: %d %s", it.Key(), v.Type, text))
	}
	slices.Sort(fields)
	return "{" + strings.Join(fields, ", ") + "}"
}

// check runs q with the hint. An index that lacks documents may answer with a part when it is forced.
func (x *tried) check(q *asked, hint bson.Value, partly bool) {
	f := q.Find
	f.Hint = hint
	if partly {
		f.Skip, f.Limit = 0, 0
	}
	got, err := x.run(f, q)
	if err != nil {
		if !hint.IsMissing() && acceptable(err) {
			return
		}
		x.fail(q, hint, fmt.Sprintf("fails: %v", err))
		return
	}
	if why := q.compare(got, f.Skip, f.Limit, partly); why != "" {
		x.fail(q, hint, why)
	}
}

// acceptable says whether err is one that a hint may meet.
func acceptable(err error) bool {
	switch mongoerr.From(err).Code {
	case mongoerr.NoQueryExecutionPlans, mongoerr.BadValue:
		return true
	}
	return false
}

// compare says what is wrong with the answers got, "" when nothing is.
func (q *asked) compare(got []bson.Doc, skip, limit int64, partly bool) string {
	from := min(int(skip), len(q.shown))
	to := len(q.shown)
	if limit > 0 {
		to = min(to, from+int(limit))
	}
	if !partly && len(got) != to-from {
		return fmt.Sprintf("%d documents, not %d: %s", len(got), to-from, texts(got))
	}
	if partly {
		return q.comparePart(got)
	}
	left := map[string]int{}
	for i, s := range q.shown {
		left[fmt.Sprint(q.group[i], s)]++
	}
	for i, d := range got {
		key := fmt.Sprint(q.group[from+i], canonical(d))
		if left[key]--; left[key] < 0 {
			return fmt.Sprintf("%s should not be there: %s", d, texts(got))
		}
	}
	return ""
}

// comparePart looks whether got are some of the answers, in an order that the sort allows.
func (q *asked) comparePart(got []bson.Doc) string {
	at := 0
	taken := make([]bool, len(q.shown))
next:
	for _, d := range got {
		key := canonical(d)
		for i := at; i < len(q.shown); i++ {
			if !taken[i] && q.shown[i] == key {
				taken[i] = true
				for at < i && q.group[at] != q.group[i] {
					at++
				}
				continue next
			}
		}
		return fmt.Sprintf("%s should not be there: %s", d, texts(got))
	}
	return ""
}

func texts(docs []bson.Doc) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("\n  " + d.String())
	}
	return b.String()
}

func (x *tried) fail(q *asked, hint bson.Value, why string) {
	name := "the plan of its choice"
	if !hint.IsMissing() {
		name = "hint " + hint.Text()
	}
	x.t.Errorf("seed %d: {%s}\nwith %s: %s\nbut it is\n  %s\nin\n%s", x.seed, q.text, name, why, strings.Join(q.shown, "\n  "), x.log.String())
}
