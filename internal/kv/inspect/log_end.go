package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LogEnd is where in a log what was written before a moment ends.
type LogEnd struct {
	// End is behind the last record from before.
	End     int64
	Records int
	// Whole says that the log was closed in order and that nothing of it is from after the moment.
	Whole bool
}

// errBehind ends a look at a log at the first record that is too young.
var errBehind = errors.New("it was written after the moment")

// sequenceBytes is how long the sequence number is that a record of a log begins with.
const sequenceBytes = 8

// FindLogEnd reads the log of that number in dir up to the first record that the store wrote at its sequence number next, or after it.
func FindLogEnd(disk vfs.FS, dir string, number, next uint64) (e LogEnd, err error) {
	file, err := disk.Open(disk.PathJoin(dir, logName(number)))
	if err != nil {
		return e, err
	}
	defer file.Close()
	s := &scanner{format: format{true, uint32(number)}}
	s.each = func(record []byte) error {
		if len(record) < sequenceBytes {
			return fmt.Errorf("%s: a record has %d bytes", logName(number), len(record))
		}
		if binary.LittleEndian.Uint64(record) >= next {
			return errBehind
		}
		e.End, e.Records = s.End, e.Records+1
		return nil
	}
	found, err := s.read(file)
	switch {
	case errors.Is(err, errBehind):
		return e, nil
	case err != nil:
		return e, fmt.Errorf("read %s: %w", logName(number), err)
	}
	e.Whole = found.Tail == Ended
	return e, nil
}

// CheckTable reads all blocks of a table.
func CheckTable(disk vfs.FS, dir string, number uint64) error {
	t, err := openTable(disk, dir, number, &Spoilt{})
	if err != nil {
		return err
	}
	return errors.Join(t.verify(), t.close())
}
