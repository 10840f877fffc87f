package meaning

import (
	"maps"
	"slices"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/multikey"
)

// DDL is what a Commit does to the catalogue.
type DDL struct {
	// Events are what it means to those who use the collections.
	Events []Event

	Steps []CatalogStep
	// Multikey is what is stored of indexes that are new.
	Multikey map[uint32]*multikey.Stored
}

// CatalogStep puts a collection into the catalogue or, where there is none, drops one.
type CatalogStep struct {
	Put  *catalog.Collection
	Drop uint32
}

// Add has what another one does come behind it. A collection is put once, as it is left in the end.
func (d *DDL) Add(next *DDL) {
	for _, step := range next.Steps {
		i := slices.IndexFunc(d.Steps, func(s CatalogStep) bool { return step.Put != nil && s.Put != nil && s.Put.ID == step.Put.ID })
		if i >= 0 {
			d.Steps[i] = step
		} else {
			d.Steps = append(d.Steps, step)
		}
	}
	d.Events = append(d.Events, next.Events...)
	maps.Copy(d.Multikey, next.Multikey)
}

// ApplyTo is the catalogue after the steps.
func (d *DDL) ApplyTo(c *catalog.Catalog) *catalog.Catalog {
	for _, step := range d.Steps {
		if step.Put != nil {
			c = c.With(step.Put)
		} else if gone := c.ByID(step.Drop); gone != nil {
			c = c.Without(gone)
		}
	}
	return c
}

// MultikeyOf is what is stored of a new index, in memory.
func (d *DDL) MultikeyOf(def *index.Definition) *multikey.Index {
	return d.Multikey[def.ID].InMemory(def)
}

// EventKind is what happened to a collection.
type EventKind uint8

// The kinds of events.
const (
	CollectionCreated EventKind = iota
	CollectionDropped
	CollectionRenamed
	CollectionModified
	IndexCreated
	IndexDropped
	// IndexModified: its TTL, whether it hides, or whether it is hidden.
	IndexModified
	// DatabaseDropped: with all that was in it, of which there are events too.
	DatabaseDropped
)

// Event is one change of the catalogue. Open cursors on what was dropped have to end.
type Event struct {
	Kind       EventKind
	Collection uint32
	UUID       [16]byte
	NS         namespace.NS
	// To is the new name of a renamed collection.
	To namespace.NS
	// Index is the index that was created, dropped or changed.
	Index *index.Definition
	// Kept says that what the TTL hid before the event is visible again by it. It is not encoded: it is for the entry alone.
	Kept *Kept
}

// Kept is what a change has made visible again.
type Kept struct {
	// Since is the earliest deadline, in milliseconds since the epoch, of what the collection stored.
	Since int64
}
