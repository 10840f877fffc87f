package indexddl

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// RebuildIndexes makes all entries of all of a collection's indexes anew from its documents, in the place of those there
// are. Nobody writes to the collection meanwhile. Where documents do not go together with a unique index it fails with
// DuplicateKey and leaves everything as it was.
func (d *DDL) RebuildIndexes(ctx context.Context, ns namespace.NS) (next *catalog.Collection, err error) {
	return storage.Apart(ctx, d.store, func(ctx context.Context, next **catalog.Collection) error { return d.rebuildIndexes(ctx, ns, next) })
}

func (d *DDL) rebuildIndexes(ctx context.Context, ns namespace.NS, next **catalog.Collection) error {
	c, release, err := d.store.LockToChange(ctx, ns)
	if err != nil {
		return err
	}
	defer release()
	if c.IsView() {
		return isView(ns)
	}
	if err := c.RefuseWhileBuilding(); err != nil {
		return err
	}
	if _, _, err := d.Sweeper.DeleteDueAhead(ctx, c, d.Unspared(c)); err != nil { // c stays as it is: nothing is built
		return err
	}
	return d.changeBuilt(ctx, c, c.Indexes, d.Begin(ttlchange.OnHidden{}), func(ch *catalogchange.Change, defs []*index.Definition) error {
		*next = c.WithIndexes(slices.Clone(defs))
		if err := ch.Put(*next); err != nil {
			return err
		}
		dropGone(ch, c.Collection, *next)
		return nil
	})
}
