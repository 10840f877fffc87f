package pebblekv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// notes writes down how far the log's files and the manifest are on stable storage (inspect.Note), so that what is missing of
// them later is known. A note is written behind each sync, into the file system's cache, and synced at most once a noteInterval:
// a process that ends leaves it exact, a power failure takes the last of it.
//
// Nothing depends on it but what is known of damage, so a note that cannot be written is left out.
type notes struct {
	file    vfs.File
	pending chan struct{} // holds one: something is not synced
	quit    chan struct{}
	done    chan struct{}

	mu struct {
		sync.Mutex
		slots []inspect.Slot
	}
	// closing is held, shared, by who writes.
	closing struct {
		sync.RWMutex
		over bool
	}
}

const noteInterval = time.Second

// openNotes goes on with a note as it was found, or begins a new one where it was not whole. What it says of files that are
// still there goes on to hold.
func openNotes(disk vfs.FS, dir string, found inspect.Note) (*notes, error) {
	n := &notes{pending: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	n.mu.slots = make([]inspect.Slot, inspect.NoteSlots)
	copy(n.mu.slots, found.Slots)
	path := disk.PathJoin(dir, inspect.NoteFile)
	if !found.Whole {
		if err := writeNote(disk, dir, n.mu.slots); err != nil {
			return nil, fmt.Errorf("write %s: %w", inspect.NoteFile, err)
		}
	}
	var err error
	if n.file, err = disk.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, fmt.Errorf("open %s: %w", inspect.NoteFile, err)
	}
	go n.run()
	return n, nil
}

// writeNote writes a note as a whole.
func writeNote(disk vfs.FS, dir string, slots []inspect.Slot) error {
	b := make([]byte, (1+inspect.NoteSlots)*inspect.SlotBytes)
	copy(b, inspect.Head())
	for i, s := range slots {
		s.Put(b[(1+i)*inspect.SlotBytes:])
	}
	return replaceFile(disk, dir, inspect.NoteFile, b)
}

// run syncs what was noted.
func (n *notes) run() {
	defer close(n.done)
	for {
		select {
		case <-n.quit:
			return
		case <-n.pending:
		}
		_ = n.file.SyncData()
		timer := clock.Wall().NewTimer(noteInterval) // it is about a real disk
		select {
		case <-n.quit:
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// close makes the note exact on stable storage.
func (n *notes) close() error {
	if n == nil {
		return nil
	}
	close(n.quit)
	<-n.done
	n.closing.Lock()
	n.closing.over = true
	n.closing.Unlock()
	return errors.Join(n.file.Sync(), n.file.Close())
}

// begin is the place for notes of a file that was just made; nil where all are taken.
func (n *notes) begin(k inspect.Kind, number uint64) *noted {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := -1
	for i, s := range n.mu.slots {
		if s.Kind == k && s.Number == number || s.Kind == inspect.Free && at < 0 {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	n.mu.slots[at] = inspect.Slot{Kind: k, Number: number}
	f := &noted{notes: n, slot: n.mu.slots[at], offset: int64(1+at) * inspect.SlotBytes}
	f.write(0)
	return f
}

// end forgets a file that is no longer needed.
func (n *notes) end(k inspect.Kind, number uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, s := range n.mu.slots {
		if s.Kind == k && s.Number == number {
			n.mu.slots[i] = inspect.Slot{}
			var b [inspect.SlotBytes]byte
			n.write(b[:], int64(1+i)*inspect.SlotBytes)
		}
	}
}

func (n *notes) write(b []byte, offset int64) {
	n.closing.RLock()
	defer n.closing.RUnlock()
	if n.closing.over { // of a store whose opening was left behind: the file may be another's
		return
	}
	if _, err := n.file.WriteAt(b, offset); err != nil {
		return
	}
	select {
	case n.pending <- struct{}{}:
	default:
	}
}

// noted is where one file's notes go. It is used by whoever syncs the file.
type noted struct {
	notes  *notes
	slot   inspect.Slot
	offset int64
	b      [inspect.SlotBytes]byte
}

func (f *noted) write(synced int64) {
	f.slot.Synced = synced
	f.slot.Put(f.b[:])
	f.notes.write(f.b[:], f.offset)
}

// notedDisk notes what is synced of logs and manifests.
type notedDisk struct {
	vfs.FS
	notes *notes
}

// kindOf is which kind of notes a file has; Free if it has none.
func kindOf(base string) (inspect.Kind, uint64) {
	text, kind := "", inspect.Free
	if number, ok := strings.CutSuffix(base, ".log"); ok {
		text, kind = number, inspect.Log
	} else if number, ok := strings.CutPrefix(base, "MANIFEST-"); ok {
		text, kind = number, inspect.Manifest
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return inspect.Free, 0
	}
	return kind, number
}

func (d notedDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	kind, number := kindOf(d.FS.PathBase(name))
	if err != nil || kind == inspect.Free {
		return file, err
	}
	at := d.notes.begin(kind, number)
	if at == nil {
		return file, nil
	}
	return &notedFile{File: file, noted: at}, nil
}

func (d notedDisk) Remove(name string) error {
	err := d.FS.Remove(name)
	if kind, number := kindOf(d.FS.PathBase(name)); kind != inspect.Free && err == nil {
		d.notes.end(kind, number)
	}
	return err
}

func (d notedDisk) Unwrap() vfs.FS { return d.FS }

// notedFile is written and synced by one goroutine at a time.
type notedFile struct {
	vfs.File
	noted   *noted
	written int64
}

func (f *notedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

func (f *notedFile) SyncData() error { return f.note(f.File.SyncData()) }

func (f *notedFile) Sync() error { return f.note(f.File.Sync()) }

func (f *notedFile) note(err error) error {
	if err == nil {
		f.noted.write(f.written)
	}
	return err
}
