package storage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Change is one commit of the catalogue on its way.
type Change struct {
	store   *Store
	kv      kv.Txn
	catalog *catalog.Catalog
	ddl     meaning.DDL // what it means
	garbage []garbage.Item
	next    header.Numbers // the first that no collection and no index ever had; the transaction that has read them claims them
	// Renew says which rules get a grace though they were not tightened; nil for none.
	Renew func(was, rule *policy.Rule) bool
}

// Change runs f, alone among changes of the catalogue, commits what it did to it, and publishes that. It is on stable storage when
// Change returns. One of an existing collection holds that collection's lock changing and then its lock already.
func (s *Store) Change(ctx context.Context, f func(*Change) error) error {
	if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
		return err
	}
	defer s.own.Catalog().Release(ownership.Exclusive)
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	old := s.current.Load()
	c := s.newChange(t, old.catalog)
	if c.next, err = header.ReadNumbers(t); err == nil {
		err = f(c)
	}
	if err != nil {
		t.Rollback()
		return err
	}
	if c.catalog == old.catalog && t.Size() == 0 {
		t.Rollback()
		return nil
	}
	c.next.Set(t)
	m := &meaning.Meaning{DDL: &c.ddl}
	if s.oplog(old) != nil {
		var log oplog.Log
		c.ddl.Log(&log, old.catalog)
		s.stamp(t, m, &log, old, oplog.Circumstances{Wall: s.Now(), Apart: true}, nil, nil)
	}
	t.Mean(m)
	if err := t.Commit(ctx, kv.Synced); err != nil {
		if errors.Is(err, kv.ErrConflict) {
			return conflict()
		}
		return fmt.Errorf("storage: commit a change of the catalogue: %w", err)
	}
	s.tell(m)
	tellWitness(ctx, Witnessed{Events: c.ddl.Events, Before: old.catalog, After: c.catalog})
	s.garbage.Add(c.garbage...)
	return nil
}

// newChange is a change of a catalogue that has done nothing yet and writes in t. Its next numbers are not known.
func (s *Store) newChange(t kv.Txn, c *catalog.Catalog) *Change {
	return &Change{store: s, kv: t, catalog: c, ddl: meaning.DDL{Multikey: map[uint32]*multikey.Stored{}}}
}

// Put adds or replaces a collection, with the order that its indexes make of it, and the grace of TTLs that were changed.
func (c *Change) Put(coll *catalog.Collection) error {
	coll, err := c.chooseOrder(coll)
	if err != nil {
		return err
	}
	if coll, err = c.graced(coll); err != nil {
		return err
	}
	c.catalog = c.catalog.With(coll)
	c.ddl.Steps = append(c.ddl.Steps, meaning.CatalogStep{Put: coll})
	c.kv.Set(layout.CollectionKey(coll.ID), coll.Document())
	if coll.IsOplog() {
		header.SetOplog(c.kv)
	}
	return nil
}

// drop removes a collection and notes what remains of it.
func (c *Change) drop(coll *catalog.Collection) {
	c.catalog = c.catalog.Without(coll)
	c.ddl.Steps = append(c.ddl.Steps, meaning.CatalogStep{Drop: coll.ID})
	c.kv.Delete(layout.CollectionKey(coll.ID))
	if !coll.IsView() {
		c.Discard(garbage.OfCollection(coll.ID))
	}
	for _, d := range coll.Indexes {
		c.Discard(garbage.OfIndex(d.ID))
	}
	c.Tell(meaning.CollectionDropped, coll, nil)
}

// Discard notes what is to be removed, by a worker or at the next start.
func (c *Change) Discard(g garbage.Item) {
	c.Note(g)
	c.garbage = append(c.garbage, g)
}

// Note makes g garbage for the next start.
func (c *Change) Note(g garbage.Item) { g.Note(c.kv) }

// Set writes an entry of an index that the change takes into use.
func (c *Change) Set(key, value []byte) { c.kv.Set(key, value) }

// TakeIndex takes an index into use whose entries, so many, are made or written by the change: it is noted as garbage no more.
func (c *Change) TakeIndex(collection, number uint32, bits *multikey.Stored, entries int64) error {
	documents, err := c.documents(collection)
	if err != nil {
		return err
	}
	garbage.OfIndex(number).Keep(c.kv)
	bits.Set(c.kv, number)
	c.ddl.Multikey[number] = bits
	if surplus := entries - documents; surplus != 0 {
		c.kv.Add(layout.CounterKey(nil, layout.OfIndex, number, layout.CountSurplus), surplus)
	}
	return nil
}

func (c *Change) documents(collection uint32) (int64, error) {
	return c.kv.Counter(layout.CounterKey(nil, layout.OfCollection, collection, layout.CountDocuments))
}

// Tell has those outside of the store be told what happens to a collection, or to an index of it.
func (c *Change) Tell(kind meaning.EventKind, coll *catalog.Collection, d *index.Definition) {
	c.ddl.Events = append(c.ddl.Events, meaning.Event{Kind: kind, Collection: coll.ID, UUID: coll.UUID, NS: coll.NS, Index: d})
}

func (c *Change) newCollectionID() (uint32, error) { return takeNumber(&c.next.Collection) }

// NewIndexID is a number that no index has had.
func (c *Change) NewIndexID() (uint32, error) { return takeNumber(&c.next.Index) }

func takeNumber(next *uint32) (uint32, error) {
	n := *next
	if n == math.MaxUint32 {
		return 0, errors.New("storage: no number is left for another collection or index")
	}
	*next = n + 1
	return n, nil
}

// lockToChange takes the locks of the existing ones among the namespaces, exclusively and in the order of their numbers.
// found[i] is nil where there is nothing called namespaces[i]; all were there at the same time, while the locks were held.
func (s *Store) lockToChange(ctx context.Context, namespaces ...namespace.NS) (found []*collection, release func(), err error) {
	for {
		found = s.find(namespaces)
		release, err := lockAll(ctx, found)
		if err != nil {
			return nil, nil, err
		}
		if slices.Equal(found, s.find(namespaces)) {
			return found, release, nil
		}
		release()
	}
}

func (s *Store) find(namespaces []namespace.NS) []*collection {
	v := s.current.Load()
	found := make([]*collection, len(namespaces))
	for i, ns := range namespaces {
		if entry := v.catalog.Collection(ns); entry != nil {
			found[i] = v.collections[entry.ID]
		}
	}
	return found
}

func lockAll(ctx context.Context, collections []*collection) (release func(), err error) {
	order := slices.DeleteFunc(slices.Clone(collections), func(c *collection) bool { return c == nil })
	slices.SortFunc(order, func(a, b *collection) int { return int(a.ID) - int(b.ID) })
	order = slices.Compact(order)
	var locks []ownership.Lock
	for _, c := range order {
		locks = append(locks, c.state.changing)
	}
	for _, c := range order {
		locks = append(locks, c.state.lock)
	}
	return ownership.AcquireAll(ctx, locks)
}

func notFound(ns namespace.NS) error {
	return mongoerr.New(mongoerr.NamespaceNotFound, "ns not found: %s", ns)
}
