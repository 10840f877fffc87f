package storage

import (
	"context"
	"errors"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// TestUndeterminedIsTold: who writes is told that nobody knows what becomes of the commit. When it can be seen those are told of it who are told of any:
// who lets expire what it wrote, who has to know of definitions, and who removes what it dropped.
func TestUndeterminedIsTold(t *testing.T) {
	cluster := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: cluster.Client, Clock: clock.NewFake(epoch)}
	f := newFixtureOver(t, cluster.OpenOver(t, way, tikvkv.Options{Clock: way.Clock}))
	deadlines, events := make(chan int64, 10), make(chan meaning.Event, 10)
	f.options.OnDeadline = func(_ uint32, deadline int64) { deadlines <- deadline }
	f.options.OnDDL = func(e meaning.Event) { events <- e }
	f.reopen()
	f.must(f.insert(testNS, "{_id: 1}"))
	<-events // that it was made

	way.Leave(t, f.engine, func() error {
		_, err := f.CreateIndexes(context.Background(), testNS, f.parse(`{key: {d: 1}, name: "d", expireAfterSeconds: 10}`))
		return err
	})()
	if e := <-events; e.Kind != meaning.IndexCreated || !e.Index.TTL {
		t.Errorf("of an index is told %+v", e)
	}
	f.must(f.insert(testNS, "{_id: 2, d: Date(7000)}"))
	<-deadlines
	way.Leave(t, f.engine, func() error { return f.insert(testNS, "{_id: 3, d: Date(5000)}") })()
	if d := <-deadlines; d != 15_000 {
		t.Errorf("the deadline that is told is %d", d)
	}
	way.Leave(t, f.engine, func() error {
		_, err := f.DropCollection(context.Background(), testNS)
		return err
	})()
	if e := <-events; e.Kind != meaning.CollectionDropped {
		t.Errorf("of a drop is told %+v", e)
	}
	way.Until(t, func() bool {
		snapshot, err := f.engine.Snapshot()
		f.must(err)
		defer snapshot.Close()
		left, err := garbage.Read(snapshot)
		f.must(err)
		return len(left) == 0
	})
}

// TestChangeBesideUndetermined: who drops a collection and is told that nobody knows what becomes of that has let go of its locks. Who would change the
// collection then by what it was is refused until it is known, and who writes to it finds what it is by then.
func TestChangeBesideUndetermined(t *testing.T) {
	cluster := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: cluster.Client, Clock: clock.NewFake(epoch)}
	begins := &beginsLater{Engine: cluster.OpenOver(t, way, tikvkv.Options{Clock: way.Clock})}
	f := newFixtureOver(t, begins)
	f.must(f.insert(testNS, "{_id: 1}"))
	visible := way.Leave(t, f.engine, func() error {
		_, err := f.DropCollection(context.Background(), testNS)
		return err
	})
	if _, release, err := f.LockToChange(context.Background(), testNS); err == nil || mongoerr.From(err).Code != mongoerr.HostUnreachable {
		t.Errorf("who would change it is told %v", err)
		release()
	}
	begins.before = func() { // it holds the lock of what was there
		begins.before = nil
		visible()
	}
	err := f.Write(context.Background(), testNS, WriteOptions{}, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 2}"))
		return err
	})
	if err == nil || mongoerr.From(err).Code != mongoerr.NamespaceNotFound {
		t.Errorf("who writes is told %v", err)
	}
	way.Until(t, func() bool {
		_, _, err := f.LockToChange(context.Background(), testNS)
		return mongoerr.From(err).Code == mongoerr.NamespaceNotFound
	})
}

// TestChangeBesideDeposed: what a member of a replica set has begun and no majority has is told as undetermined when it leads no more. Its own store goes
// on with none of that: who changes the definition next is told that it does not lead.
func TestChangeBesideDeposed(t *testing.T) {
	engine, err := pebblekv.OpenMemory(pebblekv.Options{CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureOver(t, engine)
	f.must(f.insert(testNS, "{_id: 1}"))
	log := make(appends, 1)
	engine.Lead(log)
	drop := func() error {
		_, err := f.DropCollection(context.Background(), testNS)
		return err
	}
	done := make(chan error, 1)
	go func() { done <- drop() }()
	<-log
	engine.Follow(kv.ErrNotLeader)
	if err := <-done; !errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("who has begun is told %v", err)
	}
	if err := drop(); !errors.Is(err, kv.ErrNotLeader) || errors.Is(err, kv.ErrUndetermined) {
		t.Errorf("who comes next is told %v", err)
	}
}

// appends is a log that no majority has.
type appends chan []byte

func (a appends) Append(encoded []byte) { a <- encoded }

// TestUndeterminedBesideEnd: an operation that was ended while nobody knows what becomes of its commit is told both.
func TestUndeterminedBesideEnd(t *testing.T) {
	for _, why := range []error{nil, mongoerr.New(mongoerr.Interrupted, "operation was interrupted")} {
		f := newFixture(t)
		txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now()})
		f.must(err)
		txn.kv.Rollback()
		ctx, end := context.WithCancelCause(context.Background())
		end(why)
		err = txn.finish(ctx, func() {}, func() {}, &kv.Late{Why: context.Cause(ctx)})
		if !errors.Is(err, kv.ErrUndetermined) || !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("it is told %v", err)
		}
	}
}

// beginsLater is an engine that does something before a blind transaction begins.
type beginsLater struct {
	kv.Engine
	before func()
}

func (e *beginsLater) BeginBlind() (kv.Txn, error) {
	if e.before != nil {
		e.before()
	}
	return e.Engine.BeginBlind()
}

// TestReadBesideUndetermined: a transaction of several statements makes a collection and writes to another, and nobody knows what becomes of it. Who reads
// meanwhile does not wait for it; who begins to read while it becomes visible does, and sees no half of it.
func TestReadBesideUndetermined(t *testing.T) {
	cluster := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: cluster.Client, Clock: clock.NewFake(epoch)}
	watched := &seenEngine{Engine: cluster.OpenOver(t, way, tikvkv.Options{Clock: way.Clock})}
	f := newFixtureOver(t, watched)
	f.must(f.insert(testNS, "{_id: 1}"))
	over, end := context.WithCancel(context.Background())
	end()
	look := func() error {
		view, err := f.View(over)
		if err == nil {
			err = view.Close()
		}
		return err
	}
	txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now()})
	f.must(err)
	for _, ns := range []namespace.NS{testNS, {DB: "test", Coll: "made"}} {
		f.must(txn.Write(context.Background(), ns, WriteOptions{Create: true}, func(w *Writer) error {
			_, err := w.Insert(bson.MustDoc("{_id: 2}"))
			return err
		}))
	}
	release := way.Leave(t, f.engine, func() error { return txn.Commit(context.Background(), kv.Synced) })
	if err := look(); err != nil {
		t.Errorf("who reads while it is on its way is told %v", err)
	}
	half := make(chan error, 1)
	watched.before = func() {
		watched.before = nil
		half <- look()
	}
	release()
	if err := <-half; !errors.Is(err, context.Canceled) {
		t.Errorf("who reads while it becomes visible, and does not wait, is told %v", err)
	}
	f.must(look())
	if f.Catalog().Collection(namespace.NS{DB: "test", Coll: "made"}) == nil {
		t.Error("it is not there")
	}
}

// seenEngine does something when a Commit can be seen, before the store is told.
type seenEngine struct {
	kv.Engine
	kv.Observer
	before func()
}

func (e *seenEngine) Observe(o kv.Observer) {
	e.Observer = o
	e.Engine.Observe(e)
}

func (e *seenEngine) Visible(c *kv.Commit) {
	if e.before != nil {
		e.before()
	}
	e.Observer.Visible(c)
}
