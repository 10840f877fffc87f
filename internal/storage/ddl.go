package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// Change returns, unless the patience of ctx (kv.WithPatience) has ended before: then it is as after Write. One of an existing collection holds that collection's lock changing and then its lock already.
func (s *Store) Change(ctx context.Context, f func(*catalogchange.Change) error) error {
	p := kv.PatienceOf(ctx)
	if p != nil && p.Left != nil {
		return errLeft(p.Left)
	}
	if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
		return err
	}
	left := false
	letGo := func() { s.own.Catalog().Release(ownership.Exclusive) }
	defer func() {
		if !left {
			letGo()
		}
	}()
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
	changed := func(err error) error {
		switch {
		case err == nil:
			s.tell(m)
			s.garbage.Add(c.Garbage()...)
			return nil
		case errors.Is(err, kv.ErrConflict):
			return conflict()
		case errors.Is(err, kv.ErrImpatient):
			return errLeft(kv.ErrImpatient)
		}
		return fmt.Errorf("storage: commit a change of the catalogue: %w", err)
	}
	err = t.Commit(ctx, kv.Synced)
	if u, unsettled := err.(*kv.Unsettled); unsettled {
		left, err = true, nil
		s.leave(p, u.Then(changed), letGo)
	} else {
		err = changed(err)
	}
	if err == nil {
		witness.Tell(ctx, witness.Commit{Events: m.DDL.Events, Before: old.catalog, After: c.Catalog()})
	}
	return err
}

// whenSettled is release for one who may leave the commit of what is locked for it: then all stays locked until it is known what becomes of it.
func (s *Store) whenSettled(ctx context.Context, release func()) func() {
	p := kv.PatienceOf(ctx)
	if p == nil {
		return release
	}
	return func() {
		if p.Settled == nil {
			release()
			return
		}
		s.unsettled.Go(func() {
			<-p.Settled
			release()
		})
	}
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
			return found, s.whenSettled(ctx, release), nil
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
