package pebblekv

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// hotEntry is one value as it lies in a chunk: a header, the key and the value. The header has the sequence since when the
// value is good (8 bytes), the hash (4), and in one word of 4 bytes the lengths and whether the value was asked for.
// Nothing but that last bit ever changes.
type hotEntry []byte

const (
	hotHeader = 16
	hotAlign  = 8 // each entry starts at a multiple, which makes the word of lengths one that is read and written at once
	// maxHotKey and maxHotValue are what fits in the word of lengths, and little enough for a few not to drive out all
	// others.
	maxHotKey   = 1<<hotKeyBits - 1
	maxHotValue = 16 << 10

	hotKeyBits   = 16
	hotValueBits = 15
	hotUsed      = 1 << (hotKeyBits + hotValueBits)
)

// entryLength is how far it is from one entry to the next.
func entryLength(key, value []byte) int {
	return (hotHeader + len(key) + len(value) + hotAlign - 1) &^ (hotAlign - 1)
}

// writeEntry writes an entry where there is room for it.
func writeEntry(at []byte, hash uint32, key, value []byte, since uint64) hotEntry {
	binary.LittleEndian.PutUint64(at, since)
	binary.LittleEndian.PutUint32(at[8:], hash)
	end := hotHeader + len(key) + len(value)
	e := hotEntry(at[:end:end]) // what is appended to its value goes elsewhere
	e.word().Store(uint32(len(key) | len(value)<<hotKeyBits))
	copy(e[hotHeader:], key)
	copy(e[hotHeader+len(key):], value)
	return e
}

// entryAt is the entry that begins at data, or nil when it does not end there.
func entryAt(data []byte) hotEntry {
	if len(data) < hotHeader {
		return nil
	}
	word := hotEntry(data).word().Load()
	end := hotHeader + int(word&maxHotKey) + int(word&^hotUsed>>hotKeyBits)
	if end > len(data) {
		return nil
	}
	return hotEntry(data[:end:end])
}

func (e hotEntry) word() *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&e[12])) }

func (e hotEntry) since() uint64 { return binary.LittleEndian.Uint64(e) }
func (e hotEntry) hash() uint32  { return binary.LittleEndian.Uint32(e[8:]) }
func (e hotEntry) key() []byte   { return e[hotHeader:][:e.word().Load()&maxHotKey] }
func (e hotEntry) value() []byte { return e[hotHeader+e.word().Load()&maxHotKey:] }
func (e hotEntry) used() bool    { return e.word().Load()&hotUsed != 0 }

// use makes it one that was asked for, and says whether it was not. Most are already, and a look spares the other processors
// a line of their caches.
func (e hotEntry) use() (first bool) {
	return !e.used() && e.word().Or(hotUsed)&hotUsed == 0
}
