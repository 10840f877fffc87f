package inspect

import (
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
	file, size uint64
	shared     bool
}

func newManifest() *manifest {
	return &manifest{levels: map[place]backing{}, backings: map[uint64]uint64{}, Tables: Tables{Blobs: map[uint64]uint64{}}}
}

// tables is the sum.
func (m *manifest) tables() Tables {
	m.Live = map[uint64]uint64{}
	for _, b := range m.levels {
		if b.shared {
			b.size = m.backings[b.file]
		}
		m.Live[b.file] = b.size
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
	b := backing{file: at.table, size: e.number()}
	bounds := 2
	if tag == tagNewRanges && e.byte()&1 != 0 {
		bounds = 4
	}
	for range bounds {
		e.bytes()
	}
	e.number() // sequence numbers
	e.number()
	for {
		switch tag := e.number(); {
		case tag == tagEndOfTable:
			m.levels[at] = b
			return nil
		case tag == tagVirtual:
			b = backing{file: e.number(), shared: true}
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

// readManifest reads a manifest up to its first record that is not whole.
func readManifest(r io.Reader) (Scan, Tables, error) {
	m := newManifest()
	s, err := scan(r, format{}, m.add)
	return s, m.tables(), err
}
