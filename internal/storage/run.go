package storage

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// maxRuns is how many runs are merged at once; more are first merged into one.
	maxRuns = 64
	// runBuffer is how much of a run is read or written at once.
	runBuffer = 128 << 10
	// maxRunPart bounds the parts of an entry that is read back.
	maxRunPart = 1 << 30
)

// run is a temporary file of sorted entries. It has no name any more, so that nothing is left behind by a crash.
type run struct {
	file *os.File
	w    *bufio.Writer
	r    *bufio.Reader
	buf  []byte
}

func newRun(dir string) (*run, error) {
	f, err := os.CreateTemp(dir, "index-*")
	if err != nil {
		return nil, fmt.Errorf("storage: make a temporary file for an index build: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, close does it
	return &run{file: f, w: bufio.NewWriterSize(f, runBuffer)}, nil
}

// write appends an entry: the lengths of its parts, and the parts.
func (r *run) write(e sortedEntry) error {
	r.buf = binary.AppendUvarint(r.buf[:0], uint64(len(e.key)))
	r.buf = binary.AppendUvarint(r.buf, uint64(len(e.id)))
	r.buf = binary.AppendUvarint(r.buf, uint64(len(e.typeBits)))
	for _, part := range [][]byte{r.buf, e.key, e.id, e.typeBits} {
		if _, err := r.w.Write(part); err != nil {
			return fmt.Errorf("storage: write a temporary file of an index build: %w", err)
		}
	}
	return nil
}

// rewind ends writing and starts reading.
func (r *run) rewind() error {
	err := r.w.Flush()
	if err == nil {
		_, err = r.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("storage: write a temporary file of an index build: %w", err)
	}
	r.w, r.r = nil, bufio.NewReaderSize(r.file, runBuffer)
	return nil
}

// read is the next entry; ok is false at the end. Its bytes are good until the next read.
func (r *run) read() (e sortedEntry, ok bool, err error) {
	var lengths [3]uint64
	for i := range lengths {
		n, err := binary.ReadUvarint(r.r)
		if i == 0 && errors.Is(err, io.EOF) {
			return e, false, nil
		}
		if err == nil && n > maxRunPart {
			err = fmt.Errorf("a part of %d bytes", n)
		}
		if err != nil {
			return e, false, readingRun(err)
		}
		lengths[i] = n
	}
	key, id := lengths[0], lengths[0]+lengths[1]
	n := int(id + lengths[2])
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return e, false, readingRun(err)
	}
	return sortedEntry{r.buf[:key:key], r.buf[key:id:id], r.buf[id:]}, true, nil
}

func readingRun(err error) error {
	return fmt.Errorf("storage: read a temporary file of an index build: %w", err)
}

func closeRuns(runs []*run) {
	for _, r := range runs {
		name := r.file.Name()
		_ = r.file.Close()
		_ = os.Remove(name) // gone already where that was possible
	}
}

// merge reads several runs as one: a heap of those that are not at their end, each with its next entry.
type merge struct {
	heads []head
	begun bool // the first head has been given out
}

type head struct {
	run   *run
	entry sortedEntry
}

func newMerge(runs []*run) (*merge, error) {
	m := &merge{}
	for _, r := range runs {
		if err := r.rewind(); err != nil {
			return nil, err
		}
		e, ok, err := r.read()
		if err != nil {
			return nil, err
		}
		if ok {
			m.heads = append(m.heads, head{r, e})
		}
	}
	heap.Init(m)
	return m, nil
}

// next is the next entry of all, good until the next call.
func (m *merge) next() (e sortedEntry, ok bool, err error) {
	if m.begun {
		if err := m.advance(); err != nil {
			return e, false, err
		}
	}
	m.begun = true
	if len(m.heads) == 0 {
		return e, false, nil
	}
	return m.heads[0].entry, true, nil
}

// advance moves the run whose entry was given out.
func (m *merge) advance() error {
	if len(m.heads) == 0 {
		return nil
	}
	e, ok, err := m.heads[0].run.read()
	if err != nil {
		return err
	}
	if !ok {
		heap.Pop(m)
		return nil
	}
	m.heads[0].entry = e
	heap.Fix(m, 0)
	return nil
}

// Len, Less, Swap, Push and Pop are heap.Interface's.
func (m *merge) Len() int           { return len(m.heads) }
func (m *merge) Less(i, j int) bool { return m.heads[i].entry.compare(m.heads[j].entry) < 0 }
func (m *merge) Swap(i, j int)      { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *merge) Push(x any)         { m.heads = append(m.heads, x.(head)) }
func (m *merge) Pop() any {
	last := m.heads[len(m.heads)-1]
	m.heads = m.heads[:len(m.heads)-1]
	return last
}
