package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// RebuildIndexes makes all entries of all of a collection's indexes anew from its documents, in the place of those there
// are. Nobody writes to the collection meanwhile. Where documents do not go together with a unique index it fails with
// DuplicateKey and leaves everything as it was.
func (s *Store) RebuildIndexes(ctx context.Context, ns namespace.NS) (*catalog.Collection, error) {
	found, release, err := s.lockToChange(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer release()
	c := found[0]
	switch {
	case c == nil:
		return nil, notFound(ns)
	case c.IsView():
		return nil, mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	if err := c.refuseWhileBuilding(); err != nil {
		return nil, err
	}
	if _, _, err := s.deleteDueAhead(ctx, c, s.unspared(c)); err != nil { // c stays as it is: nothing is built
		return nil, err
	}
	b, err := s.build(ctx, c, c.Indexes, OnHidden{})
	if err != nil {
		return nil, err
	}
	defer b.close()
	var next *catalog.Collection
	err = s.change(ctx, func(ch *change) error {
		defs, err := b.finish(ch)
		if err != nil {
			return err
		}
		next = c.WithIndexes(slices.Clone(defs))
		if err := ch.put(next); err != nil {
			return err
		}
		ch.dropGone(c.Collection, next)
		return nil
	})
	if err != nil {
		b.abandon()
		return nil, err
	}
	return next, nil
}
