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
	return s.create(ctx, func(c *catalogchange.Change) (*catalog.Collection, error) {
		return c.Create(ns, catalog.ReadOptions(options), catalog.NewUUID())
	})
}

// CreateCollectionAs makes a collection with the UUID that it had elsewhere. It fails with NamespaceExists when there is one of that
// name or with that UUID.
func (s *Store) CreateCollectionAs(ctx context.Context, ns namespace.NS, options bson.Doc, uuid [16]byte) (made *catalog.Collection, err error) {
	return s.create(ctx, func(c *catalogchange.Change) (*catalog.Collection, error) {
		if other := c.Catalog().ByUUID(uuid); other != nil {
			return nil, mongoerr.New(mongoerr.NamespaceExists, "Collection %s already has the UUID %s.", other.NS, catalog.UUIDText(uuid))
		}
		return c.Create(ns, catalog.ReadOptions(options), uuid)
	})
}

func (s *Store) create(ctx context.Context, f func(*catalogchange.Change) (*catalog.Collection, error)) (*catalog.Collection, error) {
	return Apart(ctx, s, func(ctx context.Context, made **catalog.Collection) error {
		return s.ChangeLast(ctx, func(c *catalogchange.Change) (err error) {
			*made, err = f(c)
			return err
		})
	})
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
