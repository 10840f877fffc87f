package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Tables is what a manifest says that there is, after all of its edits.
type Tables struct {
	// Live are the sizes of the tables' files by their numbers, Blobs those of files of values.
	Live, Blobs map[uint64]uint64
	// MinLog is the number of the first log that holds what no table does, NextFile above all numbers in use.
	MinLog, NextFile uint64
	Edits            int
	// Parts are the tables; several can be in one file.
	Parts []Part
}

// Part is a table: what lies in a file between two keys.
type Part struct {
	File uint64
	// Lower is its first key, Upper behind its last.
	Lower, Upper []byte
	// Sequence is that of all its keys, where the file does not say it; 0 where it does.
	Sequence uint64
}

// The tags of a manifest's edits, and of what is said of a table beyond its bounds.
const (
	tagComparer     = 1
	tagMinLog       = 2
	tagNextFile     = 3
	tagLastSequence = 4
	tagDeleted      = 6
	tagNewTable     = 103
	tagNewRanges    = 104
	tagBacking      = 105
	tagNoBacking    = 106
	tagBlob         = 107
	tagNoBlob       = 108

	tagEndOfTable = 1
	tagVirtual    = 66
	tagBlobs      = 69
	tagIgnorable  = 1 << 6
)

// place is a table in its level.
type place struct{ level, table uint64 }

// manifest adds edits up.
type manifest struct {
	Tables
	levels   map[place]backing
	backings map[uint64]uint64 // files of tables that share them: sizes
}

// backing is the file that a table is in; size only where it is its own.
type backing struct {
	Part
	size   uint64
	shared bool
}

func newManifest() *manifest {
	return &manifest{levels: map[place]backing{}, backings: map[uint64]uint64{}, Tables: Tables{Blobs: map[uint64]uint64{}}}
}

// tables is the sum.
func (m *manifest) tables() Tables {
	m.Live = map[uint64]uint64{}
	m.Parts = nil
	for _, b := range m.levels {
		if b.shared {
			b.size = m.backings[b.File]
		}
		m.Live[b.File] = b.size
		m.Parts = append(m.Parts, b.Part)
	}
	return m.Tables
}

var errEdit = errors.New("an edit ends early")

// edit reads the fields of an edit.
type edit struct{ left []byte }

func (e *edit) number() uint64 {
	n, size := binary.Uvarint(e.left)
	if size <= 0 {
		panic(errEdit)
	}
	e.left = e.left[size:]
	return n
}

func (e *edit) bytes() []byte {
	n := e.number()
	if n > uint64(len(e.left)) {
		panic(errEdit)
	}
	b := e.left[:n]
	e.left = e.left[n:]
	return b
}

func (e *edit) byte() byte {
	if len(e.left) == 0 {
		panic(errEdit)
	}
	b := e.left[0]
	e.left = e.left[1:]
	return b
}

// add applies an edit.
func (m *manifest) add(record []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var known error
			if known, _ = r.(error); !errors.Is(known, errEdit) {
				panic(r)
			}
			err = known
		}
	}()
	m.Edits++
	for e := (&edit{record}); len(e.left) > 0; {
		if err := m.field(e); err != nil {
			return err
		}
	}
	return nil
}

func (m *manifest) field(e *edit) error {
	switch tag := e.number(); tag {
	case tagComparer:
		if name := string(e.bytes()); name != pebble.DefaultComparer.Name {
			return fmt.Errorf("keys are in the order %q", name)
		}
	case tagMinLog:
		m.MinLog = e.number()
	case tagNextFile:
		m.NextFile = e.number()
	case tagLastSequence:
		e.number()
	case tagDeleted:
		delete(m.levels, place{e.number(), e.number()})
	case tagNewTable, tagNewRanges:
		return m.table(e, tag)
	case tagBacking:
		file := e.number()
		m.backings[file] = e.number()
	case tagNoBacking:
		delete(m.backings, e.number())
	case tagBlob:
		e.number()
		file := e.number()
		m.Blobs[file] = e.number()
		e.number()
		e.number()
	case tagNoBlob:
		e.number()
		delete(m.Blobs, e.number())
	default:
		return fmt.Errorf("it has a field of the unknown kind %d", tag)
	}
	return nil
}

func (m *manifest) table(e *edit, tag uint64) error {
	at := place{e.number(), e.number()}
	b := backing{Part: Part{File: at.table}, size: e.number()}
	if tag == tagNewTable || e.byte()&1 != 0 {
		b.Lower, b.Upper = lowerBound(e.bytes()), upperBound(e.bytes())
	}
	if tag == tagNewRanges {
		e.bytes() // of keys that we do not have
		e.bytes()
	}
	if first, last := e.number(), e.number(); first == last {
		b.Sequence = first
	}
	for {
		switch tag := e.number(); {
		case tag == tagEndOfTable:
			m.levels[at] = b
			return nil
		case tag == tagVirtual:
			b.File, b.size, b.shared = e.number(), 0, true
		case tag == tagBlobs:
			e.number()
			for range e.number() {
				e.number()
				e.number()
			}
		case tag&tagIgnorable != 0 && tag != tagIgnorable+3 && tag != tagIgnorable+4: // those add to keys
			return fmt.Errorf("it says of a table what this Ebb does not know: %d", tag)
		default:
			e.bytes()
		}
	}
}

// trailer is what follows a key in a table: its sequence number and kind.
const trailer = 8

// noKey is the trailer of a bound that no key has: a range ends before it.
const noKey = 1<<64 - 1 - 0xff + 15

func lowerBound(key []byte) []byte { return bytes.Clone(key[:max(0, len(key)-trailer)]) }

func upperBound(key []byte) []byte {
	upper := lowerBound(key)
	if len(key) >= trailer && binary.LittleEndian.Uint64(key[len(key)-trailer:]) == noKey {
		return upper
	}
	return append(upper, 0)
}

// readManifest reads a manifest up to its first record that is not whole.
func readManifest(r io.Reader) (Scan, Tables, error) {
	m := newManifest()
	s, err := scan(r, format{}, m.add)
	return s, m.tables(), err
}
