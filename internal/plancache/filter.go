package plancache

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
)

// MaxFilters is how many index filters a collection can have.
const MaxFilters = 5000

// Filter is an index filter: the only indexes that operations of a shape may use.
type Filter struct {
	Shape Shape
	// Query, Sort, Projection and Collation are the operation that the filter was set by; Collation may be nil.
	Query, Sort, Projection, Collation bson.Doc
	// Indexes are names and key patterns, as an array.
	Indexes bson.Doc
}

// Allows says whether the index may be used.
func (f *Filter) Allows(name string, key bson.Doc) bool { return Names(f.Indexes, name, key) }

// Names says whether one of a list of names and key patterns is the index.
func Names(list bson.Doc, name string, key bson.Doc) bool {
	for it := list.Iter(); it.Next(); {
		switch v := it.Value(); v.Type {
		case bson.TypeString:
			if v.Str() == name {
				return true
			}
		case bson.TypeObject:
			if bson.CompareDocs(v.Doc(), key, nil) == 0 {
				return true
			}
		}
	}
	return false
}

// HasFilters says whether there is any index filter, so that others need not make out a query's shape.
func (c *Cache) HasFilters() bool { return c.filtered.Load() > 0 }

// Filter is the index filter for the shape, nil when there is none.
func (c *Cache) Filter(s Shape) *Filter {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.mu.filters {
		if f.Shape == s {
			return &f
		}
	}
	return nil
}

// Filters are all index filters, in the order in which they were first set.
func (c *Cache) Filters() []Filter {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.filters)
}

// SetFilter adds or replaces the filter of a shape, and forgets the shape's plans. ok is false when there are too many.
func (c *Cache) SetFilter(f Filter) (ok bool) {
	if !c.setFilter(f) {
		return false
	}
	c.ClearShape(f.Shape)
	return true
}

func (c *Cache) setFilter(f Filter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.mu.filters, func(g Filter) bool { return g.Shape == f.Shape })
	switch {
	case i >= 0:
		c.mu.filters[i] = f
	case len(c.mu.filters) == MaxFilters:
		return false
	default:
		c.mu.filters = append(c.mu.filters, f)
	}
	c.filtered.Store(int32(len(c.mu.filters)))
	return true
}

// ClearFilter takes the filter of a shape away, and forgets the shape's plans.
func (c *Cache) ClearFilter(s Shape) {
	c.keepFilters(func(f Filter) bool { return f.Shape != s })
	c.ClearShape(s)
}

// ClearFilters takes all filters away, and forgets all plans.
func (c *Cache) ClearFilters() {
	c.keepFilters(func(Filter) bool { return false })
	c.Clear()
}

func (c *Cache) keepFilters(keep func(Filter) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.filters = slices.DeleteFunc(c.mu.filters, func(f Filter) bool { return !keep(f) })
	c.filtered.Store(int32(len(c.mu.filters)))
}
