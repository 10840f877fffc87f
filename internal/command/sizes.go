package command

import (
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage"
)

// collectionStats is what a collection holds and takes.
type collectionStats struct {
	// Documents are the visible ones; Stored counts expired ones that are still there too.
	Documents, Stored int64
	// DataBytes is the size of all stored documents.
	DataBytes int64
	// StorageBytes estimates what the records take on disk.
	StorageBytes int64
	Indexes      []indexStats // in the catalogue's order
}

// indexStats is what an index holds and takes.
type indexStats struct {
	Name    string
	Entries int64
	// Bytes estimates what the entries take on disk.
	Bytes int64
}

// measure measures a collection.
func measure(r *storage.Reader) (*collectionStats, error) {
	out := &collectionStats{}
	var err error
	if out.Stored, err = r.Stored(); err != nil {
		return nil, err
	}
	if out.DataBytes, err = r.Bytes(); err != nil {
		return nil, err
	}
	if out.Documents, err = r.Count(); err != nil {
		return nil, err
	}
	if out.StorageBytes, err = r.DiskBytes(); err != nil {
		return nil, err
	}
	for _, d := range r.Catalog().Indexes {
		n, err := measureIndex(r, d)
		if err != nil {
			return nil, err
		}
		out.Indexes = append(out.Indexes, n)
	}
	return out, nil
}

func measureIndex(r *storage.Reader, d *index.Definition) (n indexStats, err error) {
	n.Name = d.Name
	if n.Entries, err = r.Entries(d); err != nil {
		return n, err
	}
	n.Bytes, err = r.IndexDiskBytes(d)
	return n, err
}

// blockBytes is the least that a table takes, and what sizes are rounded up to.
const blockBytes = 4096

// storageSize is what a collection's records take on disk, packed as they are there. The engine's estimate leaves out what is
// still in its log and in memory; while that is all, it takes as much room as the documents.
func storageSize(s *collectionStats) int64 {
	if s.StorageBytes > 0 {
		return blocks(s.StorageBytes)
	}
	return blocks(s.DataBytes)
}

// entryBytes is a guess at what an entry takes that the engine has not written to a table yet.
const entryBytes = 16

func tableSize(s indexStats) int64 { return blocks(max(s.Bytes, s.Entries*entryBytes)) }

// indexSize is what all of a collection's indexes take on disk.
func indexSize(s *collectionStats) (n int64) {
	for _, i := range s.Indexes {
		n += tableSize(i)
	}
	return n
}

func blocks(n int64) int64 { return max(1, (n+blockBytes-1)/blockBytes) * blockBytes }
