package rowcache

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// entry is one value as it lies in a chunk: a header, the key and the value. The header has the sequence since when the
// value is good (8 bytes), the hash (4), and in one word of 4 bytes the lengths and whether the value was asked for.
// Nothing but that last bit ever changes.
type entry []byte

const (
	entryHeader = 16
	entryAlign  = 8 // each entry starts at a multiple, which makes the word of lengths one that is read and written at once
	// maxKey and maxValue are what fits in the word of lengths, and little enough for a few not to drive out all
	// others.
	maxKey   = 1<<entryKeyBits - 1
	maxValue = 16 << 10

	entryKeyBits   = 16
	entryValueBits = 15
	entryUsed      = 1 << (entryKeyBits + entryValueBits)
)

// entryLength is how far it is from one entry to the next.
func entryLength(key, value []byte) int {
	return (entryHeader + len(key) + len(value) + entryAlign - 1) &^ (entryAlign - 1)
}

// writeEntry writes an entry where there is room for it.
func writeEntry(at []byte, hash uint32, key, value []byte, since uint64) entry {
	binary.LittleEndian.PutUint64(at, since)
	binary.LittleEndian.PutUint32(at[8:], hash)
	end := entryHeader + len(key) + len(value)
	e := entry(at[:end:end]) // what is appended to its value goes elsewhere
	e.word().Store(uint32(len(key) | len(value)<<entryKeyBits))
	copy(e[entryHeader:], key)
	copy(e[entryHeader+len(key):], value)
	return e
}

// entryAt is the entry that begins at data, or nil when it does not end there.
func entryAt(data []byte) entry {
	if len(data) < entryHeader {
		return nil
	}
	word := entry(data).word().Load()
	end := entryHeader + int(word&maxKey) + int(word&^entryUsed>>entryKeyBits)
	if end > len(data) {
		return nil
	}
	return entry(data[:end:end])
}

func (e entry) word() *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&e[12])) }

func (e entry) since() uint64 { return binary.LittleEndian.Uint64(e) }
func (e entry) hash() uint32  { return binary.LittleEndian.Uint32(e[8:]) }
func (e entry) key() []byte   { return e[entryHeader:][:e.word().Load()&maxKey] }
func (e entry) value() []byte { return e[entryHeader+e.word().Load()&maxKey:] }
func (e entry) used() bool    { return e.word().Load()&entryUsed != 0 }

// use makes it one that was asked for. Most are already, and a look spares the other processors a line of their caches.
func (e entry) use() {
	if !e.used() {
		e.word().Or(entryUsed)
	}
}
