package storage

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/build"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/storage/placement"
	"github.com/ebbdb/ebb/internal/storage/visibility"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// version is one version of the catalogue with what the store keeps about each collection. It is not changed once it is
// published.
type version struct {
	own         ownership.Ownership // the store's
	catalog     *catalog.Catalog
	collections map[uint32]*collection
	oplog       *collection // or nil
	// transactions, images and preImages are what commits write to beside the oplog, or nil; see packages history and preimage.
	transactions, images, preImages *meaning.Target
}

// collection is one version of a collection.
type collection struct {
	*catalog.Collection
	state   *collectionState
	indexes []*indexwrite.Index // those that keep entries
	id      *indexwrite.Index   // the one on _id, nil when clustered or a time series
	rules   policy.Rules
	order   *expiryorder.Order // nil where records do not lie by a TTL's dates
	// idLength is the length of record ids, 0 when it varies.
	idLength  int
	placement placement.Placement
	// documentsKey and bytesKey are the keys of counters that nearly each commit changes.
	documentsKey, bytesKey []byte
	// target is the collection for commits that write to it of themselves; nil where none does.
	target *meaning.Target
	// frozen is the time after which nothing becomes hidden any more by this version's rules, in milliseconds, or 0: they are
	// about to be loosened, and what was hidden must not be seen again (package loosen).
	frozen atomic.Int64
}

// collectionState is what all versions of a collection share.
type collectionState struct {
	// own is what has to be agreed about with other writers; changing and lock are its Changing and Writing.
	own            ownership.Collection
	changing, lock ownership.Lock
	measured       atomic.Uint64 // numbers the measurements of a time series
	// trimmed is a record of a capped collection up to which all are gone; lock, held exclusively, guards it. The search for
	// the oldest begins there: what the engine keeps of deleted records would make it longer with each.
	trimmed RecordID
	inserts insertNotifier
	// builds are the index builds whose side tables writers fill; lock, held exclusively, guards it, and anybody may look.
	builds atomic.Pointer[[]*build.Underway]
	// undetermined counts the changes of its definition that are on their way still and whose writers have let go of the locks (version.doubt).
	undetermined atomic.Int32
	// writes counts commits, before the lock is given back.
	writes atomic.Int64
	// lastSweep is the number of the last sweep, among those of all collections.
	lastSweep   atomic.Uint64
	relocations visibility.Relocations
	// inOrder is the number of the order that all records are known to lie in, for views that began when there had been so many sweeps as
	// inOrderSince says, or more.
	inOrder      atomic.Uint32
	inOrderSince atomic.Uint64
	tombstones   visibility.Tombstones
}

// next is v with another catalogue: collections that did not change stay as they are, and of those that did what is
// collectionState does. made says that collections which v does not have were just made; fresh finds the multikey bits of indexes that
// it does not have.
func (v *version) next(c *catalog.Catalog, made bool, fresh func(*index.Definition) *multikey.Index) *version {
	n := &version{own: v.own, catalog: c, collections: make(map[uint32]*collection, len(v.collections)+1)}
	for _, entry := range c.All() {
		old := v.collections[entry.ID]
		if old == nil || old.Collection != entry {
			old = makeCollection(v.own, entry, old, made, fresh)
		}
		n.collections[entry.ID] = old
		switch {
		case entry.IsOplog():
			n.oplog = old
		case entry.IsHistory():
			n.keepHistories(old)
		}
	}
	return n
}

// keepHistories notes one of the collections of what commits write beside the oplog.
func (v *version) keepHistories(c *collection) {
	switch c.NS {
	case catalog.TransactionsNS:
		v.transactions = c.target
	case catalog.ImagesNS:
		v.images = c.target
	case catalog.PreImagesNS:
		v.preImages = c.target
	}
}

func makeCollection(all ownership.Ownership, entry *catalog.Collection, old *collection, made bool, fresh func(*index.Definition) *multikey.Index) *collection {
	c := &collection{Collection: entry, idLength: layout.SequenceLength}
	c.documentsKey = layout.CounterKey(nil, layout.OfCollection, entry.ID, layout.CountDocuments)
	c.bytesKey = layout.CounterKey(nil, layout.OfCollection, entry.ID, layout.CountBytes)
	if old != nil {
		c.state = old.state
	} else {
		own := all.Collection(entry.ID)
		c.state = &collectionState{own: own, changing: own.Changing(), lock: own.Writing()}
	}
	if entry.IsClustered() || entry.IsTimeSeries() {
		c.idLength = 0
	}
	for _, d := range entry.Indexes {
		if !d.Built() {
			continue
		}
		ix := &indexwrite.Index{Entries: layout.Entries{Definition: d, IDLength: c.idLength}, Roots: d.Roots()}
		if o := old.index(d.ID); o != nil {
			ix.Multikey = o.Multikey
		} else {
			ix.Multikey = fresh(d)
		}
		c.indexes = append(c.indexes, ix)
		if d.IsID() {
			c.id = ix
		}
	}
	var ids *layout.Entries
	if c.id != nil {
		ids = &c.id.Entries
	}
	c.placement = placement.New(entry, ids)
	c.rules = entry.ExpiryRules()
	c.order = makeExpiryOrder(c, old, made)
	if entry.IsOplog() || entry.IsHistory() {
		c.target = &meaning.Target{ID: c.ID, DocumentsKey: c.documentsKey, BytesKey: c.bytesKey, AppendID: c.placement.AppendID}
	}
	return c
}

func (c *collection) index(id uint32) *indexwrite.Index {
	if c == nil {
		return nil
	}
	for _, ix := range c.indexes {
		if ix.ID == id {
			return ix
		}
	}
	return nil
}

// makeExpiryOrder is the order of a collection in memory.
func makeExpiryOrder(c, old *collection, made bool) *expiryorder.Order {
	o := expiryorder.New(c.Collection, c.rules)
	switch {
	case o == nil:
	case old != nil && old.order != nil && old.order.Number == o.Number:
		o.Histogram = old.order.Histogram
	default: // of a new collection, and under a new number, nothing is there yet
		o.Histogram = expiryorder.NewHistogram(made && old == nil || old != nil && !o.Clustered)
	}
	return o
}
