// Package spill keeps records in sorted runs, which are temporary files, and reads several runs as one. It does not know
// what the records are, nor what orders them.
package spill

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// MaxRuns is how many runs should be merged at once; more are first merged into one.
	MaxRuns = 64
	// bufferBytes is how much of a run is read or written at once.
	bufferBytes = 64 << 10
	// maxRecordBytes bounds a record that is read back.
	maxRecordBytes = 1 << 30
)

// Run is a temporary file of records. It has no name any more, so that nothing is left behind by a crash. It is written,
// rewound and read.
type Run struct {
	file *os.File
	w    *bufio.Writer
	r    *bufio.Reader
	buf  []byte
	ends []int
}

// New makes an empty run in the folder dir.
func New(dir string) (*Run, error) {
	f, err := os.CreateTemp(dir, "spill-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, Close does it
	return &Run{file: f, w: bufio.NewWriterSize(f, bufferBytes)}, nil
}

// Make is a run of what write writes, to be read from its beginning.
func Make(dir string, write func(*Run) error) (*Run, error) {
	r, err := New(dir)
	if err != nil {
		return nil, err
	}
	if err = write(r); err == nil {
		err = r.Rewind()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Write appends a record of several parts: their lengths, and the parts. All records of a run have as many.
func (r *Run) Write(parts ...[]byte) error {
	r.buf = r.buf[:0]
	for _, p := range parts {
		r.buf = binary.AppendUvarint(r.buf, uint64(len(p)))
	}
	_, err := r.w.Write(r.buf)
	for _, p := range parts {
		if err == nil {
			_, err = r.w.Write(p)
		}
	}
	return writing(err)
}

// Rewind ends writing; what is read next is the first record.
func (r *Run) Rewind() error {
	if err := r.w.Flush(); err != nil {
		return writing(err)
	}
	r.w = nil
	_, err := r.file.Seek(0, io.SeekStart)
	return reading(err)
}

// Read fills parts with those of the next record, good until the next Read; io.EOF is the end.
func (r *Run) Read(parts ...*[]byte) error {
	if r.r == nil {
		r.r = bufio.NewReaderSize(r.file, bufferBytes)
	}
	if _, err := r.r.Peek(1); errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err := r.readEnds(len(parts)); err != nil {
		return reading(err)
	}
	if n := r.ends[len(r.ends)-1]; cap(r.buf) < n {
		r.buf = make([]byte, n)
	} else {
		r.buf = r.buf[:n]
	}
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return reading(err)
	}
	at := 0
	for i, end := range r.ends {
		*parts[i] = r.buf[at:end:end]
		at = end
	}
	return nil
}

// readEnds reads the lengths of a record's parts and notes where each ends.
func (r *Run) readEnds(parts int) error {
	r.ends = r.ends[:0]
	end := uint64(0)
	for range parts {
		n, err := binary.ReadUvarint(r.r)
		if err != nil {
			return err
		}
		if n > maxRecordBytes-end {
			return fmt.Errorf("a record of %d bytes and more", n)
		}
		end += n
		r.ends = append(r.ends, int(end))
	}
	return nil
}

// Close gives the file back.
func (r *Run) Close() {
	name := r.file.Name()
	_ = r.file.Close()
	_ = os.Remove(name) // gone already where that was possible
}

// Close gives all runs back.
func Close(runs []*Run) {
	for _, r := range runs {
		r.Close()
	}
}

func writing(err error) error {
	if err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	return nil
}

func reading(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the end is between two records
	}
	if err != nil {
		return fmt.Errorf("read a temporary file: %w", err)
	}
	return nil
}
