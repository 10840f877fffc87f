package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	sectionBody     = 0
	sectionSequence = 1

	checksumSize = 4
	// compressedPrefix is what stands before what is compressed: op code, length and compressor.
	compressedPrefix = 4 + 4 + 1
	// requiredFlags are the bits that a reader must refuse when it does not know them.
	requiredFlags Flags = 0xffff
)

// castagnoli is the polynomial of OP_MSG's checksum.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parse takes the payload apart, decompressing it first where it must.
func (m *Message) parse() error {
	if m.OpCode == OpCompressed {
		if err := m.decompress(); err != nil {
			return err
		}
	}
	switch m.OpCode {
	case OpMsg:
		return m.parseMsg()
	case OpQuery:
		return m.parseQuery()
	case OpUpdate, OpInsert, OpGetMore, OpDelete, OpKillCursors:
		return nil // nothing in them is of use: whoever handles the message refuses it
	}
	return frameErrorf("unknown op code %d", int32(m.OpCode))
}

// decompress replaces the payload and the header by those of the message inside.
func (m *Message) decompress() error {
	payload := m.payload
	if len(payload) < compressedPrefix {
		return frameErrorf("Invalid compressed message header")
	}
	opCode := OpCode(binary.LittleEndian.Uint32(payload))
	size := int(int32(binary.LittleEndian.Uint32(payload[4:])))
	id := CompressorID(payload[8])
	if opCode == OpCompressed {
		return frameErrorf("compressed message inside a compressed message")
	}
	out, err := m.codec.decompress(id, payload[compressedPrefix:], size, m.limit-headerSize)
	if err != nil {
		return err
	}
	m.codec.buffers.put(m.buf)
	m.buf, m.payload, m.OpCode, m.Compressor = out, out.data, opCode, id
	binary.LittleEndian.PutUint32(m.header[0:], uint32(headerSize+size))
	binary.LittleEndian.PutUint32(m.header[12:], uint32(opCode))
	return nil
}

func (m *Message) parseMsg() error {
	rest := m.payload
	if len(rest) < 4 {
		return frameErrorf("OP_MSG of %d bytes", headerSize+len(rest))
	}
	m.Flags = Flags(binary.LittleEndian.Uint32(rest))
	if m.Flags&requiredFlags&^(FlagChecksumPresent|FlagMoreToCome) != 0 {
		return frameErrorf("Message contains illegal flags value: Ob%032b", uint32(m.Flags))
	}
	if m.Flags.Has(FlagChecksumPresent) {
		if err := m.verifyChecksum(); err != nil {
			return err
		}
		rest = rest[:len(rest)-checksumSize]
	}
	for rest = rest[4:]; len(rest) > 0; {
		n, err := m.parseSection(rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if m.Body == nil {
		return mongoerr.New(codeNoBody, "OP_MSG messages must have a body")
	}
	for _, s := range m.Sequences {
		if !m.Body.Lookup(s.Name).IsMissing() {
			return mongoerr.New(codeDuplicateField, "Duplicate field between body and document sequence %s", s.Name)
		}
	}
	return nil
}

func (m *Message) verifyChecksum() error {
	payload := m.payload
	if len(payload) < 4+checksumSize {
		return frameErrorf("OP_MSG of %d bytes has no room for a checksum", headerSize+len(payload))
	}
	end := len(payload) - checksumSize
	sum := crc32.Update(crc32.Checksum(m.header[:], castagnoli), castagnoli, payload[:end])
	if sum != binary.LittleEndian.Uint32(payload[end:]) {
		return frameErrorf("OP_MSG checksum does not match contents")
	}
	return nil
}

// parseSection takes the section at the start of b and returns its length.
func (m *Message) parseSection(b []byte) (int, error) {
	switch kind := b[0]; kind {
	case sectionBody:
		if m.Body != nil {
			return 0, mongoerr.New(codeManyBodies, "Multiple body sections in message")
		}
		doc, err := takeDocument(b[1:])
		if err != nil {
			return 0, err
		}
		m.Body = doc
		return 1 + len(doc), nil
	case sectionSequence:
		n, err := m.parseSequence(b[1:])
		return 1 + n, err
	default:
		return 0, mongoerr.New(codeSectionKind, "Unknown section kind %d", kind)
	}
}

func (m *Message) parseSequence(b []byte) (int, error) {
	if len(m.Sequences) == MaxSequences {
		return 0, mongoerr.New(mongoerr.TooManyDocumentSequences, "Too many document sequences in OP_MSG")
	}
	if len(b) < 4 {
		return 0, frameErrorf("document sequence without a length")
	}
	size := int(int32(binary.LittleEndian.Uint32(b)))
	if size < 4 || size > len(b) {
		return 0, frameErrorf("document sequence of length %d where %d bytes are left", size, len(b))
	}
	name, docs, ok := bytes.Cut(b[4:size], []byte{0})
	if !ok {
		return 0, frameErrorf("document sequence without a name")
	}
	s := Sequence{Name: string(name), raw: docs[:len(docs):len(docs)]}
	for _, other := range m.Sequences {
		if other.Name == s.Name {
			return 0, mongoerr.New(codeDuplicateSequence, "Duplicate document sequence: %s", s.Name)
		}
	}
	for rest := s.raw; len(rest) > 0; s.docs++ {
		doc, err := takeDocument(rest)
		if err != nil {
			return 0, err
		}
		rest = rest[len(doc):]
	}
	m.Sequences = append(m.Sequences, s)
	return size, nil
}

// parseQuery reads flags, collection name, skip, return, the query and, if it is there, a projection nobody needs.
func (m *Message) parseQuery() error {
	if len(m.payload) < 4 {
		return frameErrorf("OP_QUERY of %d bytes", headerSize+len(m.payload))
	}
	name, rest, ok := bytes.Cut(m.payload[4:], []byte{0})
	if !ok || len(name) > maxNamespaceLength || len(rest) < 8 {
		return frameErrorf("OP_QUERY without a collection name, skip and return")
	}
	m.Namespace = string(name)
	doc, err := takeDocument(rest[8:])
	if err != nil {
		return err
	}
	m.Body = doc
	return nil
}

// takeDocument returns the document at the start of b.
func takeDocument(b []byte) (bson.Doc, error) {
	if len(b) < 4 {
		return nil, frameErrorf("%d bytes where a document should be", len(b))
	}
	size := int(int32(binary.LittleEndian.Uint32(b)))
	if size < 5 || size > MaxInternalDocumentSize {
		return nil, mongoerr.New(mongoerr.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(%dMB)",
			size, uint32(size), MaxInternalDocumentSize, MaxInternalDocumentSize>>20)
	}
	if size > len(b) {
		return nil, frameErrorf("document of length %d where %d bytes are left", size, len(b))
	}
	doc := bson.Doc(b[:size:size])
	switch err := bson.Validate(doc, bson.MaxDepth+1); { // below the command, which is a level itself
	case errors.Is(err, bson.ErrTooDeep):
		return nil, mongoerr.New(mongoerr.Overflow, "BSONObj exceeds maximum nested object depth: %d", bson.MaxDepth)
	case err != nil:
		return nil, mongoerr.New(mongoerr.InvalidBSON, "%v", err)
	}
	return doc, nil
}
