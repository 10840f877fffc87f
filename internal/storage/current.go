package storage

import "github.com/ebbdb/ebb/internal/catalog"

// Catalog is the catalogue as it is now. What is read by it may be gone by then: a View has the one that belongs to its
// data.
func (s *Store) Catalog() *catalog.Catalog { return s.current.Load().catalog }
