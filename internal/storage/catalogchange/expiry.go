package catalogchange

import (
	"maps"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// ordered gives a collection its order: the one it has as long as its index is there, otherwise by its first TTL index.
func (c *Change) ordered(coll *catalog.Collection) (*catalog.Collection, error) {
	next, err := c.orderOf(coll)
	if err != nil || next == coll.Order || next != nil && coll.Order != nil && *next == *coll.Order {
		return coll, err
	}
	return coll.WithOrder(next), nil
}

func (c *Change) orderOf(coll *catalog.Collection) (*catalog.Order, error) {
	return expiryorder.Choose(coll, c.catalog.ByID(coll.ID), c.NewIndexID)
}

// graced is a collection that is about to be put, with the graces of its TTLs.
func (c *Change) graced(coll *catalog.Collection) (*catalog.Collection, error) {
	old := c.catalog.ByID(coll.ID)
	if old == nil || coll.IsView() {
		return coll, nil
	}
	now := c.settings.Now()
	g := ttlchange.Graces{Now: now, Before: old.ExpiryRules(), After: coll.ExpiryRules(), Renews: c.Renew, End: c.settings.GraceEnd,
		Fresh: func() (policy.Grace, error) { return c.freshGrace(coll.ID, now) }}
	graces, err := g.Decide()
	if err != nil || maps.Equal(graces, coll.Graces) {
		return coll, err
	}
	return coll.WithGraces(graces), nil
}

// freshGrace is that of a TTL that is changed now; there is none where there are no documents.
func (c *Change) freshGrace(collection uint32, now int64) (g policy.Grace, err error) {
	length, asSleep := c.settings.Grace()
	if length <= 0 {
		return g, nil
	}
	documents, err := c.documents(collection)
	if err != nil || documents == 0 {
		return g, err
	}
	return policy.Grace{At: now, Until: now + length, AsSleep: asSleep}, nil
}

// GraceEnd is when g ends.
func (s *Settings) GraceEnd(g policy.Grace) int64 {
	if g.IsZero() {
		return 0
	}
	length, _ := s.Grace()
	return g.End(length)
}

// Reorder gives collections their order that were stored when there was none, or when it knew no cells.
func (c *Change) Reorder() error {
	for _, entry := range c.catalog.All() {
		if err := c.putIfReordered(entry); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) putIfReordered(entry *catalog.Collection) error {
	next, err := c.orderOf(entry)
	if err != nil || next == nil && entry.Order == nil || next != nil && entry.Order != nil && *next == *entry.Order {
		return err
	}
	return c.Put(entry.WithOrder(next))
}
