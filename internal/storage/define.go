package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// What a transaction of several statements defines, collections and their indexes, is its own until it commits. It has a version of the
// catalogue that nobody else sees, and what belongs to such a collection in memory is new and goes with the transaction. Their entries in
// the stored catalogue are among its writes. The commit puts both, definitions and documents, before everybody at once (Store.turn). It is
// refused where somebody else has taken one of the names meanwhile.
//
// Only numbers are taken at once, in a commit of their own: keys are written under them. Where the transaction is rolled back, or the
// process ends, nobody has them.

// Define runs f on the catalogue as the transaction sees it, which then sees what f has done. f may define what is the transaction's own.
// When it fails the transaction is good for nothing but Rollback.
func (t *Txn) Define(ctx context.Context, f func(*catalogchange.Change) error) error {
	t.Statement(ctx)
	s, old := t.store, t.view.version
	c := catalogchange.New(&s.changes, t.kv, old.catalog)
	if err := s.takeNumbers(ctx, c, f); err != nil {
		return err
	}
	if s.oplog(old) != nil {
		c.DDL().Log(&t.log, old.catalog)
	}
	if err := t.checkSize(); err != nil {
		return err
	}
	t.see(c)
	return nil
}

// takeNumbers runs f on c, and sees to it that nobody else gets the numbers that f takes.
func (s *Store) takeNumbers(ctx context.Context, c *catalogchange.Change, f func(*catalogchange.Change) error) error {
	_, err := Apart(ctx, s, func(ctx context.Context, _ *struct{}) error { return s.takeNumbersApart(ctx, c, f) })
	return err
}

func (s *Store) takeNumbersApart(ctx context.Context, c *catalogchange.Change, f func(*catalogchange.Change) error) error {
	if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
		return err
	}
	defer s.own.Catalog().Release(ownership.Exclusive)
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	if err = c.ReadNumbers(t); err == nil {
		err = f(c)
	}
	if err != nil {
		t.Rollback()
		return err
	}
	c.SetNumbers(t)
	switch err := t.Commit(ctx, kv.Buffered); {
	case err == nil:
		return nil
	case errors.Is(err, kv.ErrConflict):
		return conflict()
	case errors.Is(err, kv.ErrNoSpace):
		return explainSpace(err)
	default:
		return fmt.Errorf("storage: take numbers: %w", err)
	}
}

// see has the transaction see what c has done.
func (t *Txn) see(c *catalogchange.Change) {
	was := *t.view.version
	was.own = ownership.Unshared(was.own)
	next := was.next(c.Catalog(), true, c.DDL().MultikeyOf)
	t.view.version = next
	for _, step := range c.DDL().Steps {
		if was.collections[step.Put.ID] == nil {
			if t.statements.made == nil {
				t.statements.made = map[uint32]bool{}
			}
			t.statements.made[step.Put.ID] = true
		}
	}
	if t.meaning.DDL == nil {
		t.meaning.DDL = c.DDL()
	} else {
		t.meaning.DDL.Add(c.DDL())
	}
	for _, w := range t.writers {
		if now := next.collections[w.c.ID]; now != w.c {
			w.redefine(now)
		}
	}
}

// Made are the collections that the transaction has made, as it sees them or, when it has ended, has left them.
func (t *Txn) Made() (made []*catalog.Collection) {
	if t.statements == nil || t.statements.made == nil {
		return nil
	}
	for _, c := range t.view.Catalog().All() {
		if t.statements.made[c.ID] {
			made = append(made, c)
		}
	}
	return made
}

// HasMade says whether the transaction has made the collection itself.
func (t *Txn) HasMade(c *catalog.Collection) bool { return t.hasMade(c.ID) }

func (t *Txn) hasMade(collection uint32) bool {
	return t.statements != nil && t.statements.made[collection]
}

// CreateCollection is Store.CreateCollection inside of the transaction: it does not see collections that others have made since it began.
func (t *Txn) CreateCollection(ctx context.Context, ns namespace.NS, options bson.Doc) (made *catalog.Collection, err error) {
	err = t.Define(ctx, func(c *catalogchange.Change) error {
		made, err = c.Create(ns, catalog.ReadOptions(options), catalog.NewUUID())
		return err
	})
	return made, err
}

// takeNames keeps everybody else from changing the catalogue until release is called, and fails with WriteConflict when somebody has a
// collection of a name that the transaction has given to its own.
func (t *Txn) takeNames(ctx context.Context) (release func(), err error) {
	if t.meaning.DDL == nil {
		return func() {}, nil
	}
	lock := t.store.own.Catalog()
	if err := lock.Acquire(ctx, ownership.Exclusive); err != nil {
		return nil, err
	}
	now := t.store.Catalog()
	for _, step := range t.meaning.DDL.Steps {
		if ns := step.Put.NS; now.Collection(ns) != nil || now.CheckCreate(ns) != nil {
			lock.Release(ownership.Exclusive)
			return nil, mongoerr.New(mongoerr.WriteConflict,
				"Caused by :: Collection namespace '%s' is already in use. :: Please retry your operation or multi-document transaction.", ns)
		}
	}
	return func() { lock.Release(ownership.Exclusive) }, nil
}

// redefine has the Writer of a collection that its transaction has made go on with what it has become. There is no document in it.
func (w *Writer) redefine(c *collection) {
	w.Reader = w.txn.view.read(c)
	w.entries.Redefine(c.order, c.indexes, &w.Reader.key)
}

// noteReserved notes which numbers of records are in use in a collection that the transaction has made, where they cannot be found from
// the records.
func (w *Writer) noteReserved() {
	if last := w.change.LastSequence; last > 0 && w.c.order != nil && w.txn.hasMade(w.c.ID) {
		ownership.Reserve(w.txn.kv, &w.change, last)
	}
}
