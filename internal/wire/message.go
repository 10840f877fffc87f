package wire

import "github.com/ebbdb/ebb/internal/bson"

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

// String is the op code's name in the specification, or "" when it has none.
func (c OpCode) String() string {
	switch c {
	case OpReply:
		return "OP_REPLY"
	case OpUpdate:
		return "OP_UPDATE"
	case OpInsert:
		return "OP_INSERT"
	case OpQuery:
		return "OP_QUERY"
	case OpGetMore:
		return "OP_GET_MORE"
	case OpDelete:
		return "OP_DELETE"
	case OpKillCursors:
		return "OP_KILL_CURSORS"
	case OpCompressed:
		return "OP_COMPRESSED"
	case OpMsg:
		return "OP_MSG"
	}
	return ""
}

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

// Message is one message as it was read. Its documents are well-formed and share one buffer.
type Message struct {
	// Size is the bytes it took on the wire.
	Size       int
	RequestID  int32
	ResponseTo int32
	// OpCode is that of the message inside, where it was compressed.
	OpCode OpCode
	// Compressor is what it was compressed with, or Uncompressed.
	Compressor CompressorID
	// Flags are OP_MSG's.
	Flags Flags
	// Namespace is OP_QUERY's collection name.
	Namespace string
	// Body is the document of OP_MSG's kind 0 section, or OP_QUERY's query.
	Body bson.Doc
	// Sequences are OP_MSG's kind 1 sections: each name once, and never a field of Body.
	Sequences []Sequence

	codec  *Codec
	limit  int              // how large it may be, also once decompressed
	header [headerSize]byte // that of the message inside, where it was compressed, for a checksum covers it
	// payload is what stands behind the header: in buf, or else in the reader's own buffer.
	payload []byte
	buf     *buffer
}

// Release gives the message's buffer back; its documents must not be used any more.
func (m *Message) Release() {
	if m.payload == nil && m.buf == nil {
		return
	}
	spoil(m.payload)
	m.codec.buffers.put(m.buf)
	m.buf, m.payload, m.Body = nil, nil, nil
	clear(m.Sequences)
	m.Sequences = m.Sequences[:0]
}
