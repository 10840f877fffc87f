package storage

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/index"
)

// The first byte of every key.
const (
	recordPrefix  = 'r'
	idPrefix      = 'i'
	indexPrefix   = 'x'
	counterPrefix = 'c'
	metaPrefix    = 'm'
)

// What follows metaPrefix.
const (
	metaFormat     = 'f' // the format version
	metaNext       = 'n' // the next free numbers
	metaCollection = 'c' // | collection
	metaMultikey   = 'k' // | index | field | component, or | index | onePath | path, or | index | everyPath
	metaGarbage    = 'g' // | kind | number
	metaSequence   = 'q' // | collection
	metaTombstones = 's' // | collection
	metaCompaction = 'w' // | index
	metaTime       = 't' // the latest time seen
	metaHold       = 'h' // where the clock of expiry stands still
)

// Kinds of garbage and of counters' owners.
const (
	ofCollection = 'r'
	ofIndex      = 'x'
)

// Counters.
const (
	countDocuments = 'n'
	countBytes     = 'b'
	countExpired   = 'd' // documents that expired and were deleted, ever
	countSurplus   = 'e' // an index's entries minus its collection's documents
)

// The spans of a TTL index on _ts.
const (
	onDefault  = 1
	onOverride = 2
)

func numbered(dst []byte, prefix byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, prefix), number)
}

// recordKey appends the key of a record; without an id it is the start of the collection's records.
func recordKey(dst []byte, collection uint32, id RecordID) []byte {
	return append(numbered(dst, recordPrefix, collection), id...)
}

const tableLength = 5 // of the prefix of a record store or an index

// tableKey appends the start of an index's entries.
func tableKey(dst []byte, d *index.Definition) []byte {
	if d.IsID() {
		return numbered(dst, idPrefix, d.ID)
	}
	return numbered(dst, indexPrefix, d.ID)
}

// holdsIDs says whether the entries of d carry the record id in their value, so that a key string exists once.
func holdsIDs(d *index.Definition) bool { return d.Unique || d.IsID() }

func counterKey(dst []byte, owner byte, number uint32, what byte) []byte {
	return append(numbered(append(dst, counterPrefix), owner, number), what)
}

func formatKey() []byte { return []byte{metaPrefix, metaFormat} }

func nextKey() []byte { return []byte{metaPrefix, metaNext} }

func collectionKey(id uint32) []byte { return numbered([]byte{metaPrefix}, metaCollection, id) }

func multikeyKey(id uint32, field, component int) []byte {
	return append(numbered([]byte{metaPrefix}, metaMultikey, id), byte(field), byte(component))
}

// What stands in the place of a field in the multikey keys of a wildcard index; fields are fewer.
const (
	onePath   = 0xFF
	everyPath = 0xFE
)

func multikeyPathKey(id uint32, which byte, path string) []byte {
	return append(append(numbered([]byte{metaPrefix}, metaMultikey, id), which), path...)
}

func garbageKey(kind byte, number uint32) []byte {
	return numbered([]byte{metaPrefix, metaGarbage}, kind, number)
}

// deadlineKey appends the key of an entry in a TTL index on _ts; id may be empty for a bound.
func deadlineKey(dst []byte, d *index.Definition, span byte, millis int64, id RecordID) []byte {
	dst = append(tableKey(dst, d), span)
	return append(appendMillis(dst, millis), id...)
}

// appendMillis appends a time so that bytes sort as times do, those before 1970 first.
func appendMillis(dst []byte, millis int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(millis)^(1<<63))
}

func readMillis(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ (1 << 63)) }

// After is the first position behind every key that starts with prefix: the exclusive bound that includes all entries of
// a key string, whatever record they belong to. It is nil when there is no such position.
func After(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != math.MaxUint8 {
			end := append(make([]byte, 0, i+1), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
