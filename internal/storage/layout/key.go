package layout

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/index"
)

// The first byte of every key.
const (
	RecordPrefix  = 'r'
	IDPrefix      = 'i'
	IndexPrefix   = 'x'
	CounterPrefix = 'c'
	MetaPrefix    = 'm'
)

// What follows MetaPrefix.
const (
	MetaFormat     = 'f' // the format version
	MetaNext       = 'n' // the next free numbers
	MetaCollection = 'c' // | collection
	MetaMultikey   = 'k' // | index | field | component, or | index | OnePath | path, or | index | EveryPath
	MetaGarbage    = 'g' // | kind | number
	MetaSequence   = 'q' // | collection
	MetaTombstones = 's' // | collection
	MetaCompaction = 'w' // | index
	MetaTime       = 't' // the latest time seen
	MetaCommit     = 'l' // the number and the time of the last commit
	MetaHold       = 'h' // where the clock of expiry stands still
)

// Kinds of garbage and of counters' owners.
const (
	OfCollection = 'r'
	OfIndex      = 'x'
)

// Counters.
const (
	CountDocuments = 'n'
	CountBytes     = 'b'
	CountExpired   = 'd' // documents that expired and were deleted, ever
	CountSurplus   = 'e' // an index's entries minus its collection's documents
)

// Numbered appends what the keys of a kind begin with that belong to a collection or an index.
func Numbered(dst []byte, prefix byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, prefix), number)
}

// RecordKey appends the key of a record; without an id it is the start of the collection's records.
func RecordKey(dst []byte, collection uint32, id RecordID) []byte {
	return append(Numbered(dst, RecordPrefix, collection), id...)
}

// TableLength is the length of what all keys of a record store or an index begin with.
const TableLength = 5

// RegionPrefix is what the keys begin with that lie together with key: those of its record store or index, or all of its kind.
func RegionPrefix(key []byte) []byte {
	switch {
	case len(key) < TableLength:
	case key[0] == RecordPrefix, key[0] == IDPrefix, key[0] == IndexPrefix:
		return key[:TableLength]
	}
	return key[:min(len(key), 1)]
}

// TableKey appends the start of an index's entries.
func TableKey(dst []byte, d *index.Definition) []byte {
	if d.IsID() {
		return Numbered(dst, IDPrefix, d.ID)
	}
	return Numbered(dst, IndexPrefix, d.ID)
}

// CounterKey appends the key of a counter.
func CounterKey(dst []byte, owner byte, number uint32, what byte) []byte {
	return append(Numbered(append(dst, CounterPrefix), owner, number), what)
}

// FormatKey is the key of the format version.
func FormatKey() []byte { return []byte{MetaPrefix, MetaFormat} }

// NextKey is the key of the next free numbers.
func NextKey() []byte { return []byte{MetaPrefix, MetaNext} }

// CollectionKey is the key of a collection in the catalogue.
func CollectionKey(id uint32) []byte { return Numbered([]byte{MetaPrefix}, MetaCollection, id) }

// MultikeyKey is the key of a multikey bit.
func MultikeyKey(id uint32, field, component int) []byte {
	return append(Numbered([]byte{MetaPrefix}, MetaMultikey, id), byte(field), byte(component))
}

// What stands in the place of a field in the multikey keys of a wildcard index; fields are fewer.
const (
	OnePath   = 0xFF
	EveryPath = 0xFE
)

// MultikeyPathKey is the key of a path of a wildcard index that went through an array, or of all paths.
func MultikeyPathKey(id uint32, which byte, path string) []byte {
	return append(append(Numbered([]byte{MetaPrefix}, MetaMultikey, id), which), path...)
}

// GarbageKey is the key of a note of garbage.
func GarbageKey(kind byte, number uint32) []byte {
	return Numbered([]byte{MetaPrefix, MetaGarbage}, kind, number)
}

// SequenceKey is the key of the reserved numbers of a collection's records.
func SequenceKey(collection uint32) []byte {
	return Numbered([]byte{MetaPrefix}, MetaSequence, collection)
}

// TombstonesKey is the key of a collection's tombstones.
func TombstonesKey(collection uint32) []byte {
	return Numbered([]byte{MetaPrefix}, MetaTombstones, collection)
}

// CompactionKey is the key of the note of an index compaction that is being put in its place.
func CompactionKey(index uint32) []byte { return Numbered([]byte{MetaPrefix}, MetaCompaction, index) }

// CommitKey is where the engine keeps the number of the last commit.
func CommitKey() []byte { return []byte{MetaPrefix, MetaCommit} }

// TimeKey is the key of one of the times that the store keeps, MetaTime or MetaHold.
func TimeKey(which byte) []byte { return []byte{MetaPrefix, which} }

// DeadlineKey appends the key of an entry in a TTL index on _ts; id may be empty for a bound.
func DeadlineKey(dst []byte, d *index.Definition, span byte, millis int64, id RecordID) []byte {
	dst = append(TableKey(dst, d), span)
	return append(AppendMillis(dst, millis), id...)
}

// AppendMillis appends a time so that bytes sort as times do, those before 1970 first.
func AppendMillis(dst []byte, millis int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(millis)^(1<<63))
}

// ReadMillis reads what AppendMillis has written.
func ReadMillis(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ (1 << 63)) }

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
