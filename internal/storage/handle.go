package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage/expiry"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Collection is a handle of one version of a collection, for those who work at whole collections and not at documents: package
// sweeper. What it says is of that version.
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

func (s *Store) handle(c *collection) Collection { return Collection{c.Collection, s, c} }

// IsCurrent says whether the collection is still what it was; nobody changes that while its lock is held.
func (c Collection) IsCurrent() bool { return c.store.current.Load().collections[c.ID] == c.own }

// ExpiryOrder is how its records lie in the order of expiry; nil where they do not.
func (c Collection) ExpiryOrder() *expiryorder.Order { return c.own.order }

// Tables are its indexes that keep entries.
func (c Collection) Tables() []expiry.Table { return c.own.layouts() }

// IsLogged says whether the oplog tells of each document that goes.
func (c Collection) IsLogged() bool { return c.store.logs(c.own, c.store.current.Load()) }

// IsBuilding says whether an index of it is being built.
func (c Collection) IsBuilding() bool { return len(c.own.state.building()) > 0 }

// HasTombstones says whether sweeps may have left dead entries in its indexes.
func (c Collection) HasTombstones() bool { return c.own.state.tombstones.IsSet() }

// Commits is how many commits there have been to it since the store was opened. Who holds its lock sees it not change.
func (c Collection) Commits() int64 { return c.own.state.writes.Load() }

// Read reads it in a view.
func (c Collection) Read(v *View) *Reader { return v.read(c.own) }

// Lock keeps all others from writing to the collection until unlock is called: then no transaction on it is under way, and each
// number that was given out is of a record that is there or is not. Who waits for it holds up those who come to write.
func (c Collection) Lock(ctx context.Context) (unlock func(), err error) {
	lock := &c.own.state.lock
	if err := lock.Acquire(ctx, true); err != nil {
		return nil, err
	}
	return func() { lock.Release(true) }, nil
}

// Begin starts a transaction on the collection at now, for one who holds its lock until the transaction has ended.
func (c Collection) Begin(ctx context.Context, now int64) (*Txn, *Writer, error) {
	t, err := c.store.BeginAt(ctx, now)
	if err != nil {
		return nil, nil, err
	}
	return t, t.writer(c.own), nil
}

// Sweeper deletes what has expired as whole stretches of keys, where it can, for commands that need it away: package sweeper has the
// one there is. Without one it is all deleted one by one.
type Sweeper interface {
	// SweepDue deletes at once what can be deleted so of what has expired at now by the rule; what is in its grace and what is paused
	// too. underLock says that the caller holds the collection's lock.
	SweepDue(ctx context.Context, c Collection, rule *policy.Rule, now int64, underLock bool) (deleted int64, err error)
	// MuchDue are those of the rules by which more has expired at now than is better deleted one by one.
	MuchDue(ctx context.Context, c Collection, rules []*policy.Rule, now int64) (much []*policy.Rule, err error)
	// Forget gives back what is kept of a collection that was dropped, or was to be.
	Forget(collection uint32)
	// Close gives back what is kept of all: the store is closed.
	Close()
}

// noSweeper is the Sweeper of a store that has none.
type noSweeper struct{}

func (noSweeper) SweepDue(context.Context, Collection, *policy.Rule, int64, bool) (int64, error) {
	return 0, nil
}

func (noSweeper) MuchDue(context.Context, Collection, []*policy.Rule, int64) ([]*policy.Rule, error) {
	return nil, nil
}

func (noSweeper) Forget(uint32) {}

func (noSweeper) Close() {}
