package wire

import (
	"encoding/binary"
	"iter"

	"github.com/ebbdb/ebb/internal/bson"
)

// Sequence is a kind 1 section: the documents of one field (documents, updates, deletes …), kept outside the body so
// that they need no array around them. They were validated when the message was read.
type Sequence struct {
	Name string
	raw  []byte
	docs int
}

// Len is the number of documents.
func (s Sequence) Len() int { return s.docs }

// Size is the number of bytes of all documents together.
func (s Sequence) Size() int { return len(s.raw) }

// Docs yields the documents in order. They share the message's buffer.
func (s Sequence) Docs() iter.Seq[bson.Doc] {
	return func(yield func(bson.Doc) bool) {
		for rest := s.raw; len(rest) > 0; {
			size := binary.LittleEndian.Uint32(rest)
			if !yield(bson.Doc(rest[:size:size])) {
				return
			}
			rest = rest[size:]
		}
	}
}

// wireSize is how many bytes the section takes.
func (s Sequence) wireSize() int { return 1 + 4 + len(s.Name) + 1 + len(s.raw) }

// append appends the section.
func (s Sequence) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, sectionSequence), uint32(s.wireSize()-1))
	return append(append(append(dst, s.Name...), 0), s.raw...)
}
