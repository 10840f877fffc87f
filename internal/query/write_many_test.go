package query

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/match"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// manyDocs is more than two batches of a multi-update.
const manyDocs = 2*maxBatchDocs + 300

// multiWrites are ways to find all documents of a collection while each change puts them where they are found again: a is
// raised by more than any had, d by more than all were apart, and documents get another element in l.
var multiWrites = []struct{ name, options, indexes, filter, hint string }{
	{"the index that changes", "{}", "[{v: 2, key: {a: 1}, name: 'a'}]", "{a: {$gte: 0}}", "'a'"},
	{"the index that changes, downwards", "{}", "[{v: 2, key: {a: -1}, name: 'a'}]", "{a: {$gte: 0}}", "'a'"},
	{"several ranges", "{}", "[{v: 2, key: {a: 1}, name: 'a'}]", "{$or: [{a: {$lt: 500}}, {a: {$gte: 500}}]}", "'a'"},
	{"two indexes", "{}", "[{v: 2, key: {a: 1}, name: 'a'}, {v: 2, key: {b: 1}, name: 'b'}]", "{$or: [{a: {$gte: 0}}, {b: {$gte: 0}}]}", "null"},
	{"a race", "{}", "[{v: 2, key: {a: 1}, name: 'a'}, {v: 2, key: {b: 1}, name: 'b'}]", "{a: {$gte: 0}, b: {$gte: 0}}", "null"},
	{"an index of arrays", "{}", "[{v: 2, key: {l: 1}, name: 'l'}]", "{l: {$gte: 0}}", "'l'"},
	{"a text index", "{}", "[{v: 2, key: {t: 'text'}, name: 't'}]", "{$text: {$search: 'one two'}}", "null"},
	{"all records", "{}", "[]", "{}", "{$natural: 1}"},
	{"all records, backwards", "{}", "[]", "{}", "{$natural: -1}"},
	{"records that move", "{}", "[{v: 2, key: {d: 1}, name: 'd', expireAfterSeconds: 1000000}]", "{}", "{$natural: 1}"},
	{"records that move, backwards", "{}", "[{v: 2, key: {d: 1}, name: 'd', expireAfterSeconds: 1000000}]", "{}", "{$natural: -1}"},
	{"records that move by _ts", "{}", "[{v: 2, key: {_ts: 1}, name: 'ts', expireAfterSeconds: 100}]", "{}", "{$natural: 1}"},
	{"the TTL index", "{}", "[{v: 2, key: {d: 1}, name: 'd', expireAfterSeconds: 1000000}]", "{d: {$gte: Date(0)}}", "'d'"},
	{"an index beside moving records", "{}", "[{v: 2, key: {_ts: 1}, name: 'ts', expireAfterSeconds: 100}, {v: 2, key: {a: 1}, name: 'a'}]", "{a: {$gte: 0}}", "'a'"},
	{"a clustered collection", "{clusteredIndex: {v: 2, key: {_id: 1}, name: 'cl', unique: true}}", "[{v: 2, key: {a: 1}, name: 'a'}]", "{a: {$gte: 0}}", "'a'"},
}

// raise is a change by which documents are found again.
const raise = `[{$set: {a: {$add: ['$a', 100000]}, b: {$add: ['$b', 100000]}, n: {$add: ['$n', 1]}, d: {$add: ['$d', 100000]},
	l: {$concatArrays: ['$l', [{$add: ['$n', 5000]}]]}}}]`

// TestMultiWritesMeetEachDocumentOnce: an update of many documents changes each once though it finds them by what it changes,
// and a delete of many counts each once.
func TestMultiWritesMeetEachDocumentOnce(t *testing.T) {
	for _, test := range multiWrites {
		t.Run(test.name, func(t *testing.T) {
			x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
			defer x.open()()
			fillMany(x, test.options, test.indexes)
			ctx, filter, hint := context.Background(), bson.MustDoc(test.filter), bson.MustParse(test.hint)
			call := x.call()
			call.Now += 50_000 // behind all places by _ts that there are
			done, err := x.engine.Update(ctx, Update{NS: x.ns, Filter: filter, Change: bson.MustParse(raise), Hint: hint, Multi: true}, call)
			x.must(err)
			if done.Matched != manyDocs || done.Modified != manyDocs {
				t.Errorf("%d documents found and %d changed of %d", done.Matched, done.Modified, manyDocs)
			}
			x.changedOnce(manyDocs)
			n, _, err := x.engine.Delete(ctx, Delete{NS: x.ns, Filter: filter, Hint: hint, Multi: true}, call)
			x.must(err)
			if left, err := x.engine.Count(ctx, Count{NS: x.ns}, x.call()); n != manyDocs || left != 0 || err != nil {
				t.Errorf("%d documents deleted of %d, and %d left (%v)", n, manyDocs, left, err)
			}
		})
	}
}

func fillMany(x *tried, options, indexes string) {
	x.t.Helper()
	ctx := context.Background()
	_, err := x.engine.Store.CreateCollection(ctx, x.ns, bson.MustDoc(options))
	x.must(err)
	for it := bson.MustParse(indexes).Doc().Iter(); it.Next(); {
		x.indexOf(it.Value().Text())
	}
	docs := make([]bson.Doc, manyDocs)
	for i := range docs {
		docs[i] = bson.MustDoc(fmt.Sprintf("{_id: %d, a: %d, b: %d, n: 0, l: [%d, 4000], d: Date(%d), t: '%s'}", i, i*7%manyDocs, i%5, i%9, testTime+int64(i%100), []string{"one", "two", "one two"}[i%3]))
	}
	_, _, err = x.engine.Insert(ctx, x.ns, docs, true, x.call())
	x.must(err)
}

// changedOnce looks at each document that is there, and at how many.
func (x *tried) changedOnce(want int) {
	x.t.Helper()
	rows, err := x.engine.Find(context.Background(), Find{NS: x.ns}, x.call())
	x.must(err)
	n := 0
	x.must(rows.All(context.Background(), func(d bson.Doc) error {
		if n++; d.Lookup("n").Text() != "1" {
			x.t.Errorf("%s was not changed once", d)
		}
		return nil
	}))
	if n != want {
		x.t.Errorf("%d documents are there, not %d", n, want)
	}
}

// snapshotsKept tells the oldest snapshot that is open.
type snapshotsKept struct {
	kv.Engine
	taken int
	open  map[int]bool
}

func (e *snapshotsKept) Snapshot() (kv.Snapshot, error) {
	s, err := e.Engine.Snapshot()
	if err != nil {
		return nil, err
	}
	e.taken++
	e.open[e.taken] = true
	return &keptSnapshot{s, e, e.taken}, nil
}

type keptSnapshot struct {
	kv.Snapshot
	engine *snapshotsKept
	number int
}

func (s *keptSnapshot) Close() error {
	delete(s.engine.open, s.number)
	return s.Snapshot.Close()
}

// TestMultiWritesLetGoOfSnapshots: no snapshot is held for longer than a batch, so that what others delete can be reclaimed while
// an update of many documents goes on.
func TestMultiWritesLetGoOfSnapshots(t *testing.T) {
	x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
	memory, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	x.must(err)
	engine := &snapshotsKept{Engine: memory, open: map[int]bool{}}
	defer x.openOver(engine)()
	fillMany(x, "{}", "[]")
	seen, batches, before := 0, 0, 0
	many := &writeMany{engine: x.engine, ns: x.ns, call: x.call(), save: func() func() { return func() {} }}
	many.each = func(*storage.Writer, storage.Record, *match.Details) error {
		if seen++; seen%maxBatchDocs != 1 {
			return nil
		}
		for number := range engine.open {
			if batches > 0 && number <= before {
				t.Errorf("batch %d is written while snapshot %d is open, which the one before had", batches, number)
			}
		}
		batches, before = batches+1, engine.taken
		return nil
	}
	_, err = many.run(context.Background(), func(l *language) (*match.Filter, error) { return l.filter(x.engine, nil) })
	x.must(err)
	if batches < 3 || seen != manyDocs {
		t.Errorf("%d documents in %d batches", seen, batches)
	}
}

// TestMultiWritesWithoutRoom: where there is no room to remember more documents, the rest is found in one view, and each is
// given once.
func TestMultiWritesWithoutRoom(t *testing.T) {
	for _, test := range multiWrites {
		t.Run(test.name, func(t *testing.T) {
			x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
			defer x.open()()
			fillMany(x, test.options, test.indexes)
			call := x.call()
			call.Now += 50_000
			u := Update{NS: x.ns, Filter: bson.MustDoc(test.filter), Change: bson.MustParse(raise), Multi: true}
			var p *parsedUpdate
			many := &writeMany{engine: x.engine, ns: x.ns, hint: bson.MustParse(test.hint), call: call, save: func() func() { return func() {} }}
			n := 0
			many.each = func(w *storage.Writer, rec storage.Record, d *match.Details) error {
				if n++; n == maxBatchDocs*3/2 {
					for far := uint64(1) << 40; !many.given.Full(); far += 1 << 20 {
						many.given.AddSequence(far)
					}
				}
				after, _, err := p.change.Apply(nil, rec.Doc, x.engine.updateArgs(p, call, d))
				if err == nil {
					_, _, err = w.UpdateAs(telling(w, p.change), rec, after)
				}
				return err
			}
			found, err := many.run(context.Background(), func(l *language) (_ *match.Filter, err error) {
				if p, err = x.engine.parseUpdate(l, u, call); err != nil {
					return nil, err
				}
				return p.filter, nil
			})
			x.must(err)
			if !found || n != manyDocs || !many.oneView {
				t.Errorf("%d documents changed of %d, in one view at the end: %v", n, manyDocs, many.oneView)
			}
			x.changedOnce(manyDocs)
		})
	}
}

// TestMultiWritesWhileOthersWrite: between the batches of a multi-update others move, change, add and delete documents. Each that
// is there and matches all the time is changed once, also where their records have moved behind the scan.
func TestMultiWritesWhileOthersWrite(t *testing.T) {
	for _, hint := range []string{"{$natural: 1}", "{$natural: -1}", "'b'"} {
		t.Run(hint, func(t *testing.T) {
			x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
			defer x.open()()
			fillMany(x, "{}", "[{v: 2, key: {d: 1}, name: 'd', expireAfterSeconds: 1000000}, {v: 2, key: {b: 1}, name: 'b'}]")
			ctx, call := context.Background(), x.call()
			counts, gone := map[string]int{}, map[string]bool{}
			n, batches := 0, 0
			many := &writeMany{engine: x.engine, ns: x.ns, hint: bson.MustParse(hint), call: call, save: func() func() { return func() {} }}
			disturb := func() {
				set := func(i int, d int64) {
					_, err := x.engine.Update(ctx, Update{NS: x.ns, Filter: bson.MustDoc(fmt.Sprintf("{_id: %d}", i)), Change: bson.MustParse(fmt.Sprintf("{$set: {d: Date(%d)}}", testTime+d))}, x.call())
					x.must(err)
				}
				for i := batches; i < manyDocs; i += 10 {
					set(i, int64(i%3-1)*1_000_000)
				}
				for i := 7 * batches; i < manyDocs; i += 100 {
					gone[fmt.Sprint(i)] = true
					_, _, err := x.engine.Delete(ctx, Delete{NS: x.ns, Filter: bson.MustDoc(fmt.Sprintf("{_id: %d}", i))}, x.call())
					x.must(err)
				}
			}
			many.each = func(w *storage.Writer, rec storage.Record, _ *match.Details) error {
				counts[rec.Doc.Lookup("_id").Text()]++
				if n++; n == 1 || n%maxBatchDocs == 0 {
					batches++
					defer disturb()
				}
				return nil
			}
			_, err := many.run(ctx, func(l *language) (*match.Filter, error) { return l.filter(x.engine, bson.MustDoc("{b: {$gte: 0}}")) })
			x.must(err)
			for i := range manyDocs {
				id := fmt.Sprint(i)
				if c := counts[id]; c > 1 || c == 0 && !gone[id] {
					t.Errorf("document %s was given %d times", id, c)
				}
			}
			if batches < 3 {
				t.Errorf("%d batches", batches)
			}
		})
	}
}

// TestMultiWritesWhoseCollectionGoes: a collection that is dropped between two batches has nothing left to change. Where the index
// goes that leads to the documents, the operation ends with an error, and what was changed before stays.
func TestMultiWritesWhoseCollectionGoes(t *testing.T) {
	for _, test := range []struct {
		name string
		drop func(*tried) error
		want mongoerr.Code
	}{
		{"collection", func(x *tried) error {
			_, err := x.engine.Store.DropCollection(context.Background(), x.ns)
			return err
		}, 0},
		{"index", func(x *tried) error {
			_, err := x.engine.DDL.DropIndexes(context.Background(), x.ns, func(c *catalog.Collection) ([]*index.Definition, error) { return pickNamed(c, "a"), nil })
			return err
		}, mongoerr.QueryPlanKilled},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := &tried{t: t, ns: namespace.NS{DB: "test", Coll: "c"}}
			defer x.open()()
			fillMany(x, "{}", "[{v: 2, key: {a: 1}, name: 'a'}]")
			n, batches := 0, 0
			many := &writeMany{engine: x.engine, ns: x.ns, hint: bson.String("a"), call: x.call(),
				each: func(*storage.Writer, storage.Record, *match.Details) error { n++; return nil }}
			many.save = func() func() {
				if batches++; batches == 2 {
					x.must(test.drop(x))
				}
				return func() {}
			}
			_, err := many.run(context.Background(), func(l *language) (*match.Filter, error) { return l.filter(x.engine, bson.MustDoc("{a: {$gte: 0}}")) })
			if test.want == 0 && err != nil || test.want != 0 && !mongoerr.Is(err, test.want) {
				t.Errorf("it ends with %v", err)
			}
			if batches != 2 || n == 0 || n == manyDocs {
				t.Errorf("%d documents in %d batches", n, batches)
			}
		})
	}
}
