package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
)

// CreateCollection makes a collection or view with options that the create command has found good. It fails with
// NamespaceExists when there is one of that name.
func (s *Store) CreateCollection(ctx context.Context, ns namespace.NS, options bson.Doc) (made *catalog.Collection, err error) {
	err = s.Change(ctx, func(c *catalogchange.Change) (err error) {
		made, err = c.Create(ns, catalog.ReadOptions(options), catalog.NewUUID())
		return err
	})
	return made, err
}

// CreateCollectionAs makes a collection with the UUID that it had elsewhere. It fails with NamespaceExists when there is one of that
// name or with that UUID.
func (s *Store) CreateCollectionAs(ctx context.Context, ns namespace.NS, options bson.Doc, uuid [16]byte) (made *catalog.Collection, err error) {
	err = s.Change(ctx, func(c *catalogchange.Change) (err error) {
		if other := c.Catalog().ByUUID(uuid); other != nil {
			return mongoerr.New(mongoerr.NamespaceExists, "Collection %s already has the UUID %s.", other.NS, catalog.UUIDText(uuid))
		}
		made, err = c.Create(ns, catalog.ReadOptions(options), uuid)
		return err
	})
	return made, err
}

// IDIndex is the index on _id that a collection begins with, without a number.
func (s *Store) IDIndex(coll *catalog.Collection) (*index.Definition, error) {
	return s.changes.IDIndex(coll)
}

// createImplicitly makes a plain collection for a first write, unless somebody just has.
func (s *Store) createImplicitly(ctx context.Context, ns namespace.NS) error {
	_, err := s.CreateCollection(ctx, ns, nil)
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}
