package storage

import (
	"context"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/validation"
)

// Validate reads a whole collection and all of its indexes, in one view, and checks that they agree in both directions:
// each record has all its entries and no entry is one too many; that counters and multikey bits are right; and that every
// document is well-formed BSON. conforms, unless it is nil, looks at each document and says what is wrong with it.
func (s *Store) Validate(ctx context.Context, ns namespace.NS, conforms func(bson.Doc) error) (*validation.Result, error) {
	v, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, ok := v.Collection(ns)
	if !ok {
		return nil, notFound(ns)
	}
	c, err := r.validated()
	if err != nil {
		return nil, err
	}
	c.Conforms = conforms
	return validation.Check(c)
}

// validated is the collection as validation knows it.
func (r *Reader) validated() (*validation.Collection, error) {
	c := &validation.Collection{Collection: r.c.Collection, Ctx: r.view.ctx, Snapshot: r.view.reader, Order: r.c.order, IsInPlace: r.c.placement.IsInPlace}
	stored, err := multikey.Read(r.view.reader)
	if err != nil {
		return nil, err
	}
	if c.Tombstones, err = r.swept(); err != nil {
		return nil, err
	}
	if c.Documents, c.Bytes, err = r.storedCounts(); err != nil {
		return nil, err
	}
	for _, ix := range r.c.indexes {
		counted, err := r.Entries(ix.Definition)
		if err != nil {
			return nil, err
		}
		c.Indexes = append(c.Indexes, validation.Index{Entries: ix.Entries, Multikey: ix.Multikey, Stored: stored[ix.ID].Of(ix.Definition), Counted: counted})
	}
	return c, nil
}
