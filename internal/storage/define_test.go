package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/crashdisk"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

var madeNS = namespace.NS{DB: "made", Coll: "c"}

// define makes a collection with indexes in a transaction.
func (f *fixture) define(t *Txn, ns namespace.NS, specs ...string) {
	f.t.Helper()
	_, err := t.CreateCollection(context.Background(), ns, nil)
	f.must(err)
	for _, spec := range specs {
		made, err := f.DefineIndexes(context.Background(), t, ns, f.parse(spec))
		f.must(err)
		if made.After != made.Before+1 {
			f.t.Errorf("%s: %d indexes before, %d after", spec, made.Before, made.After)
		}
	}
}

func wantCode(t *testing.T, err error, want mongoerr.Code) {
	t.Helper()
	if !mongoerr.Is(err, want) {
		t.Errorf("got %v, want code %d", err, want)
	}
}

// TestTransactionDefines: what a transaction makes is its own until it commits, and then everybody's: as it would be had it been made
// outside.
func TestTransactionDefines(t *testing.T) {
	for _, specs := range [][]string{
		{`{key: {a: 1}, name: "a"}`, `{key: {u: 1}, name: "u", unique: true, sparse: true}`},
		{`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1000}`, `{key: {a: 1}, name: "a"}`},
		{`{key: {d: 1}, name: "d", expireAfterSeconds: 1000}`, `{key: {"$**": 1}, name: "wild"}`},
	} {
		t.Run(specs[0], func(t *testing.T) {
			f := newFixture(t)
			f.must(f.insert(testNS, "{_id: 1}"))
			txn := f.beginTransaction()
			f.define(txn, madeNS, specs...)
			f.must(txn.set(madeNS, "{_id: 1, a: [1, {b: 2}], u: 1}", "{_id: 2, a: 2, d: new Date(1e12)}"))
			f.must(txn.set(testNS, "{_id: 2}"))
			f.must(txn.set(madeNS, "{_id: 2, a: 3, d: new Date(1000000005000)}", "{_id: 3}"))
			if got := seen(t, txn.Statement(context.Background()), madeNS); strings.Count(got, "_id") != 3 {
				t.Error("it sees", got)
			}
			f.wantSeen(madeNS, "no collection")
			if f.Store.Catalog().HasDatabase("made") {
				t.Error("others see the database")
			}
			f.must(txn.Commit(context.Background(), kv.Buffered))
			ids := strings.Fields(f.ids(madeNS))
			if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2", "3"}) {
				t.Error("others see", ids)
			}
			f.wantSeen(testNS, "{ _id: 1 } { _id: 2 }")
			for round := range int32(3) {
				if round > 0 {
					f.reopen()
				}
				f.must(f.insert(madeNS, fmt.Sprintf("{_id: %d, a: 7}", 10+round), fmt.Sprintf("{_id: %d}", 20+round)))
				wantCode(t, f.insert(madeNS, "{_id: 2}"), mongoerr.DuplicateKey)
				f.validate(madeNS)
				f.validate(testNS)
			}
			f.clock.Advance(time.Hour)
			if c := f.Store.current.Load().collections[f.collection(madeNS)]; c.rules.Any() {
				for i := range c.rules.All() {
					f.expire(madeNS, &c.rules.All()[i])
				}
				f.validate(madeNS)
			}
			c := f.Store.Catalog().Collection(madeNS)
			if len(c.Indexes) != 1+len(specs) {
				t.Errorf("it has the indexes %v", c.Indexes)
			}
		})
	}
}

// TestTransactionDefinesUnique: a unique index holds inside of the transaction that makes it.
func TestTransactionDefinesUnique(t *testing.T) {
	f := newFixture(t)
	txn := f.beginTransaction()
	f.define(txn, madeNS, `{key: {u: 1}, name: "u", unique: true}`)
	f.must(txn.set(madeNS, "{_id: 1, u: 1}"))
	wantCode(t, txn.set(madeNS, "{_id: 2, u: 1}"), mongoerr.DuplicateKey)
}

// TestTransactionDefinesOnlyItsOwn: indexes are for empty collections that the transaction has made; those that are there are as good.
func TestTransactionDefinesOnlyItsOwn(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.createIndexes(testNS, `{key: {a: 1}, name: "a"}`)
	txn := f.beginTransaction()
	made, err := f.DefineIndexes(ctx, txn, testNS, f.parse(`{key: {a: 1}, name: "a"}`))
	f.must(err)
	if made.Before != 2 || made.After != 2 || made.Collection {
		t.Errorf("made %+v", made)
	}
	_, err = f.DefineIndexes(ctx, txn, testNS, f.parse(`{key: {b: 1}, name: "b"}`))
	wantCode(t, err, mongoerr.OperationNotSupportedInTransaction)
	made, err = f.DefineIndexes(ctx, txn, madeNS, f.parse(`{key: {b: 1}, name: "b"}`))
	f.must(err)
	if made.Before != 1 || made.After != 2 || !made.Collection {
		t.Errorf("made %+v", made)
	}
	f.must(txn.set(madeNS, "{_id: 1, b: 1}"))
	_, err = f.DefineIndexes(ctx, txn, madeNS, f.parse(`{key: {c: 1}, name: "c"}`))
	wantCode(t, err, mongoerr.OperationNotSupportedInTransaction)
	f.must(txn.Write(ctx, madeNS, WriteOptions{}, func(w *Writer) error { // and it is empty again
		rec, _, err := w.GetByID(bson.Int32(1))
		if err != nil {
			return err
		}
		return w.Delete(rec.Clone())
	}))
	_, err = f.DefineIndexes(ctx, txn, madeNS, f.parse(`{key: {_ts: 1}, name: "ts", expireAfterSeconds: 10}`))
	f.must(err)
	f.must(txn.set(madeNS, "{_id: 1, b: 2}", "{_id: 2}"))
	_, err = txn.CreateCollection(ctx, testNS, nil)
	wantCode(t, err, mongoerr.NamespaceExists)
	f.must(txn.Commit(ctx, kv.Buffered))
	f.wantSeen(madeNS, "{ _id: 1, b: 2 } { _id: 2 }")
	f.validate(madeNS)
}

// kept are the keys of a store but those that every commit changes, and the next numbers.
func (f *fixture) kept() []string {
	return slices.DeleteFunc(keysOf(f.t, f.engine), func(line string) bool {
		return strings.HasPrefix(line, fmt.Sprintf("%q = ", layout.NextKey())) || strings.HasPrefix(line, fmt.Sprintf("%q = ", CommitKey()))
	})
}

// TestTransactionDefinesNothing: nothing is left of what was made when the transaction is rolled back, not even a key.
func TestTransactionDefinesNothing(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	before := f.kept()
	txn := f.beginTransaction()
	f.define(txn, madeNS, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1000}`, `{key: {a: 1}, name: "a"}`)
	f.must(txn.set(madeNS, "{_id: 1, a: [1]}"))
	f.must(txn.set(testNS, "{_id: 2}"))
	f.must(txn.set(namespace.NS{DB: "made", Coll: "implied"}, "{_id: 1}"))
	txn.Rollback()
	differ(t, "after the rollback", f.kept(), before)
	f.wantSeen(madeNS, "no collection")
	f.must(f.insert(madeNS, "{_id: 1}"))
	f.reopen()
	f.wantSeen(madeNS, "{ _id: 1 }")
}

// TestTransactionNames: of two that make a collection of one name the first to commit has it.
func TestTransactionNames(t *testing.T) {
	ctx := context.Background()
	for name, take := range map[string]func(f *fixture) error{
		"create": func(f *fixture) error { _, err := f.CreateCollection(ctx, madeNS, nil); return err },
		"insert": func(f *fixture) error { return f.insert(madeNS, "{_id: 9}") },
		"view": func(f *fixture) error {
			_, err := f.CreateCollection(ctx, madeNS, bson.MustDoc("{viewOn: 'x', pipeline: []}"))
			return err
		},
		"rename": func(f *fixture) error {
			return errors.Join(f.insert(testNS, "{_id: 9}"), f.Rename(ctx, testNS, madeNS, false))
		},
		"other case": func(f *fixture) error { return f.insert(namespace.NS{DB: "MADE", Coll: "c"}, "{_id: 9}") },
		"transaction": func(f *fixture) error {
			other := f.beginTransaction()
			return errors.Join(other.set(madeNS, "{_id: 9}"), other.Commit(ctx, kv.Buffered))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			txn, late := f.beginTransaction(), f.beginTransaction()
			f.must(txn.set(madeNS, "{_id: 1}"))
			f.must(txn.set(namespace.NS{DB: "made", Coll: "beside"}, "{_id: 1}"))
			f.must(take(f))
			want := fmt.Sprint(entriesOf(f.Store.Catalog()))
			wantCode(t, txn.Commit(ctx, kv.Buffered), mongoerr.WriteConflict)
			f.must(late.set(madeNS, "{_id: 2}")) // which does not see what has come in between
			wantCode(t, late.Commit(ctx, kv.Buffered), mongoerr.WriteConflict)
			if got := fmt.Sprint(entriesOf(f.Store.Catalog())); got != want {
				t.Errorf("the catalogue is %s, and was %s", got, want)
			}
			f.reopen()
		})
	}
	f := newFixture(t)
	first, second := f.beginTransaction(), f.beginTransaction()
	f.must(first.set(madeNS, "{_id: 1}"))
	f.must(second.set(madeNS, "{_id: 2}"))
	first.Rollback()
	f.must(second.Commit(ctx, kv.Buffered))
	f.wantSeen(madeNS, "{ _id: 2 }")
}

// TestTransactionIsSeenAtOnce: nobody sees the documents of a commit without the collections that it makes.
func TestTransactionIsSeenAtOnce(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.must(f.insert(testNS, "{_id: -1}"))
	const commits = 200
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				v, err := f.View(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				r, _ := v.Collection(testNS)
				n, err := r.Count()
				if made := len(v.Catalog().Collections("made")); err != nil || n != int64(made+1) {
					t.Errorf("%d documents, and %d collections: %v", n-1, made, err)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range commits {
		txn := f.beginTransaction()
		f.must(txn.set(namespace.NS{DB: "made", Coll: fmt.Sprint("c", i)}, "{_id: 1}"))
		f.must(txn.set(testNS, fmt.Sprintf("{_id: %d}", i)))
		f.must(txn.Commit(ctx, kv.Buffered))
	}
	close(done)
	readers.Wait()
}

// TestTransactionDefinesInOplog: what is made stands in the transaction's entry, each where it was made.
func TestTransactionDefinesInOplog(t *testing.T) {
	f := logged(t)
	txn := f.beginTransaction()
	f.define(txn, madeNS, `{key: {a: 1}, name: "a"}`)
	f.must(txn.set(madeNS, "{_id: 1}"))
	f.must(txn.set(namespace.NS{DB: "made", Coll: "d"}, "{_id: 2}"))
	f.must(txn.Commit(context.Background(), kv.Buffered))
	docs, _ := f.entries()
	got := entryUUIDs.ReplaceAllString(docs[len(docs)-1].Lookup("o").String(), "")
	want := `{ applyOps: [ { op: "c", ns: "made.$cmd", o: { create: "c", idIndex: { v: 2, key: { _id: 1 }, name: "_id_" } } }, ` +
		`{ op: "c", ns: "made.$cmd", o: { createIndexes: "c", v: 2, key: { a: 1 }, name: "a" } }, ` +
		`{ op: "i", ns: "made.c", o: { _id: 1 }, o2: { _id: 1 } }, ` +
		`{ op: "c", ns: "made.$cmd", o: { create: "d", idIndex: { v: 2, key: { _id: 1 }, name: "_id_" } } }, ` +
		`{ op: "i", ns: "made.d", o: { _id: 2 }, o2: { _id: 2 } } ] }`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestTransactionDefinesAndCrash: after a crash all of a transaction is there, or nothing: whatever of the log was not synced.
func TestTransactionDefinesAndCrash(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test ./internal/storage -run TestTransactionDefinesAndCrash -seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		fs := crashdisk.New()
		engine := openCrashable(t, fs)
		f := &fixture{t: t, clock: clock.NewFake(epoch), parser: indexParser(), engine: engine}
		f.options = Options{Clock: f.clock, Indexes: f.parser}
		must(t, f.openOn(engine, f.options))
		f.must(f.insert(testNS, "{_id: 0}"))
		const transactions = 5
		for i := range transactions {
			txn := f.beginTransaction()
			f.define(txn, namespace.NS{DB: "made", Coll: fmt.Sprint("c", i)}, `{key: {_ts: 1}, name: "ts", expireAfterSeconds: 1000}`, `{key: {a: 1}, name: "a"}`)
			f.must(txn.set(namespace.NS{DB: "made", Coll: fmt.Sprint("c", i)}, "{_id: 1, a: [1]}", "{_id: 2, a: 2}"))
			f.must(txn.set(testNS, fmt.Sprintf("{_id: %d}", i+1)))
			if i < transactions-1 {
				f.must(txn.Commit(context.Background(), kv.Buffered))
			} // the last is open
		}
		disk := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: rand.New(rand.NewPCG(random.Uint64(), 3))})
		g := &fixture{t: t, clock: f.clock, parser: f.parser, engine: openCrashable(t, disk), options: f.options}
		must(t, g.openOn(g.engine, g.options))
		there := strings.Count(g.ids(testNS), " ")
		made := g.Store.Catalog().Collections("made")
		if len(made) != max(there, 0) {
			t.Errorf("there are the documents %s and %d collections", g.ids(testNS), len(made))
		}
		for _, c := range made {
			g.validate(c.NS)
			g.must(g.insert(c.NS, "{_id: 3}"))
			if got := g.ids(c.NS); got != "1 2 3" {
				t.Errorf("%s has %s", c.NS, got)
			}
			g.validate(c.NS)
		}
		g.must(g.insert(madeNS, "{_id: 1}"))
		g.validate(madeNS)
		must(t, errors.Join(g.Store.Close(), g.engine.Close()))
	}
}
