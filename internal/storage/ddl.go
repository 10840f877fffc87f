package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/witness"
)

// Change runs f, alone among changes of the catalogue, commits what it did to it, and publishes that. It is on stable storage when
// Change returns. One of an existing collection holds that collection's lock changing and then its lock already.
func (s *Store) Change(ctx context.Context, f func(*catalogchange.Change) error) error {
	if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
		return err
	}
	defer s.own.Catalog().Release(ownership.Exclusive)
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: begin: %w", err)
	}
	old := s.current.Load()
	c := catalogchange.New(&s.changes, t, old.catalog)
	if err = c.ReadNumbers(t); err == nil {
		err = f(c)
	}
	if err != nil {
		t.Rollback()
		return err
	}
	if c.Catalog() == old.catalog && t.Size() == 0 {
		t.Rollback()
		return nil
	}
	c.SetNumbers(t)
	m := &meaning.Meaning{DDL: c.DDL()}
	if s.oplog(old) != nil {
		var log oplog.Log
		m.DDL.Log(&log, old.catalog)
		s.stamp(t, m, &log, old, oplog.Circumstances{Wall: s.Now(), Apart: true}, nil, nil)
	}
	t.Mean(m)
	tell := sync.OnceFunc(func() {
		witness.Tell(ctx, witness.Commit{Events: m.DDL.Events, Before: old.catalog, After: c.Catalog()})
	})
	published := func() {
		s.tell(m)
		s.garbage.Add(c.Garbage()...)
	}
	switch err = t.Commit(kv.BeforeOver(ctx, tell), kv.Synced); {
	case err == nil:
		tell()
		published()
		return nil
	case errors.Is(err, kv.ErrConflict):
		return conflict()
	}
	if errors.Is(err, kv.ErrUndetermined) {
		tell() // of what may have been done: an audit log that lacks it is worse than one that has it for nothing
	}
	if late, ok := errors.AsType[*kv.Late](err); ok {
		settled := old.doubt(m.DDL)
		s.later(late, func(visible bool) {
			settled()
			if visible {
				published()
			}
		})
	}
	return fmt.Errorf("storage: commit a change of the catalogue: %w", err)
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
		current := slices.Equal(found, s.find(namespaces))
		if err := undetermined(found); current && err == nil {
			return found, release, nil
		} else if release(); err != nil {
			return nil, nil, err
		}
	}
}

// doubt has nobody change the definitions that d changes until settled is called, though its writer lets go of their locks: whoever did would go by what
// they were, and undo d, where that becomes visible meanwhile.
func (v *version) doubt(d *meaning.DDL) (settled func()) {
	var states []*collectionState
	for _, step := range d.Steps {
		id := step.Drop
		if step.Put != nil {
			id = step.Put.ID
		}
		if c := v.collections[id]; c != nil {
			c.state.undetermined.Add(1)
			states = append(states, c.state)
		}
	}
	return func() {
		for _, s := range states {
			s.undetermined.Add(-1)
		}
	}
}

// undetermined is the error of changing any of the collections while it is not known what becomes of another change of it.
func undetermined(collections []*collection) error {
	for _, c := range collections {
		if c != nil && c.state.undetermined.Load() > 0 {
			return mongoerr.New(mongoerr.HostUnreachable, "the definition of %s is being changed, and it is not known yet what becomes of that", c.NS)
		}
	}
	return nil
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
