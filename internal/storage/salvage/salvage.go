// Package salvage makes collections and documents of what is left of a store's keys. It opens no store.
package salvage

import (
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
	dropped     map[uint32]bool // and not removed yet
}

// Pair takes a key and its value, and forgets them; keys ascend. The catalogue's come before the records'.
func (s *Reader) Pair(key, value []byte) error {
	switch {
	case len(key) >= 2 && key[0] == layout.MetaPrefix:
		return s.meta(key, value)
	case len(key) > layout.TableLength && key[0] == layout.RecordPrefix:
		return s.record(key, value)
	}
	return nil
}

func (s *Reader) meta(key, value []byte) error {
	switch {
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
		s.Lost(fmt.Sprintf("record %s of collection %d: %v", id, number, err))
		return nil
	}
	return s.Document(coll, number, rec.Doc)
}
