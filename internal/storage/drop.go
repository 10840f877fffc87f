package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// DropCollection drops a collection or view and returns what it was. Its data goes later, in the background.
func (s *Store) DropCollection(ctx context.Context, ns namespace.NS) (*catalog.Collection, error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer func() {
		release()
		s.forget(found)
	}()
	if found[0] == nil {
		return nil, notFound(ns)
	}
	found[0].abortBuilds("collection dropped")
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
	defer func() {
		release()
		s.forget(found)
	}()
	for _, c := range found {
		if c != nil {
			c.abortBuilds("dropDatabase command")
		}
	}
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
		if len(all) > 0 {
			c.ddl.Events = append(c.ddl.Events, meaning.Event{Kind: meaning.DatabaseDropped, NS: namespace.NS{DB: db}})
		}
		dropped, done = all, true
		return nil
	})
	return dropped, done, err
}

// forget has the sweeper give back what it keeps of collections that were dropped, or were to be.
func (s *Store) forget(found []*collection) {
	for _, c := range found {
		if c != nil {
			s.sweeper.Forget(c.ID)
		}
	}
}

// DropIndexes drops the indexes that pick chooses and returns how many there were before. What is hidden by a TTL index
// that goes is deleted first: it does not come back. The index on _id stays. pick sees the indexes that are being built,
// too: a build all of whose indexes are picked is aborted, and part of one cannot be dropped.
func (s *Store) DropIndexes(ctx context.Context, ns namespace.NS, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, err error) {
	before, _, err = s.DropIndexesWith(ctx, ns, OnHidden{}, pick)
	return before, err
}

// DropIndexesWith is DropIndexes that is told what to do with what is hidden.
func (s *Store) DropIndexesWith(ctx context.Context, ns namespace.NS, how OnHidden, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, hidden Loosened, err error) {
	l := &loosening{store: s, how: how}
	defer l.close()
	for done := false; !done && err == nil; {
		before, done, err = s.tryDropIndexes(ctx, ns, l, pick)
	}
	hidden, err = l.end(err)
	return before, hidden, err
}

// tryDropIndexes is not done when an index build has ended after pick saw it.
func (s *Store) tryDropIndexes(ctx context.Context, ns namespace.NS, l *loosening, pick func(*catalog.Collection) ([]*index.Definition, error)) (before int, done bool, err error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return 0, false, err
	}
	defer release()
	c := found[0]
	switch {
	case c == nil:
		return 0, false, notFound(ns)
	case c.IsView():
		return 0, false, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	all := c.withBuilding()
	going, err := pick(all)
	if err != nil {
		return 0, false, err
	}
	stopped, err := c.buildsAmong(going)
	if err != nil {
		return 0, false, err
	}
	stay, err := indexplan.Without(c.Collection, going)
	if err != nil {
		return 0, false, err
	}
	next := c.WithIndexes(stay)
	l.toBe(c, next)
	if same, err := l.ahead(ctx, next); !same || err != nil {
		return 0, false, err
	}
	return len(all.Indexes), true, s.replace(ctx, l, next, func() {
		for _, b := range stopped {
			b.abort("dropIndexes command")
		}
	})
}

// withBuilding is the collection as if the indexes that are being built were there.
func (c *collection) withBuilding() *catalog.Collection {
	builds := c.state.building()
	if len(builds) == 0 {
		return c.Collection
	}
	all := slices.Clone(c.Indexes)
	for _, b := range builds {
		all = append(all, b.Definitions...)
	}
	return c.WithIndexes(all)
}

// buildsAmong are the builds of the indexes in going.
func (c *collection) buildsAmong(going []*index.Definition) (builds []*Build, err error) {
	for _, b := range c.state.building() {
		n := 0
		for _, d := range b.Definitions {
			if slices.Contains(going, d) {
				n++
			}
		}
		switch n {
		case 0:
		case len(b.Definitions):
			builds = append(builds, b)
		default:
			return nil, c.refuseWhileBuilding()
		}
	}
	return builds, nil
}
