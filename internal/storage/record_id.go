package storage

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// The ids, records and entries that others see; layout says how they lie in keys and values.
type (
	RecordID   = layout.RecordID
	Record     = layout.Record
	IndexEntry = layout.IndexEntry
)

// After is the first position behind every key that starts with prefix; nil when there is none.
func After(prefix []byte) []byte { return layout.After(prefix) }

// LastSequence stands behind all records with the same key in an index, where those of the collection may move.
func LastSequence() RecordID { return layout.LastSequence() }

type (
	entries = layout.Entries
	idRoom  = layout.IDRoom
)

const (
	metaPrefix     = layout.MetaPrefix
	metaCollection = layout.MetaCollection
	metaMultikey   = layout.MetaMultikey
	metaGarbage    = layout.MetaGarbage
	metaSequence   = layout.MetaSequence
	metaTombstones = layout.MetaTombstones
	ofCollection   = layout.OfCollection
	ofIndex        = layout.OfIndex
	countDocuments = layout.CountDocuments
	countBytes     = layout.CountBytes
	countExpired   = layout.CountExpired
	countSurplus   = layout.CountSurplus
	tableLength    = layout.TableLength
	onePath        = layout.OnePath
	everyPath      = layout.EveryPath
	sequenceLength = layout.SequenceLength
	orderedMark    = layout.OrderedMark
	placeLength    = layout.PlaceLength
)

func numbered(dst []byte, prefix byte, number uint32) []byte {
	return layout.Numbered(dst, prefix, number)
}

func recordKey(dst []byte, collection uint32, id RecordID) []byte {
	return layout.RecordKey(dst, collection, id)
}

func counterKey(dst []byte, owner byte, number uint32, what byte) []byte {
	return layout.CounterKey(dst, owner, number, what)
}

func formatKey() []byte                         { return layout.FormatKey() }
func nextKey() []byte                           { return layout.NextKey() }
func collectionKey(id uint32) []byte            { return layout.CollectionKey(id) }
func sequenceID(n uint64) RecordID              { return layout.SequenceID(n) }
func orderedID(place []byte, n uint64) RecordID { return layout.OrderedID(place, n) }

func multikeyKey(id uint32, field, component int) []byte {
	return layout.MultikeyKey(id, field, component)
}

func multikeyPathKey(id uint32, which byte, path string) []byte {
	return layout.MultikeyPathKey(id, which, path)
}

func garbageKey(kind byte, number uint32) []byte { return layout.GarbageKey(kind, number) }

func appendRecord(dst []byte, modified int64, doc bson.Doc) []byte {
	return layout.AppendRecord(dst, modified, doc)
}
