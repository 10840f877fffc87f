package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
)

// Rename gives a collection another name, in the same database or another; there it gets a new UUID, as MongoDB's copy
// would have. What is called to is dropped in the same commit when dropTarget says so, and in the way otherwise.
func (s *Store) Rename(ctx context.Context, from, to namespace.NS, dropTarget bool) error {
	return s.RenameAs(ctx, from, to, dropTarget, catalog.NewUUID())
}

// RenameAs is Rename with the UUID that the collection has elsewhere in another database. It fails with NamespaceExists when there is one
// with that UUID.
func (s *Store) RenameAs(ctx context.Context, from, to namespace.NS, dropTarget bool, uuid [16]byte) error {
	if from == to {
		return mongoerr.New(mongoerr.IllegalOperation, "Can't rename a collection to itself")
	}
	_, err := Apart(ctx, s, func(ctx context.Context, _ *struct{}) error { return s.rename(ctx, from, to, dropTarget, uuid) })
	return err
}

func (s *Store) rename(ctx context.Context, from, to namespace.NS, dropTarget bool, uuid [16]byte) error {
	found, release, err := s.lockToChange(ctx, from, to)
	if err != nil {
		return err
	}
	defer release()
	return s.renameLocked(ctx, rename{from, to, dropTarget, uuid}, found[0], found[1])
}

// RenameOver gives the collection called from the name of target, which is dropped. The caller, whose change this ends (Apart), holds target's
// locks, and had them before from was made: so locks are taken in the order of numbers.
func (s *Store) RenameOver(ctx context.Context, from namespace.NS, target Collection) error {
	found, release, err := s.lockToChange(ctx, from)
	if err != nil {
		return err
	}
	defer release()
	return s.renameLocked(ctx, rename{from: from, to: target.NS, dropTarget: true}, found[0], target.own)
}

// rename is what RenameAs is asked for.
type rename struct {
	from, to   namespace.NS
	dropTarget bool
	uuid       [16]byte
}

// renameLocked renames source, whose lock is held, as is that of target; nil where there is none.
func (s *Store) renameLocked(ctx context.Context, r rename, source, target *collection) error {
	switch {
	case source == nil:
		return mongoerr.New(mongoerr.NamespaceNotFound, "Source collection %s does not exist", r.from)
	case source.IsView():
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "cannot rename view: %s", r.from)
	case target != nil && target.IsView():
		return mongoerr.New(mongoerr.NamespaceExists, "a view already exists with that name: %s", r.to)
	case target != nil && !r.dropTarget:
		return mongoerr.New(mongoerr.NamespaceExists, "target namespace exists")
	}
	both := [...]*collection{source, target}
	for _, c := range both {
		if err := s.checkRename(c); err != nil {
			return err
		}
	}
	for _, c := range both {
		if err := c.refuseWhileBuilding(); err != nil {
			return err
		}
	}
	return s.ChangeLast(ctx, func(c *catalogchange.Change) error {
		var dropped *catalog.Collection
		if target != nil {
			dropped = target.Collection
		}
		return c.Rename(source.Collection, dropped, r.to, r.uuid)
	})
}

// checkRename refuses to rename the oplog, and what a member of a replica set keeps of sessions and of the set, or to put anything in their place.
func (s *Store) checkRename(c *collection) error {
	switch {
	case c == nil:
		return nil
	case c.IsOplog():
		return mongoerr.New(mongoerr.IllegalOperation, "can't rename live oplog while replicating")
	case s.options.Oplog != nil && c.OfReplicaSet():
		return mongoerr.New(mongoerr.IllegalOperation, "can't rename %s while replicating", c.NS)
	}
	return nil
}
