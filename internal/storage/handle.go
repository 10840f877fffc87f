package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Collection is a handle of one version of a collection, for those who work at whole collections and not at documents: packages
// sweeper, loosen and indexddl. What it says is of that version.
type Collection struct {
	*catalog.Collection
	store *Store
	own   *collection
}

// CollectionByID is the collection with the number as it is now; ok is false when there is none.
func (s *Store) CollectionByID(number uint32) (c Collection, ok bool) {
	own := s.current.Load().collections[number]
	if own == nil {
		return Collection{}, false
	}
	return s.handle(own), true
}

// CollectionNamed is the collection or view called ns as it is now; ok is false when there is none.
func (s *Store) CollectionNamed(ns namespace.NS) (c Collection, ok bool) {
	own := s.find([]namespace.NS{ns})[0]
	if own == nil {
		return Collection{}, false
	}
	return s.handle(own), true
}

// LockToChange takes the locks of the collection or view called ns for one who changes what it is: nobody else changes it, nor writes to
// it, until release is called. It fails with NamespaceNotFound when there is none.
func (s *Store) LockToChange(ctx context.Context, ns namespace.NS) (c Collection, release func(), err error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return Collection{}, nil, err
	}
	if found[0] == nil {
		release()
		return Collection{}, nil, notFound(ns)
	}
	return s.handle(found[0]), release, nil
}

// Discard hands what is noted as garbage to the collector.
func (s *Store) Discard(items ...garbage.Item) { s.garbage.Add(items...) }

func (s *Store) handle(c *collection) Collection { return Collection{c.Collection, s, c} }

// IsCurrent says whether the collection is still what it was; nobody changes that while its lock is held.
func (c Collection) IsCurrent() bool { return c.store.current.Load().collections[c.ID] == c.own }

// ExpiryOrder is how its records lie in the order of expiry; nil where they do not.
func (c Collection) ExpiryOrder() *expiryorder.Order { return c.own.order }

// Tables are its indexes that keep entries.
func (c Collection) Tables() []expiry.Table { return c.own.layouts() }

// IsBuilding says whether an index of it is being built.
func (c Collection) IsBuilding() bool { return len(c.own.state.building()) > 0 }

// Builds are the index builds under way, oldest first.
func (c Collection) Builds() []*build.Underway { return c.own.state.building() }

// RefuseWhileBuilding is the error of what cannot be done to the collection while an index is built. It may be nil.
func (c Collection) RefuseWhileBuilding() error { return c.own.refuseWhileBuilding() }

// NewEntries are those of an index that is to be made.
func (c Collection) NewEntries(d *index.Definition) layout.Entries {
	return layout.Entries{Definition: d, IDLength: c.own.idLength}
}

// Rules are its rules of expiry.
func (c Collection) Rules() policy.Rules { return c.own.rules }

// Held is why what has expired of it is kept on purpose; "" when it is not.
func (c Collection) Held() string {
	if held := c.store.options.Held(); held != "" || !c.Options.TTLPaused {
		return held
	}
	return Paused
}

// Paused is why what has expired of a collection is kept whose ttlPaused is true.
const Paused = "the collection's ttlPaused is true"

// InGrace says whether something may be due by the rule and is not to be deleted yet.
func (c Collection) InGrace(rule *policy.Rule) bool { return c.store.inGrace(rule, c.store.Now()) }

// IsTold says whether the oplog tells what happens in it.
func (c Collection) IsTold() bool { return c.store.logs(c.own, c.store.current.Load()) }

// Undetermined is the error of changing it while it is not known what becomes of another change of it. It may be nil.
func (c Collection) Undetermined() error { return undetermined([]*collection{c.own}) }

// Freeze has nothing become hidden any more by its rules, for they are about to be loosened; Thaw takes that back.
func (c Collection) Freeze() {
	c.store.standing.add(c.own, c.store.current.Load().collections)
	c.store.expiryClock.Freeze(&c.own.frozen)
}

// Thaw has its rules hide again what expires.
func (c Collection) Thaw() {
	c.own.frozen.Store(0)
	c.store.standing.remove(c.own)
}

// HasTombstones says whether sweeps may have left dead entries in its indexes.
func (c Collection) HasTombstones() bool { return c.own.state.tombstones.IsSet() }

// Commits is how many commits there have been to it since the store was opened. Who holds its lock sees it not change.
func (c Collection) Commits() int64 { return c.own.state.writes.Load() }

// Handle is the collection that r reads.
func (r *Reader) Handle() Collection { return r.view.store.handle(r.c) }

// Read reads it in a view.
func (c Collection) Read(v *View) *Reader { return v.read(c.own) }

// Lock keeps all others from writing to the collection until unlock is called: then no transaction on it is under way, and each
// number that was given out is of a record that is there or is not. Who waits for it holds up those who come to write.
func (c Collection) Lock(ctx context.Context) (unlock func(), err error) {
	lock := c.own.state.lock
	if err := lock.Acquire(ctx, ownership.Exclusive); err != nil {
		return nil, err
	}
	return func() { lock.Release(ownership.Exclusive) }, nil
}

// LockToSweep is Lock for one who deletes what has expired: transactions of several statements may be open that have written to the
// collection, but none writes or commits. It says what they have written (Writer.Sweep).
func (c Collection) LockToSweep(ctx context.Context) (unlock func(), err error) {
	lock := c.own.state.lock
	if err := lock.Acquire(ctx, ownership.Sweeping); err != nil {
		return nil, err
	}
	return func() { lock.Release(ownership.Sweeping) }, nil
}

// IsWritten says whether a transaction of several statements is open that has written to the collection: Lock would wait for its end.
func (c Collection) IsWritten() bool { return c.own.state.lock.IsLasting() }

// Unlocked runs f while others may write to the collection, whose locks the caller holds to change it, and has them again afterwards.
// Meanwhile nobody else changes what it is, unless an index build ends.
func (c Collection) Unlocked(f func() error) error {
	lock := c.own.state.lock
	lock.Release(ownership.Exclusive)
	defer func() { _ = lock.Acquire(context.Background(), ownership.Exclusive) }() // which nothing ends but its turn
	return f()
}

// Begin starts a transaction on the collection at now, for one who holds its lock until the transaction has ended.
func (c Collection) Begin(ctx context.Context, now int64) (*Txn, *Writer, error) {
	t, err := c.store.BeginAt(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	if t.view.version.collections[c.ID] != c.own { // it was changed by one who had let go of the lock (version.doubt)
		t.Rollback()
		return nil, nil, conflict()
	}
	return t, t.writer(c.own), nil
}

// Drivers work at whole collections from above the store: package indexddl has those there are.
type Drivers interface {
	// Upgrade brings indexes up to the format of today, while the store is opened and before anybody else reads or writes.
	Upgrade(ctx context.Context) error
	// Forget gives back what is kept of a collection that was dropped, or was to be.
	Forget(collection uint32)
	// Close gives back what is kept of all: the store is closed.
	Close()
}

// noDrivers are those of a store that has none.
type noDrivers struct{}

func (noDrivers) Upgrade(context.Context) error { return nil }

func (noDrivers) Forget(uint32) {}

func (noDrivers) Close() {}
