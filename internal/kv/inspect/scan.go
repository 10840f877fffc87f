package inspect

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Tail is how a file of records ends.
type Tail byte

const (
	// Cut is a file that ends behind a record.
	Cut Tail = iota
	// Ended is a log that was closed.
	Ended
	// Zeros is a file whose records are followed by zeros.
	Zeros
	// Torn is a file whose records are followed by what is none.
	Torn
)

// Scan is what a file of records holds.
type Scan struct {
	Size int64
	// End is behind the last record that is whole, and Whole behind the last chunk before which all are.
	End, Whole int64
	Records    int
	Tail       Tail
	// Behind is what there is behind Whole.
	Behind Behind
}

// Behind is what lies behind something that cannot be read. Chunks are found where blocks begin, and where the length of a chunk
// says that the next one begins: what users have written does not get there. Hidden ones are at any other place.
type Behind struct {
	First          int64 // where the first chunk is
	Chunks, Hidden int
	Bytes          int64 // that they take
	Marks          int   // of syncs among the chunks
	Synced         int64 // up to where the log was on stable storage, as they say
}

// kept is how much of a record of a log is kept while it is read.
const kept = 64

// IsMark says whether a record of a log marks a sync: an empty batch that says so. Before it is written the last sync has ended.
func IsMark(record []byte) bool {
	const header = 12 // sequence number, count
	return len(record) == header+2+len(Mark) && binary.LittleEndian.Uint32(record[8:]) == 0 && string(record[header+2:]) == Mark
}

// Mark is what the record of a sync says.
const Mark = "sync"

// scanner reads a file of records.
type scanner struct {
	Scan
	format
	record []byte // of a log, its beginning
	open   bool   // a record has begun
	each   func([]byte) error
	whole  bool // whole records are kept, and given from behind the end too
	block  [blockSize]byte
}

// scan reads r to its end. It gives each record to each, of a log the first bytes of it, up to one that is not whole.
func scan(r io.Reader, f format, each func(record []byte) error) (Scan, error) {
	return (&scanner{format: f, each: each}).read(r)
}

// scanAll is scan which goes on behind what cannot be read, and gives all of each record.
func scanAll(r io.Reader, f format, each func(record []byte) error) (Scan, error) {
	return (&scanner{format: f, each: each, whole: true}).read(r)
}

func (s *scanner) read(r io.Reader) (Scan, error) {
	in := bufio.NewReaderSize(r, blockSize)
	for {
		n, err := io.ReadFull(in, s.block[:])
		if n > 0 {
			if err := s.take(s.block[:n]); err != nil {
				return s.Scan, err
			}
			s.Size += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return s.finish(), nil
		case err != nil:
			return s.Scan, err
		}
	}
}

// finish says how the file ends. A record of which all chunks are whole but the last is missing is torn.
func (s *scanner) finish() Scan {
	if s.Tail == Cut && s.open {
		s.Tail = Torn
	}
	return s.Scan
}

// take reads a block.
func (s *scanner) take(b []byte) error {
	if s.Tail != Cut {
		return s.look(b, 0)
	}
	at := 0
	for at < len(b) {
		rest := b[at:]
		if len(b) == blockSize && s.isRest(rest) {
			s.Whole = s.Size + blockSize
			break
		}
		c, _, ok := s.at(rest)
		if ok {
			ok = s.fits(c)
		}
		if !ok {
			s.end(rest)
			err := s.look(b, at)
			s.hidden(b, at+1)
			return err
		}
		at += c.size()
		if err := s.add(c, s.Size+int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// fits says whether c may come next.
func (s *scanner) fits(c chunk) bool { return (c.part == typeFull || c.part == typeFirst) != s.open }

func (s *scanner) add(c chunk, end int64) error {
	s.Whole = end
	if !s.append(c) {
		return nil
	}
	s.End = end
	s.Records++
	return s.each(s.record)
}

// append adds a part of a record, and says whether it was the last.
func (s *scanner) append(c chunk) bool {
	if !s.open {
		s.record = s.record[:0]
	}
	if s.whole || !s.log || len(s.record) < kept {
		s.record = append(s.record, c.payload...)
	}
	s.open = c.part == typeFirst || c.part == typeMiddle
	return !s.open
}

// end notes what the records end with.
func (s *scanner) end(rest []byte) {
	switch {
	case !s.open && s.isEnd(rest):
		s.Tail = Ended
		s.Whole += logHeader
		s.End = s.Whole
	case isZero(rest):
		s.Tail = Zeros
	default:
		s.Tail = Torn
	}
}

// look counts chunks behind the end, from at on.
func (s *scanner) look(b []byte, at int) error {
	if s.Tail == Zeros && !isZero(b[at:]) {
		s.Tail = Torn
	}
	for at < len(b) {
		c, size, ok := s.at(b[at:])
		switch {
		case ok:
			s.found(c, s.Size+int64(at))
			s.Behind.Chunks++
			if err := s.rescue(c); err != nil {
				return err
			}
		case size == 0:
			s.open = false
			return nil
		default:
			s.open = false
		}
		at += size
	}
	return nil
}

// rescue gives a record from behind the end, if its beginning is there.
func (s *scanner) rescue(c chunk) error {
	if c.part == typeFull || c.part == typeFirst {
		s.open = false
	} else if !s.open {
		return nil
	}
	if !s.append(c) || !s.whole {
		return nil
	}
	return s.each(s.record)
}

func (s *scanner) found(c chunk, at int64) {
	if s.Behind.Bytes == 0 {
		s.Behind.First = at
	}
	s.Behind.Bytes += int64(c.size())
	s.Behind.Synced = max(s.Behind.Synced, int64(min(c.synced, 1<<62)))
	if c.part == typeFull && IsMark(c.payload) {
		s.Behind.Marks++
	}
}

// hidden counts chunks at any place of the block in which the records end.
func (s *scanner) hidden(b []byte, at int) {
	if s.Behind.Chunks > 0 || s.Tail == Ended {
		return
	}
	for at < len(b) {
		c, _, ok := s.at(b[at:])
		if !ok || len(c.payload) == 0 {
			at++
			continue
		}
		s.Behind.Hidden++
		at += c.size()
	}
}
