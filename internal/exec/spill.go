package exec

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

const (
	// maxRuns is how many sorted runs are merged at once; more are first merged into one.
	maxRuns = 64
	// runBuffer is how much of each run is read at once.
	runBuffer = 64 << 10
	// maxRecord is how long one record of a run may be.
	maxRecord = 1 << 30
)

// run is a temporary file of records in order. The file has no name any more, so that nothing is left behind by a crash.
type run struct {
	file *os.File
	w    *bufio.Writer
	r    *bufio.Reader
	buf  []byte
}

func newRun(dir string) (*run, error) {
	f, err := os.CreateTemp(dir, "spill-*")
	if err != nil {
		return nil, fmt.Errorf("making a temporary file for a stage: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, close does it
	return &run{file: f, w: bufio.NewWriterSize(f, runBuffer)}, nil
}

// write appends a record of several parts.
func (r *run) write(parts ...[]byte) error {
	for _, p := range parts {
		var n [4]byte
		binary.LittleEndian.PutUint32(n[:], uint32(len(p)))
		if _, err := r.w.Write(n[:]); err != nil {
			return fmt.Errorf("writing a stage's temporary file: %w", err)
		}
		if _, err := r.w.Write(p); err != nil {
			return fmt.Errorf("writing a stage's temporary file: %w", err)
		}
	}
	return nil
}

// rewind ends writing and starts reading.
func (r *run) rewind() error {
	if err := r.w.Flush(); err != nil {
		return fmt.Errorf("writing a stage's temporary file: %w", err)
	}
	r.w = nil
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading a stage's temporary file: %w", err)
	}
	r.r = bufio.NewReaderSize(r.file, runBuffer)
	return nil
}

// read fills parts with the next record; io.EOF is the end. The bytes are good until the next read.
func (r *run) read(parts ...*[]byte) error {
	r.buf = r.buf[:0]
	ends := make([]int, 0, 4)
	for i := range parts {
		var n [4]byte
		if _, err := io.ReadFull(r.r, n[:]); err != nil {
			if i == 0 && err == io.EOF {
				return io.EOF
			}
			return fmt.Errorf("reading a stage's temporary file: %w", err)
		}
		l := binary.LittleEndian.Uint32(n[:])
		if l > maxRecord {
			return fmt.Errorf("reading a stage's temporary file: a record of %d bytes", l)
		}
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, l)...)
		if _, err := io.ReadFull(r.r, r.buf[at:]); err != nil {
			return fmt.Errorf("reading a stage's temporary file: %w", err)
		}
		ends = append(ends, len(r.buf))
	}
	at := 0
	for i, p := range parts {
		*p = r.buf[at:ends[i]:ends[i]]
		at = ends[i]
	}
	return nil
}

func (r *run) close() error {
	name := r.file.Name()
	err := r.file.Close()
	_ = os.Remove(name) // gone already where that was possible
	return err
}

// spilling says that a stage is past its memory: it may go on in files, or the error tells why not.
func (op *Op) spilling(stage string) error {
	if !op.AllowDiskUse {
		return mongoerr.New(mongoerr.QueryExceededMemoryLimitNoDiskUseAllowed,
			"Exceeded memory limit for %s, but didn't allow external spilling; pass allowDiskUse:true to opt in", stage)
	}
	for o := op; o != nil; o = o.parent {
		o.UsedDisk = true
	}
	return nil
}
