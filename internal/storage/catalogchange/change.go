// Package catalogchange is a change of the catalogue on its way: which collections, views and indexes there will be, how that is stored, what
// it means to others, and what it leaves to be removed. It does not know when nobody else changes the catalogue, nor when the change is
// committed.
package catalogchange

import (
	"errors"
	"math"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/garbage"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Settings are those of the store that a change goes by.
type Settings struct {
	// Indexes reads the specifications of indexes.
	Indexes *index.Parser
	// Now is the time in milliseconds since the epoch.
	Now func() int64
	// Grace is for how many milliseconds what a TTL makes due when it is made or shortened is not deleted, and whether that is as long
	// as ttlMonitorSleepSecs; 0 for not at all.
	Grace func() (millis int64, asSleep bool)
	// Room is the error of adding anything near the end of the disk.
	Room func() error
}

// Change is one commit of the catalogue on its way.
type Change struct {
	settings *Settings
	kv       kv.Txn
	catalog  *catalog.Catalog
	ddl      meaning.DDL // what it means
	garbage  []garbage.Item
	numbers  header.Numbers // the first that no collection and no index ever had; the transaction that has read them claims them
	// Renew says which rules get a grace though they were not tightened; nil for none.
	Renew func(was, rule *policy.Rule) bool
	// Kept says what is visible again that an index hid before the change, or for nil the collection's own TTL; nil for nothing.
	Kept func(d *index.Definition) *meaning.Kept
}

// New is a change of a catalogue that has done nothing yet and writes in t. Before it defines anything it takes numbers.
func New(s *Settings, t kv.Txn, c *catalog.Catalog) *Change {
	return &Change{settings: s, kv: t, catalog: c, ddl: meaning.DDL{Multikey: map[uint32]*multikey.Stored{}}}
}

// ReadNumbers reads the next numbers in a transaction, which writes them again by SetNumbers.
func (c *Change) ReadNumbers(t kv.Txn) (err error) {
	c.numbers, err = header.ReadNumbers(t)
	return err
}

// SetNumbers has the numbers that were taken be so.
func (c *Change) SetNumbers(t kv.Txn) { c.numbers.Set(t) }

// Catalog is what it has made of the catalogue.
func (c *Change) Catalog() *catalog.Catalog { return c.catalog }

// DDL is what it means.
func (c *Change) DDL() *meaning.DDL { return &c.ddl }

// Garbage is what is to be removed when it is committed.
func (c *Change) Garbage() []garbage.Item { return c.garbage }

// Put adds or replaces a collection, with the order that its indexes make of it, and the grace of TTLs that were changed.
func (c *Change) Put(coll *catalog.Collection) error {
	coll, err := c.ordered(coll)
	if err != nil {
		return err
	}
	if coll, err = c.graced(coll); err != nil {
		return err
	}
	c.catalog = c.catalog.With(coll)
	c.ddl.Steps = append(c.ddl.Steps, meaning.CatalogStep{Put: coll})
	c.kv.Set(layout.CollectionKey(coll.ID), coll.Document())
	if coll.IsOplog() {
		header.SetOplog(c.kv)
	}
	return nil
}

// Drop removes a collection and notes what remains of it.
func (c *Change) Drop(coll *catalog.Collection) {
	c.catalog = c.catalog.Without(coll)
	c.ddl.Steps = append(c.ddl.Steps, meaning.CatalogStep{Drop: coll.ID})
	c.kv.Delete(layout.CollectionKey(coll.ID))
	if !coll.IsView() {
		c.Discard(garbage.OfCollection(coll.ID))
	}
	for _, d := range coll.Indexes {
		c.Discard(garbage.OfIndex(d.ID))
	}
	c.Tell(meaning.CollectionDropped, coll, nil)
}

// Discard notes what is to be removed, by a worker or at the next start.
func (c *Change) Discard(g garbage.Item) {
	c.Note(g)
	c.garbage = append(c.garbage, g)
}

// Note makes g garbage for the next start.
func (c *Change) Note(g garbage.Item) { g.Note(c.kv) }

// Set writes an entry of an index that the change takes into use.
func (c *Change) Set(key, value []byte) { c.kv.Set(key, value) }

// TakeIndex takes an index into use whose entries, so many, are made or written by the change: it is noted as garbage no more.
func (c *Change) TakeIndex(collection, number uint32, bits *multikey.Stored, entries int64) error {
	documents, err := c.documents(collection)
	if err != nil {
		return err
	}
	garbage.OfIndex(number).Keep(c.kv)
	bits.Set(c.kv, number)
	c.ddl.Multikey[number] = bits
	if surplus := entries - documents; surplus != 0 {
		c.kv.Add(layout.CounterKey(nil, layout.OfIndex, number, layout.CountSurplus), surplus)
	}
	return nil
}

func (c *Change) documents(collection uint32) (int64, error) {
	return c.kv.Counter(layout.CounterKey(nil, layout.OfCollection, collection, layout.CountDocuments))
}

// Tell has those outside of the store be told what happens to a collection, or to an index of it.
func (c *Change) Tell(kind meaning.EventKind, coll *catalog.Collection, d *index.Definition) {
	e := meaning.Event{Kind: kind, Collection: coll.ID, UUID: coll.UUID, NS: coll.NS, Index: d}
	if c.Kept != nil {
		e.Kept = c.Kept(d)
	}
	c.ddl.Events = append(c.ddl.Events, e)
}

func (c *Change) newCollectionID() (uint32, error) { return takeNumber(&c.numbers.Collection) }

// NewIndexID is a number that no index has had.
func (c *Change) NewIndexID() (uint32, error) { return takeNumber(&c.numbers.Index) }

func takeNumber(next *uint32) (uint32, error) {
	n := *next
	if n == math.MaxUint32 {
		return 0, errors.New("storage: no number is left for another collection or index")
	}
	*next = n + 1
	return n, nil
}
