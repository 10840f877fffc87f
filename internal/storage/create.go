package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// CreateCollection makes a collection or view with options that the create command has found good. It fails with
// NamespaceExists when there is one of that name.
func (s *Store) CreateCollection(ctx context.Context, ns namespace.NS, options bson.Doc) (made *catalog.Collection, err error) {
	err = s.Change(ctx, func(c *Change) (err error) {
		made, err = c.create(ns, catalog.ReadOptions(options), catalog.NewUUID())
		return err
	})
	return made, err
}

// CreateCollectionAs makes a collection with the UUID that it had elsewhere. It fails with NamespaceExists when there is one of that
// name or with that UUID.
func (s *Store) CreateCollectionAs(ctx context.Context, ns namespace.NS, options bson.Doc, uuid [16]byte) (made *catalog.Collection, err error) {
	err = s.Change(ctx, func(c *Change) (err error) {
		if other := c.catalog.ByUUID(uuid); other != nil {
			return mongoerr.New(mongoerr.NamespaceExists, "Collection %s already has the UUID %s.", other.NS, catalog.UUIDText(uuid))
		}
		made, err = c.create(ns, catalog.ReadOptions(options), uuid)
		return err
	})
	return made, err
}

func (c *Change) create(ns namespace.NS, o catalog.Options, uuid [16]byte) (*catalog.Collection, error) {
	if err := c.catalog.CheckCreate(ns); err != nil {
		return nil, err
	}
	if c.catalog.Collection(ns) != nil {
		return nil, mongoerr.New(mongoerr.NamespaceExists, "Collection %s already exists.", ns)
	}
	if err := c.store.room(0); err != nil {
		return nil, err
	}
	id, err := c.newCollectionID()
	if err != nil {
		return nil, err
	}
	coll := &catalog.Collection{ID: id, NS: ns, UUID: uuid, Options: o}
	coll.CollatedIDs = coll.IsClustered() && o.Collation != nil
	if err := c.addFirstIndex(coll); err != nil {
		return nil, err
	}
	if err := c.Put(coll); err != nil {
		return nil, err
	}
	c.Tell(meaning.CollectionCreated, coll, nil)
	return coll, nil
}

// addFirstIndex gives a new collection the index that it has from the beginning.
func (c *Change) addFirstIndex(coll *catalog.Collection) error {
	switch {
	case coll.IsView() || coll.IsClustered() || coll.IsOplog():
		return nil
	case coll.IsTimeSeries():
		return c.addSeriesIndex(coll)
	}
	return c.addIDIndex(coll)
}

// addIDIndex gives a new collection its index on _id, which orders as the collection does.
func (c *Change) addIDIndex(coll *catalog.Collection) error {
	d, err := c.store.IDIndex(coll)
	if err != nil {
		return err
	}
	return c.addIndex(coll, d)
}

// IDIndex is the index on _id that a collection begins with, without a number.
func (s *Store) IDIndex(coll *catalog.Collection) (*index.Definition, error) {
	spec := bson.Build().Int32("v", 2).Object("key").Int32("_id", 1).End().String("name", "_id_").Doc()
	return s.options.Indexes.Parse(spec, coll.Options.Collation)
}

func (c *Change) addIndex(coll *catalog.Collection, d *index.Definition) error {
	id, err := c.NewIndexID()
	if err == nil {
		coll.Indexes = append(coll.Indexes, d.WithID(id))
	}
	return err
}

// createImplicitly makes a plain collection for a first write, unless somebody just has.
func (s *Store) createImplicitly(ctx context.Context, ns namespace.NS) error {
	_, err := s.CreateCollection(ctx, ns, nil)
	if mongoerr.Is(err, mongoerr.NamespaceExists) {
		return nil
	}
	return err
}
