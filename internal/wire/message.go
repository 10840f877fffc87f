package wire

import (
	"encoding/binary"
	"iter"
)

// OpCode says how a message is laid out.
type OpCode int32

// The op codes a client may send or be sent. Those from OpUpdate to OpKillCursors left the protocol with MongoDB 5.1;
// they keep a name so that the refusal can say it.
const (
	OpReply       OpCode = 1
	OpUpdate      OpCode = 2001
	OpInsert      OpCode = 2002
	OpQuery       OpCode = 2004
	OpGetMore     OpCode = 2005
	OpDelete      OpCode = 2006
	OpKillCursors OpCode = 2007
	OpCompressed  OpCode = 2012
	OpMsg         OpCode = 2013
)

// Flags are OP_MSG's flag bits.
type Flags uint32

// OP_MSG's flags. Bits 0 to 15 must be understood by whoever reads the message, bits above may be ignored.
const (
	FlagChecksumPresent Flags = 1 << 0
	FlagMoreToCome      Flags = 1 << 1
	FlagExhaustAllowed  Flags = 1 << 16
)

// Has tells whether every bit of want is set.
func (f Flags) Has(want Flags) bool { return f&want == want }

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
func (s Sequence) Docs() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := s.raw; len(rest) > 0; {
			size := binary.LittleEndian.Uint32(rest)
			if !yield(rest[:size:size]) {
				return
			}
			rest = rest[size:]
		}
	}
}
