package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
)

// beginTransaction is a transaction of several statements, as of now.
func (f *fixture) beginTransaction() *Txn {
	f.t.Helper()
	t, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now(), History: &history.History{Session: bson.MustDoc("{id: 1}"), Number: 1}, LockTimeout: -1})
	f.must(err)
	f.t.Cleanup(t.Rollback)
	return t
}

// set inserts documents in a transaction, or puts them in the place of those with their _ids.
func (t *Txn) set(ns namespace.NS, docs ...string) error {
	return t.Write(context.Background(), ns, WriteOptions{Create: true}, func(w *Writer) error {
		for _, text := range docs {
			doc := bson.MustDoc(text)
			rec, there, err := w.GetByID(doc.Lookup("_id"))
			switch {
			case err != nil:
				return err
			case there:
				_, _, err = w.Update(rec.Clone(), doc)
			default:
				_, err = w.Insert(doc)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// seen are the documents that a view sees, and how many it counts.
func seen(t *testing.T, v *View, ns namespace.NS) string {
	t.Helper()
	r, ok := v.Collection(ns)
	if !ok {
		return "no collection"
	}
	c, err := r.Scan(RecordScan{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out []string
	for c.Next() {
		out = append(out, c.Record().Doc.String())
	}
	n, err := r.Count()
	if err := errors.Join(err, c.Err()); err != nil {
		t.Fatal(err)
	}
	if n != int64(len(out)) {
		t.Errorf("%d documents are counted of %s", n, out)
	}
	return strings.Join(out, " ")
}

func (f *fixture) wantSeen(ns namespace.NS, want string) {
	f.t.Helper()
	v, err := f.View(context.Background())
	f.must(err)
	defer func() { f.must(v.Close()) }()
	if got := seen(f.t, v, ns); got != want {
		f.t.Errorf("others see %s, want %s", got, want)
	}
}

// TestStatements: a transaction sees what was there when it began and what it writes, in all collections; others see nothing of it before
// it commits, and all of it after.
func TestStatements(t *testing.T) {
	f := newFixture(t)
	a, b := namespace.NS{DB: "db", Coll: "a"}, namespace.NS{DB: "other", Coll: "b"}
	f.must(f.insert(a, "{_id: 1}", "{_id: 2}"))
	txn := f.beginTransaction()
	f.must(f.insert(a, "{_id: 3}")) // after it began
	f.must(txn.set(a, "{_id: 1, x: 1}", "{_id: 4}"))
	f.must(txn.set(b, "{_id: 5}")) // which was not there
	if got := seen(t, txn.Statement(context.Background()), a); got != "{ _id: 1, x: 1 } { _id: 2 } { _id: 4 }" {
		t.Error("it sees", got)
	}
	if got := seen(t, txn.Statement(context.Background()), b); got != "{ _id: 5 }" {
		t.Error("it sees", got)
	}
	f.wantSeen(a, "{ _id: 1 } { _id: 2 } { _id: 3 }")
	f.wantSeen(b, "no collection")
	f.must(txn.Commit(context.Background(), kv.Buffered))
	f.wantSeen(a, "{ _id: 1, x: 1 } { _id: 2 } { _id: 3 } { _id: 4 }")
	f.wantSeen(b, "{ _id: 5 }")
	f.validate(a)
	f.validate(b)
}

// TestStatementConflicts: what somebody else has changed since, or another transaction is about to, is a conflict at once.
func TestStatementConflicts(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(testNS, "{_id: 1}", "{_id: 2}", "{_id: 3}"))
	isConflict := func(err error) {
		t.Helper()
		if !mongoerr.Is(err, mongoerr.WriteConflict) {
			t.Errorf("got %v", err)
		}
	}
	first, second, third := f.beginTransaction(), f.beginTransaction(), f.beginTransaction()
	_, err := f.change(testNS, bson.Int32(1), "{_id: 1, plain: true}")
	f.must(err)
	isConflict(first.set(testNS, "{_id: 1, first: true}"))
	isConflict(first.set(testNS, "{_id: 2}")) // it is good for nothing any more
	first.Rollback()
	f.must(second.set(testNS, "{_id: 2, second: true}", "{_id: 9, second: true}"))
	var conflicts atomic.Int64
	isConflict(third.Write(context.Background(), testNS, WriteOptions{Conflicts: &conflicts}, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 9}"))
		return err
	}))
	if n := conflicts.Load(); n != 1 {
		t.Errorf("%d conflicts", n)
	}
	third.Rollback()
	fourth := f.beginTransaction()
	f.must(second.Commit(context.Background(), kv.Buffered))
	isConflict(fourth.set(testNS, "{_id: 2, fourth: true}"))
	fourth.Rollback()
	f.wantSeen(testNS, "{ _id: 1, plain: true } { _id: 2, second: true } { _id: 3 } { _id: 9, second: true }")
}

// TestWriteWaits: a plain write of what a transaction has written waits until that is over, and then does what is right.
func TestWriteWaits(t *testing.T) {
	for _, commits := range []bool{true, false} {
		t.Run(fmt.Sprint("commits ", commits), func(t *testing.T) {
			f := newFixture(t)
			f.must(f.insert(testNS, "{_id: 1, n: 0}", "{_id: 2, n: 0}"))
			txn := f.beginTransaction()
			f.must(txn.set(testNS, "{_id: 1, n: 10}", "{_id: 3}"))
			var conflicts atomic.Int64
			counting := creating
			counting.Conflicts = &conflicts
			add := func(ctx context.Context, id int32) error {
				return f.Write(ctx, testNS, counting, func(w *Writer) error {
					rec, there, err := w.GetByID(bson.Int32(id))
					if err != nil || !there {
						return err
					}
					n := rec.Doc.Lookup("n").Int32()
					_, _, err = w.Update(rec.Clone(), bson.Build().Int32("_id", id).Int32("n", n+1).Doc())
					return err
				})
			}
			f.must(add(context.Background(), 2)) // is not the transaction's
			if n := conflicts.Load(); n != 0 {
				t.Errorf("%d conflicts", n)
			}
			short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			if err := add(short, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal("it did not wait:", err)
			}
			if n := conflicts.Load(); n != 1 { // is counted before it is over
				t.Errorf("%d conflicts", n)
			}
			done := make(chan error, 2)
			go func() { done <- add(context.Background(), 1) }()
			go func() { done <- f.insert(testNS, "{_id: 3, plain: true}") }()
			select {
			case err := <-done:
				t.Fatal("it did not wait:", err)
			case <-time.After(20 * time.Millisecond):
			}
			want := "{ _id: 1, n: 1 } { _id: 2, n: 1 } { _id: 3, plain: true }"
			if commits {
				f.must(txn.Commit(context.Background(), kv.Buffered))
				want = "{ _id: 1, n: 11 } { _id: 2, n: 1 } { _id: 3 }"
			} else {
				txn.Rollback()
			}
			for range 2 {
				if err := <-done; err != nil && !(commits && mongoerr.Is(err, mongoerr.DuplicateKey)) {
					t.Error(err)
				}
			}
			f.wantSeen(testNS, want)
			f.validate(testNS)
		})
	}
}

// TestStatementLocks: a transaction waits no longer than it may for a collection that is being changed, and keeps those who want to
// change one that it has written to waiting.
func TestStatementLocks(t *testing.T) {
	f := newFixture(t)
	other := namespace.NS{DB: "db", Coll: "other"}
	f.must(f.insert(testNS, "{_id: 1}"))
	f.must(f.insert(other, "{_id: 1}"))
	c, _ := f.CollectionByID(f.Store.current.Load().catalog.Collection(other).ID)
	unlock, err := c.Lock(context.Background())
	f.must(err)
	txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now(), LockTimeout: 0})
	f.must(err)
	f.must(txn.set(testNS, "{_id: 2}"))
	done := make(chan error)
	go func() { done <- txn.set(other, "{_id: 2}") }()
	for locked := true; locked; {
		select {
		case err := <-done:
			if !mongoerr.Is(err, mongoerr.LockTimeout) {
				t.Errorf("got %v", err)
			}
			locked = false
		default:
			f.clock.Advance(time.Millisecond)
		}
	}
	unlock()
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := f.DropCollection(short, testNS); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("it was dropped:", err)
	}
	txn.Rollback()
	_, err = f.DropCollection(context.Background(), testNS)
	f.must(err)
	capped := namespace.NS{DB: "db", Coll: "capped"}
	_, err = f.CreateCollection(context.Background(), capped, bson.MustDoc("{capped: true, size: 1000}"))
	f.must(err)
	if err := f.beginTransaction().set(capped, "{_id: 1}"); !mongoerr.Is(err, mongoerr.OperationNotSupportedInTransaction) {
		t.Errorf("got %v", err)
	}
}

// TestTransactionAndExpiry: what a transaction has read does not expire under it, and what it has written waits for it.
func TestTransactionAndExpiry(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(testNS, "{_id: 0, ttl: 1000}"))
	f.createIndexes(testNS, "{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 10}", "{key: {a: 1}, name: 'a'}")
	f.must(f.insert(testNS, "{_id: 1}", "{_id: 2}", "{_id: 3}"))
	f.clock.Advance(5 * time.Second)
	txn := f.beginTransaction()
	f.clock.Advance(time.Minute)
	want := "{ _id: 0, ttl: 1000 } { _id: 1 } { _id: 2 } { _id: 3 }"
	if got := seen(t, txn.Statement(context.Background()), testNS); !same(got, want) {
		t.Error("it sees", got)
	}
	f.must(txn.set(testNS, "{_id: 2, refreshed: true}"))
	c := f.Store.current.Load().catalog.Collection(testNS)
	rule := &c.ExpiryRules().All()[0]
	deleted := 0
	f.must(f.Write(context.Background(), testNS, creating, func(w *Writer) error {
		ids, _, err := w.Dates().All(rule, f.Now(), nil, 100)
		if err != nil {
			return err
		}
		return w.ExpireMany(rule, ids, func(_ Record, gone bool) bool {
			if gone {
				deleted++
			}
			return true
		})
	}))
	if deleted != 2 {
		t.Errorf("%d documents were deleted", deleted)
	}
	if got := seen(t, txn.Statement(context.Background()), testNS); !same(got, "{ _id: 0, ttl: 1000 } { _id: 1 } { _id: 2, refreshed: true } { _id: 3 }") {
		t.Error("it sees", got)
	}
	f.must(txn.Commit(context.Background(), kv.Buffered))
	f.clock.Advance(-time.Minute)
	f.validate(testNS)
}

// same compares documents in any order.
func same(got, want string) bool {
	sorted := func(s string) string {
		list := strings.SplitAfter(s, "} ")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		for i := range list {
			for j := range list[:i] {
				if list[i] < list[j] {
					list[i], list[j] = list[j], list[i]
				}
			}
		}
		return strings.Join(list, " ")
	}
	return sorted(got) == sorted(want)
}

// TestTransactionInOplog: a transaction is an applyOps of its session.
func TestTransactionInOplog(t *testing.T) {
	f := logged(t)
	f.must(f.insert(testNS, "{_id: 1}"))
	txn := f.beginTransaction()
	f.must(txn.set(testNS, "{_id: 2}"))
	f.must(txn.Commit(context.Background(), kv.Buffered))
	docs, _ := f.entries()
	got := entryUUIDs.ReplaceAllString(docs[len(docs)-1].String(), "")
	want := `{ lsid: { id: 1 }, txnNumber: 1, op: "c", ns: "admin.$cmd", o: { applyOps: [ { op: "i", ns: "db.c", o: { _id: 2 }, o2: { _id: 2 } } ] }, ` +
		`ts: Timestamp(1000000000, 3), t: 1, v: 2, wall: new Date(1000000000000), prevOpTime: { ts: Timestamp(0, 0), t: -1 } }`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestTransactionTooLarge: the statement is refused by which a transaction would be too large for the engine.
func TestTransactionTooLarge(t *testing.T) {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{MaxTxnBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureOver(t, engine)
	f.must(f.insert(testNS, "{_id: 1}"))
	txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now()})
	f.must(err)
	defer txn.Rollback()
	f.must(txn.set(testNS, "{_id: 2}"))
	if err := txn.set(testNS, "{_id: 3, s: '"+strings.Repeat("x", 10_000)+"'}"); !mongoerr.Is(err, mongoerr.TransactionTooLarge) {
		t.Errorf("got %v", err)
	}
}
