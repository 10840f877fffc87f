// Package salvage makes collections and documents of what is left of a store's keys. It opens no store.
package salvage

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/storage/layout"
)

// Reader makes collections and documents of keys and values. It looks at nothing but the catalogue and the
// records: indexes are made anew when the documents are inserted. What has expired and is still stored is among it.
type Reader struct {
	Indexes *index.Parser
	// Collection is told each that is in the catalogue, before any document.
	Collection func(*catalog.Collection) error
	// Document is told each document that is whole. The collection is nil where the catalogue has lost it.
	Document func(coll *catalog.Collection, number uint32, doc bson.Doc) error
	// Lost is told what cannot be read.
	Lost func(what string)

	collections map[uint32]*catalog.Collection
	dropped     map[uint32]bool  // and not removed yet
	counted     map[uint32]int64 // documents of collections
	last        uint64
}

// Counted is how many documents the collection had, as far as its counter could be read.
func (s *Reader) Counted(number uint32) (documents int64, ok bool) {
	documents, ok = s.counted[number]
	return documents, ok
}

// Last is the number of the store's last commit, 0 where it could not be read.
func (s *Reader) Last() uint64 { return s.last }

// Place says where a key lies, by name as far as the catalogue has been met.
func (s *Reader) Place(key []byte) string {
	if len(key) < layout.TableLength {
		return fmt.Sprintf("key %q", key)
	}
	number := binary.BigEndian.Uint32(key[1:])
	switch key[0] {
	case layout.RecordPrefix:
		return fmt.Sprintf("key %q, which is of the documents of %s", key, s.name(number))
	case layout.IDPrefix, layout.IndexPrefix:
		for _, coll := range s.collections {
			if d := coll.IndexByID(number); d != nil {
				return fmt.Sprintf("key %q, which is of index %s of %s", key, d.Name, coll.NS)
			}
		}
	}
	return fmt.Sprintf("key %q", key)
}

func (s *Reader) name(collection uint32) string {
	if coll := s.collections[collection]; coll != nil {
		return coll.NS.String()
	}
	return fmt.Sprintf("collection %d", collection)
}

// Pair takes a key and its value, and forgets them; keys ascend. Counters come before the catalogue, and that before the records.
func (s *Reader) Pair(key, value []byte) error {
	switch {
	case len(key) > 0 && key[0] == layout.CounterPrefix:
		s.counter(key, value)
		return nil
	case len(key) >= 2 && key[0] == layout.MetaPrefix:
		return s.meta(key, value)
	case len(key) > layout.TableLength && key[0] == layout.RecordPrefix:
		return s.record(key, value)
	}
	return nil
}

// counter takes note of how many documents a collection has.
func (s *Reader) counter(key, value []byte) {
	const ownerLength = 6
	if len(key) != ownerLength+1 || key[1] != layout.OfCollection || key[ownerLength] != layout.CountDocuments || len(value) != 8 {
		return
	}
	if s.counted == nil {
		s.counted = map[uint32]int64{}
	}
	s.counted[binary.BigEndian.Uint32(key[2:])] = int64(binary.BigEndian.Uint64(value))
}

func (s *Reader) meta(key, value []byte) error {
	switch {
	case bytes.Equal(key, layout.CommitKey()) && len(value) >= 8:
		s.last = binary.BigEndian.Uint64(value)
	case key[1] == layout.MetaCollection:
		coll, err := catalog.Load(bson.Doc(value).Clone(), s.Indexes)
		if err != nil {
			s.Lost(fmt.Sprintf("a collection's entry in the catalogue: %v", err))
			return nil
		}
		if s.collections == nil {
			s.collections = map[uint32]*catalog.Collection{}
		}
		s.collections[coll.ID] = coll
		return s.Collection(coll)
	case key[1] == layout.MetaGarbage && len(key) == 7 && key[2] == layout.OfCollection:
		if s.dropped == nil {
			s.dropped = map[uint32]bool{}
		}
		s.dropped[binary.BigEndian.Uint32(key[3:])] = true
	}
	return nil
}

func (s *Reader) record(key, value []byte) error {
	number := binary.BigEndian.Uint32(key[1:])
	if s.dropped[number] {
		return nil
	}
	coll, id := s.collections[number], layout.RecordID(key[layout.TableLength:])
	rec, err := layout.ReadRecord(id, value)
	if err == nil {
		err = bson.Validate(rec.Doc, layout.MaxDepth)
	}
	if err != nil {
		s.Lost(fmt.Sprintf("record %s of %s: %v", id, s.name(number), err))
		return nil
	}
	return s.Document(coll, number, rec.Doc)
}
