// Package catalog is what databases, collections and views there are, as immutable data: a change makes a new Catalog
// that shares all that did not change. It knows nothing of documents, of how a catalogue is stored, or of locks.
package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Catalog is one version of the catalogue. It is never changed; With, Without and Replace return new versions.
type Catalog struct {
	databases map[string]*database
	byID      map[uint32]*Collection
}

// database exists as long as it has a collection.
type database struct {
	collections map[string]*Collection
}

// Collection is a collection or a view. It is not changed once it is in a Catalog.
type Collection struct {
	// ID is the collection's number in the store, never used twice.
	ID      uint32
	NS      namespace.NS
	UUID    [16]byte
	Options Options
	// Indexes are the ready ones in order of creation. A plain collection's first is the one on _id; a clustered
	// collection and a time series have none on _id and a view none at all.
	Indexes []*index.Definition
	// CollatedIDs says that a clustered collection is ordered by _id under its collation; those of the first servers are
	// ordered by bytes.
	CollatedIDs bool
	// Order is how the records of a collection with a TTL index lie; nil where that is the order of insertion, or of _id.
	Order *Order
	// Graces are those of TTLs that were made or shortened a short while ago, by the number of their index, 0 for the collection's
	// own; some may have ended.
	Graces map[uint32]policy.Grace
}

// Order says that records lie in the order of the dates that a TTL index expires them by.
type Order struct {
	// Number tells the ids that were made under this order from all others; numbers grow, and are not used twice.
	Number uint32
	// Index is the number of the TTL index.
	Index uint32
	// Cell is how many milliseconds the place of a changed document may lie behind its date, where it has no ttl of its own; 0
	// when all places are exact. It never falls while the order has the same number.
	Cell int64
}

// New is an empty catalogue.
func New() *Catalog {
	return &Catalog{databases: map[string]*database{}, byID: map[uint32]*Collection{}}
}

// Collection is the collection or view called ns, or nil.
func (c *Catalog) Collection(ns namespace.NS) *Collection {
	db := c.databases[ns.DB]
	if db == nil {
		return nil
	}
	return db.collections[ns.Coll]
}

// ByID is the collection with the number id, or nil.
func (c *Catalog) ByID(id uint32) *Collection { return c.byID[id] }

// ByUUID is the collection with the uuid, or nil.
func (c *Catalog) ByUUID(uuid [16]byte) *Collection {
	for _, coll := range c.byID {
		if coll.UUID == uuid {
			return coll
		}
	}
	return nil
}

// Databases are the names of all databases, sorted.
func (c *Catalog) Databases() []string { return slices.Sorted(maps.Keys(c.databases)) }

// HasDatabase says whether db exists: whether it has a collection.
func (c *Catalog) HasDatabase(db string) bool { return c.databases[db] != nil }

// Collections are the collections and views of db, sorted by name.
func (c *Catalog) Collections(db string) []*Collection {
	d := c.databases[db]
	if d == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(d.collections), func(a, b *Collection) int {
		return strings.Compare(a.NS.Coll, b.NS.Coll)
	})
}

// All are all collections and views, sorted by number.
func (c *Catalog) All() []*Collection {
	return slices.SortedFunc(maps.Values(c.byID), func(a, b *Collection) int { return int(a.ID) - int(b.ID) })
}

// With is c with coll added, or put in the place of the one with its number (under another name perhaps).
func (c *Catalog) With(coll *Collection) *Catalog {
	next := c
	if old := c.byID[coll.ID]; old != nil {
		next = c.Without(old)
	}
	n := &Catalog{databases: maps.Clone(next.databases), byID: maps.Clone(next.byID)}
	d := &database{collections: map[string]*Collection{}}
	if old := n.databases[coll.NS.DB]; old != nil {
		d.collections = maps.Clone(old.collections)
	}
	if d.collections[coll.NS.Coll] != nil {
		panic("catalog: " + coll.NS.String() + " is taken")
	}
	d.collections[coll.NS.Coll] = coll
	n.databases[coll.NS.DB], n.byID[coll.ID] = d, coll
	return n
}

// Without is c without the collection that has coll's number; the last one takes its database along.
func (c *Catalog) Without(coll *Collection) *Catalog {
	old := c.byID[coll.ID]
	if old == nil {
		return c
	}
	n := &Catalog{databases: maps.Clone(c.databases), byID: maps.Clone(c.byID)}
	delete(n.byID, old.ID)
	d := &database{collections: maps.Clone(n.databases[old.NS.DB].collections)}
	delete(d.collections, old.NS.Coll)
	if len(d.collections) == 0 {
		delete(n.databases, old.NS.DB)
	} else {
		n.databases[old.NS.DB] = d
	}
	return n
}

// IsView says whether coll is a view.
func (coll *Collection) IsView() bool { return coll.Options.ViewOn != "" }

// IsClustered says whether coll keeps its documents in the order of _id, without an index on it.
func (coll *Collection) IsClustered() bool { return coll.Options.Clustered != nil }

// Names of the server's own.
const (
	// LocalDB is the database of what only this server knows.
	LocalDB = "local"
	// ProfileCollection is where each database's profiler writes.
	ProfileCollection = "system.profile"
)

// SearchIndexesNS is where the definitions of search indexes are kept.
var SearchIndexesNS = namespace.NS{DB: "config", Coll: "searchIndexes"}

// OplogNS is the name of the oplog.
var OplogNS = namespace.NS{DB: LocalDB, Coll: "oplog.rs"}

// TransactionsNS and ImagesNS are where a member of a replica set keeps what sessions wrote last, and the images of their findAndModify.
// PreImagesNS is where it keeps documents as they were before changes, for change streams.
var (
	TransactionsNS = namespace.NS{DB: "config", Coll: "transactions"}
	ImagesNS       = namespace.NS{DB: "config", Coll: "image_collection"}
	PreImagesNS    = namespace.NS{DB: "config", Coll: "system.preimages"}
)

// IsHistory says whether coll is one of those, and not a collection that happens to have the name.
func (coll *Collection) IsHistory() bool {
	return coll.IsClustered() && (coll.NS == TransactionsNS || coll.NS == ImagesNS || coll.NS == PreImagesNS)
}

// ReplicaConfigNS and ElectionNS are where a member keeps the configuration of its replica set, and the term of its last election.
var (
	ReplicaConfigNS = namespace.NS{DB: LocalDB, Coll: "system.replset"}
	ElectionNS      = namespace.NS{DB: LocalDB, Coll: "replset.election"}
)

// OfReplicaSet says whether coll is what a server keeps as the member of a replica set. It means nothing to another server.
func (coll *Collection) OfReplicaSet() bool {
	return coll.IsOplog() || coll.IsHistory() || coll.NS == ReplicaConfigNS || coll.NS == ElectionNS
}

// IsOplog says whether coll is the oplog, which only commits write to, and not a collection that happens to have its name.
func (coll *Collection) IsOplog() bool { return coll.Options.NoIDIndex && coll.NS == OplogNS }

// Index is the index called name, or nil.
func (coll *Collection) Index(name string) *index.Definition {
	for _, d := range coll.Indexes {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// IndexByID is the index with the number id, or nil.
func (coll *Collection) IndexByID(id uint32) *index.Definition {
	for _, d := range coll.Indexes {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// IDIndex is the index on _id, or nil where there is none.
func (coll *Collection) IDIndex() *index.Definition {
	if len(coll.Indexes) > 0 && coll.Indexes[0].IsID() {
		return coll.Indexes[0]
	}
	return nil
}

// WithIndexes is coll with other indexes.
func (coll *Collection) WithIndexes(defs []*index.Definition) *Collection {
	c := *coll
	c.Indexes = defs
	return &c
}

// WithOptions is coll with other options.
func (coll *Collection) WithOptions(o Options) *Collection {
	c := *coll
	c.Options = o
	return &c
}

// WithOrder is coll with its records in another order.
func (coll *Collection) WithOrder(o *Order) *Collection {
	c := *coll
	c.Order = o
	return &c
}

// WithGraces is coll with other graces.
func (coll *Collection) WithGraces(graces map[uint32]policy.Grace) *Collection {
	c := *coll
	c.Graces = graces
	return &c
}

// WithName is coll under another name.
func (coll *Collection) WithName(ns namespace.NS) *Collection {
	c := *coll
	c.NS = ns
	return &c
}
