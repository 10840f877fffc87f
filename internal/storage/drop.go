package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
)

// DropCollection drops a collection or view and returns what it was. Its data goes later, in the background.
func (s *Store) DropCollection(ctx context.Context, ns namespace.NS) (*catalog.Collection, error) {
	return Apart(ctx, s, func(ctx context.Context, was **catalog.Collection) error { return s.dropCollection(ctx, ns, was) })
}

func (s *Store) dropCollection(ctx context.Context, ns namespace.NS, was **catalog.Collection) error {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return err
	}
	defer func() {
		release()
		s.forget(found)
	}()
	if found[0] == nil {
		return notFound(ns)
	}
	if err := s.checkDrop(found[0].Collection); err != nil {
		return err
	}
	found[0].abortBuilds("collection dropped")
	*was = found[0].Collection
	return s.ChangeLast(ctx, func(c *catalogchange.Change) error {
		c.Drop(found[0].Collection)
		return nil
	})
}

// DropDatabase drops all collections and views of a database at once and returns what they were.
func (s *Store) DropDatabase(ctx context.Context, db string) ([]*catalog.Collection, error) {
	return Apart(ctx, s, func(ctx context.Context, dropped *[]*catalog.Collection) error {
		for {
			if done, err := s.tryDropDatabase(ctx, db, dropped); done || err != nil {
				return err
			}
		}
	})
}

// tryDropDatabase is not done when a collection was made after the others were locked.
func (s *Store) tryDropDatabase(ctx context.Context, db string, dropped *[]*catalog.Collection) (done bool, err error) {
	var names []namespace.NS
	for _, coll := range s.current.Load().catalog.Collections(db) {
		names = append(names, coll.NS)
	}
	found, release, err := s.lockToChange(ctx, names...)
	if err != nil {
		return false, err
	}
	defer func() {
		release()
		s.forget(found)
	}()
	for _, c := range found {
		if c == nil {
			continue
		}
		if err := s.checkDrop(c.Collection); err != nil {
			return false, err
		}
		c.abortBuilds("dropDatabase command")
	}
	err = s.ChangeLast(ctx, func(c *catalogchange.Change) error {
		for _, coll := range c.Catalog().Collections(db) {
			if !slices.ContainsFunc(found, func(f *collection) bool { return f != nil && f.Collection == coll }) {
				return nil
			}
		}
		*dropped, done = c.DropDatabase(db), true
		return nil
	})
	return done, err
}

// forget has the drivers give back what it keeps of collections that were dropped, or were to be.
func (s *Store) forget(found []*collection) {
	for _, c := range found {
		if c != nil {
			s.drivers.Forget(c.ID)
		}
	}
}
