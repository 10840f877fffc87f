package storage

import "github.com/ebbdb/ebb/internal/namespace"

// Changes tells states of a collection apart: it is another one whenever a Commit has changed documents of the collection, and
// when another collection has its name. The zero value is of a collection that is not there.
type Changes struct {
	collection uint32
	commits    int64
}

// Changes is how often a collection has changed. What is read after it was asked for has all that it counts.
func (s *Store) Changes(ns namespace.NS) Changes {
	v := s.current.Load()
	c := v.catalog.Collection(ns)
	if c == nil || v.collections[c.ID] == nil {
		return Changes{}
	}
	return Changes{c.ID, v.collections[c.ID].state.writes.Load()}
}
