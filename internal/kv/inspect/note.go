package inspect

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A store notes in a file of its own how far its logs and its manifest were on stable storage: after each sync of one of them,
// and so never too far. The note itself is not synced each time. It survives the end of a process as it is, and what a power
// failure takes of it is the last second or so; after a stop in order it is exact.
//
// The file is a head and slots of a fixed size, each written at once, within a sector of the disk. A slot whose checksum is
// wrong says nothing, and a note with such a slot, or with another head, is not whole: what is not in it may have been.

const (
	// NoteFile is its name.
	NoteFile = "EBB-SYNCED"
	// SlotBytes is the size of a slot, and of the head before the first.
	SlotBytes = 32
	// NoteSlots is how many there are. A store has a manifest and less than ten logs as a rule.
	NoteSlots = 127

	noteHead = "ebb synced 1\n"
)

// Kind is what kind of file a slot is about.
type Kind byte

// The kinds, and that of a slot that is free.
const (
	Free     Kind = 0
	Log      Kind = 'L'
	Manifest Kind = 'M'
)

// Slot is what is noted of a file.
type Slot struct {
	Kind   Kind
	Number uint64
	Synced int64
}

// Head is the head.
func Head() []byte { return append([]byte(noteHead), make([]byte, SlotBytes-len(noteHead))...) }

// Put writes the slot to b, which holds SlotBytes. A free one is zeros.
func (s Slot) Put(b []byte) {
	clear(b[:SlotBytes])
	if s.Kind == Free {
		return
	}
	b[0] = byte(s.Kind)
	binary.BigEndian.PutUint64(b[8:], s.Number)
	binary.BigEndian.PutUint64(b[16:], uint64(s.Synced))
	binary.BigEndian.PutUint32(b[24:], checksum(b[:24]))
}

func slotOf(b []byte) (Slot, bool) {
	s := Slot{Kind(b[0]), binary.BigEndian.Uint64(b[8:]), int64(binary.BigEndian.Uint64(b[16:]))}
	if s.Kind == Free {
		return s, isZero(b)
	}
	known := (s.Kind == Log || s.Kind == Manifest) && s.Synced >= 0
	return s, known && binary.BigEndian.Uint32(b[24:]) == checksum(b[:24])
}

// Note is what a note says.
type Note struct {
	// Found and Whole: it is there, and nothing of it cannot be read.
	Found, Whole bool
	Slots        []Slot // in their order, free ones too
}

// Synced is up to where a file was on stable storage at least, if that is known. What a whole note does not name was made just
// before a power failure, which took the note of it.
func (n Note) Synced(k Kind, number uint64) (int64, bool) {
	for _, s := range n.Slots {
		if s.Kind == k && s.Number == number {
			return s.Synced, true
		}
	}
	return 0, n.Whole
}

func parseNote(b []byte) Note {
	n := Note{Found: true}
	n.Whole = len(b) == (1+NoteSlots)*SlotBytes && string(b[:SlotBytes]) == string(Head())
	for len(b) >= 2*SlotBytes {
		b = b[SlotBytes:]
		s, ok := slotOf(b[:SlotBytes])
		if !ok {
			n.Whole, s = false, Slot{}
		}
		n.Slots = append(n.Slots, s)
	}
	return n
}

// ReadNote reads the note of the store in dir.
func ReadNote(disk vfs.FS, dir string) (Note, error) {
	file, err := disk.Open(disk.PathJoin(dir, NoteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Note{}, nil
	}
	if err != nil {
		return Note{}, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, (2+NoteSlots)*SlotBytes))
	return parseNote(b), err
}
