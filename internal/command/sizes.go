package command

import "github.com/ebbdb/ebb/internal/storage"

// blockBytes is the least that a table takes, and what sizes are rounded up to.
const blockBytes = 4096

// storageSize is what a collection's records take on disk, packed as they are there. The engine's estimate leaves out what is
// still in its log and in memory; while that is all, it takes as much room as the documents.
func storageSize(s *storage.CollectionStats) int64 {
	if s.StorageBytes > 0 {
		return blocks(s.StorageBytes)
	}
	return blocks(s.DataBytes)
}

// entryBytes is a guess at what an entry takes that the engine has not written to a table yet.
const entryBytes = 16

func tableSize(s storage.IndexStats) int64 { return blocks(max(s.Bytes, s.Entries*entryBytes)) }

// indexSize is what all of a collection's indexes take on disk.
func indexSize(s *storage.CollectionStats) (n int64) {
	for _, i := range s.Indexes {
		n += tableSize(i)
	}
	return n
}

func blocks(n int64) int64 { return max(1, (n+blockBytes-1)/blockBytes) * blockBytes }
