package catalogchange

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// Create makes a collection or view. It fails with NamespaceExists when there is one of that name.
func (c *Change) Create(ns namespace.NS, o catalog.Options, uuid [16]byte) (*catalog.Collection, error) {
	if err := c.catalog.CheckCreate(ns); err != nil {
		return nil, err
	}
	if c.catalog.Collection(ns) != nil {
		return nil, mongoerr.New(mongoerr.NamespaceExists, "Collection %s already exists.", ns)
	}
	if err := c.settings.Room(); err != nil {
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
	d, err := c.settings.IDIndex(coll)
	if err != nil {
		return err
	}
	return c.addIndex(coll, d)
}

// IDIndex is the index on _id that a collection begins with, without a number.
func (s *Settings) IDIndex(coll *catalog.Collection) (*index.Definition, error) {
	spec := bson.Build().Int32("v", 2).Object("key").Int32("_id", 1).End().String("name", "_id_").Doc()
	return s.Indexes.Parse(spec, coll.Options.Collation)
}

func (c *Change) addIndex(coll *catalog.Collection, d *index.Definition) error {
	id, err := c.NewIndexID()
	if err == nil {
		coll.Indexes = append(coll.Indexes, d.WithID(id))
	}
	return err
}

// addSeriesIndex gives a new time series its index on the meta field and the time.
func (c *Change) addSeriesIndex(coll *catalog.Collection) error {
	t := coll.Options.TimeSeries
	if t.MetaField == "" || t.MetaField == t.TimeField || t.MetaField == "_id" {
		return nil
	}
	spec := bson.Build().Int32("v", 2).Object("key").Int32(t.MetaField, 1).Int32(t.TimeField, 1).End().
		String("name", t.MetaField+"_1_"+t.TimeField+"_1").Doc()
	d, err := c.settings.Indexes.Parse(spec, coll.Options.Collation)
	if err != nil {
		return err
	}
	return c.addIndex(coll, d)
}

// Rename gives a collection another name, in the same database or another; there it gets uuid, as MongoDB's copy would have one of its own. target,
// which has the name, is dropped; nil where none has. It is not temporary any more.
func (c *Change) Rename(source, target *catalog.Collection, to namespace.NS, uuid [16]byte) error {
	if target != nil {
		c.Drop(target)
	}
	if err := c.catalog.CheckCreate(to); err != nil {
		return err
	}
	if c.catalog.Collection(to) != nil {
		return mongoerr.New(mongoerr.NamespaceExists, "target namespace exists")
	}
	renamed := source.WithName(to)
	if renamed.Options.Temp {
		renamed = renamed.WithOptions(catalog.ReadOptions(catalog.WithTemp(renamed.Options.Doc, false)))
	}
	if source.NS.DB != to.DB {
		if other := c.catalog.ByUUID(uuid); other != nil {
			return mongoerr.New(mongoerr.NamespaceExists, "Collection %s already has the UUID %s.", other.NS, catalog.UUIDText(uuid))
		}
		renamed.UUID = uuid
	}
	if err := c.Put(renamed); err != nil {
		return err
	}
	c.ddl.Events = append(c.ddl.Events, meaning.Event{Kind: meaning.CollectionRenamed, Collection: source.ID, UUID: source.UUID, NS: source.NS, To: to})
	return nil
}

// DropDatabase drops all collections and views of a database, and returns them.
func (c *Change) DropDatabase(db string) []*catalog.Collection {
	all := c.catalog.Collections(db)
	for _, coll := range all {
		c.Drop(coll)
	}
	if len(all) > 0 {
		c.ddl.Events = append(c.ddl.Events, meaning.Event{Kind: meaning.DatabaseDropped, NS: namespace.NS{DB: db}})
	}
	return all
}
