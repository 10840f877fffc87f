package ownership

import "github.com/ebbdb/ebb/internal/storage/meaning"

// Unshared is all for one whose collections, those that it asks for from now on, nobody else knows of: a transaction that makes them.
// There is nothing to agree about in them, and nothing of them is in the store before the transaction is committed.
func Unshared(all Ownership) Ownership { return unshared{all} }

type unshared struct{ Ownership }

func (unshared) Collection(uint32) Collection { return &unsharedCollection{} }

// unsharedCollection is a Collection that began empty and that one goroutine at a time writes to.
type unsharedCollection struct {
	changing, writing lock
	last              uint64
	uniqueFloor
}

func (c *unsharedCollection) Changing() Lock { return &c.changing }

func (c *unsharedCollection) Writing() Lock { return &c.writing }

func (c *unsharedCollection) NextNumber(bool) (uint64, error) {
	c.last++
	return c.last, nil
}

// SecureNumbers does nothing: who commits the collection reserves what is in use (Reserve).
func (c *unsharedCollection) SecureNumbers() error { return nil }

func (c *unsharedCollection) LastNumber() (uint64, error) { return c.last, nil }

// Follow does nothing: what the commit means is followed by those who learn of the collection.
func (c *unsharedCollection) Follow(*meaning.Change) {}
