package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// CollectionStats is what a collection holds and takes.
type CollectionStats struct {
	// Documents are the visible ones; Stored counts expired ones that are still there too.
	Documents, Stored int64
	// DataBytes is the size of all stored documents.
	DataBytes int64
	// StorageBytes estimates what the records take on disk.
	StorageBytes int64
	Indexes      []IndexStats // in the catalogue's order
}

// IndexStats is what an index holds and takes.
type IndexStats struct {
	Name    string
	Entries int64
	// Bytes estimates what the entries take on disk.
	Bytes int64
}

// IndexBytes estimates what all indexes take on disk.
func (c *CollectionStats) IndexBytes() (n int64) {
	for _, i := range c.Indexes {
		n += i.Bytes
	}
	return n
}

// Stats measures one collection. ok is false when there is none of that name, or it is a view.
func (s *Store) Stats(ctx context.Context, ns namespace.NS) (stats *CollectionStats, ok bool, err error) {
	v, err := s.View(ctx)
	if err != nil {
		return nil, false, err
	}
	defer v.Close()
	r, ok := v.Collection(ns)
	if !ok {
		return nil, false, nil
	}
	stats, err = r.Stats()
	return stats, err == nil, err
}

// Stats measures the collection.
func (r *Reader) Stats() (*CollectionStats, error) {
	out := &CollectionStats{}
	var err error
	if out.Stored, out.DataBytes, err = r.storedCounts(); err != nil {
		return nil, err
	}
	if out.Documents, err = r.Count(); err != nil {
		return nil, err
	}
	engine := r.view.store.engine
	if out.StorageBytes, err = sizeOf(engine, layout.RecordKey(nil, r.c.ID, nil)); err != nil {
		return nil, err
	}
	for _, d := range r.c.Indexes {
		n, err := r.indexStats(engine, d)
		if err != nil {
			return nil, err
		}
		out.Indexes = append(out.Indexes, n)
	}
	return out, nil
}

func (r *Reader) indexStats(engine kv.Engine, d *index.Definition) (n IndexStats, err error) {
	n.Name = d.Name
	if n.Entries, err = r.Entries(d); err != nil {
		return n, err
	}
	n.Bytes, err = sizeOf(engine, layout.TableKey(nil, d))
	return n, err
}

// Compact gives back the room that nothing in the collection and its indexes takes any more, and says how much that was.
func (r *Reader) Compact(ctx context.Context) (freed int64, err error) {
	engine := r.view.store.engine
	starts := [][]byte{layout.RecordKey(nil, r.c.ID, nil)}
	for _, d := range r.c.Indexes {
		starts = append(starts, layout.TableKey(nil, d))
	}
	for _, start := range starts {
		before, err := sizeOf(engine, start)
		if err != nil {
			return freed, err
		}
		if err := engine.Compact(ctx, start, layout.After(start)); err != nil {
			return freed, fmt.Errorf("storage: compact: %w", err)
		}
		after, err := sizeOf(engine, start)
		if err != nil {
			return freed, err
		}
		freed += max(0, before-after)
	}
	return freed, nil
}

func sizeOf(engine kv.Engine, start []byte) (int64, error) {
	n, err := engine.SizeOf(start, layout.After(start))
	if err != nil {
		return 0, fmt.Errorf("storage: measure: %w", err)
	}
	return n, nil
}
