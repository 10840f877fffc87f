package plancache

import "sync"

// Caches are those of all collections, by number. The zero value is empty.
type Caches struct {
	byID sync.Map // uint32 → *Cache
}

// Of is the cache of the collection with the number id.
func (c *Caches) Of(id uint32) *Cache {
	if found, ok := c.byID.Load(id); ok {
		return found.(*Cache)
	}
	made, _ := c.byID.LoadOrStore(id, &Cache{})
	return made.(*Cache)
}

// Clear forgets the plans of a collection whose indexes or options have changed.
func (c *Caches) Clear(id uint32) {
	if found, ok := c.byID.Load(id); ok {
		found.(*Cache).Clear()
	}
}

// Forget forgets all of a collection, index filters too: it is gone.
func (c *Caches) Forget(id uint32) { c.byID.Delete(id) }
