package inspect

import (
	"encoding/binary"
	"hash/crc32"
)

// A file of records is a row of blocks, and a block a row of chunks. A record is one chunk or several; a chunk lies within a
// block, and each block begins with one. What is left at a block's end, too little for a header, is zero. See the comments of
// Pebble's package record.
const (
	blockSize = 32 << 10
	// The headers: checksum, length, type; in a log the log's number too; in most logs how far it was synced before.
	plainHeader = 7
	logHeader   = plainHeader + 4
	syncHeader  = logHeader + 8
)

// The types of chunks are four for each header: a record, its first part, a part in its middle, its last part.
const (
	typeFull = 1 + iota
	typeFirst
	typeMiddle
	typeLast
	logTypes  = typeLast            // after them those of logs
	syncTypes = logTypes + 4        // and after them those of logs that say how far they were synced
	lastType  = syncTypes + 4       // and no more
	typeEnd   = logTypes + typeFull // of the header that ends a log
)

// chunk is one that is whole: its checksum is right.
type chunk struct {
	part    byte // typeFull to typeLast
	header  int
	payload []byte
	synced  uint64 // up to where its log was on stable storage at least when it was made; 0 if it does not say
}

// size is how much of the block it takes.
func (c chunk) size() int { return c.header + len(c.payload) }

// format is which chunks a file may have.
type format struct {
	log    bool
	number uint32 // of the log, the lower half
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return c>>15 | c<<17 + 0xa282ead8
}

// headerSize is 0 for a type that the file may not have.
func (f format) headerSize(kind byte) int {
	switch {
	case kind == 0 || kind > lastType:
		return 0
	case kind > syncTypes && f.log:
		return syncHeader
	case kind > logTypes && kind <= syncTypes && f.log:
		return logHeader
	case kind <= logTypes && !f.log:
		return plainHeader
	}
	return 0
}

// at is the chunk that b begins with, what is left of a block. size is how long it says to be even if it is not whole; 0 if it
// does not look like one.
func (f format) at(b []byte) (c chunk, size int, ok bool) {
	if len(b) < plainHeader {
		return chunk{}, 0, false
	}
	kind := b[6]
	header := f.headerSize(kind)
	if header == 0 || len(b) < header || f.log && binary.LittleEndian.Uint32(b[plainHeader:]) != f.number {
		return chunk{}, 0, false
	}
	size = header + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) || checksum(b[6:size]) != binary.LittleEndian.Uint32(b) {
		return chunk{}, size, false
	}
	c = chunk{part: (kind-1)%4 + 1, header: header, payload: b[header:size]}
	if header == syncHeader {
		c.synced = binary.LittleEndian.Uint64(b[logHeader:])
	}
	return c, size, true
}

// isEnd says whether b begins with what a log ends with that was closed: the header of an empty record of the next one.
func (f format) isEnd(b []byte) bool {
	return f.log && len(b) >= logHeader && binary.LittleEndian.Uint32(b) == 0 && binary.LittleEndian.Uint16(b[4:]) == 0 &&
		b[6] == typeEnd && binary.LittleEndian.Uint32(b[plainHeader:]) == f.number+1
}

// isRest says whether nothing but zeros is left of a full block, too few for a header.
func (f format) isRest(b []byte) bool {
	least := plainHeader
	if f.log {
		least = syncHeader
	}
	return len(b) < least && isZero(b)
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
