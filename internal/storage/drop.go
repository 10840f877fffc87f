package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// DropCollection drops a collection or view and returns what it was. Its data goes later, in the background.
func (s *Store) DropCollection(ctx context.Context, ns namespace.NS) (*catalog.Collection, error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer release()
	if found[0] == nil {
		return nil, notFound(ns)
	}
	return found[0].Collection, s.change(ctx, func(c *change) error {
		c.drop(found[0].Collection)
		return nil
	})
}

// DropDatabase drops all collections and views of a database at once and returns what they were.
func (s *Store) DropDatabase(ctx context.Context, db string) ([]*catalog.Collection, error) {
	for {
		dropped, done, err := s.tryDropDatabase(ctx, db)
		if done || err != nil {
			return dropped, err
		}
	}
}

// tryDropDatabase is not done when a collection was made after the others were locked.
func (s *Store) tryDropDatabase(ctx context.Context, db string) (dropped []*catalog.Collection, done bool, err error) {
	var names []namespace.NS
	for _, coll := range s.current.Load().catalog.Collections(db) {
		names = append(names, coll.NS)
	}
	found, release, err := s.lockToChange(ctx, names...)
	if err != nil {
		return nil, false, err
	}
	defer release()
	err = s.change(ctx, func(c *change) error {
		all := c.catalog.Collections(db)
		for _, coll := range all {
			if !slices.ContainsFunc(found, func(f *collection) bool { return f != nil && f.Collection == coll }) {
				return nil
			}
		}
		for _, coll := range all {
			c.drop(coll)
		}
		dropped, done = all, true
		return nil
	})
	return dropped, done, err
}

// DropIndexes drops the indexes that pick chooses and returns how many there were before. What has expired by a TTL index
// that goes is deleted first: it does not come back. The index on _id stays.
func (s *Store) DropIndexes(ctx context.Context, ns namespace.NS, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, err error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return 0, err
	}
	defer release()
	c := found[0]
	switch {
	case c == nil:
		return 0, notFound(ns)
	case c.IsView():
		return 0, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	going, err := pick(c.Collection)
	if err != nil {
		return 0, err
	}
	var stay []*index.Definition
	for _, d := range c.Indexes {
		gone := slices.ContainsFunc(going, func(g *index.Definition) bool { return g.ID == d.ID })
		if gone && d.IsID() {
			return 0, mongoerr.New(mongoerr.InvalidOptions, "cannot drop _id index")
		}
		if !gone {
			stay = append(stay, d)
		}
	}
	return len(c.Indexes), s.replace(ctx, c, c.WithIndexes(stay))
}
