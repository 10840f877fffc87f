package ownership

import (
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// sole is the Ownership of a process that writes alone: all of it is in memory.
type sole struct {
	engine  kv.Engine
	catalog lock
	latches *latches
}

func (s *sole) Catalog() Lock { return &s.catalog }

func (s *sole) Latches() Latches { return s.latches }

func (s *sole) Collection(number uint32) Collection {
	return &soleCollection{sequence: sequence{engine: s.engine, collection: number, reserving: make(chan struct{}, 1)}}
}

// soleCollection is a Collection of sole.
type soleCollection struct {
	changing, writing lock
	sequence
	uniqueFloor
}

func (c *soleCollection) Changing() Lock { return &c.changing }

func (c *soleCollection) Writing() Lock { return &c.writing }

// Follow takes the numbers of others' records, and forgets which _ids are new where others have written some.
func (c *soleCollection) Follow(change *meaning.Change) {
	c.sequence.follow(change.LastSequence, change.Reserved)
	if change.Inserted && !change.Listed {
		c.uniqueFloor.forget()
	}
}
