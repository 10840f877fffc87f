package pebblekv

import (
	"math"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble sets aside 110 % of a memtable for each file of its log, the many files of small memtables at the start too, and
// keeps one more than it has memtables of those it no longer needs, to write over them: with 64 MiB a memtable, 420 MiB
// that hold nothing. So the log's files grow by small steps here, and go when their memtable is flushed, but for one (logRecycler).
//
// What is only set aside must be marked as written when it is, and a sync then waits for that to be on disk too: ext4 takes
// twice as long for it, and twice the CPU time. So zeros are written ahead of small commits, which become the log's end
// when the log is read, as what is set aside does.

const (
	// logStep is how much is set aside for a file of the log at once.
	logStep = 4 << 20
	// zeroStep is how far ahead of small commits zeros are written; for many of them it is one more write.
	zeroStep = 256 << 10
	// smallRound is the most that a sync brings to disk for zeros to pay.
	smallRound = 64 << 10
)

var zeros [zeroStep]byte

// logDisk sets aside little for files of the log. Where it has no recycler it sets nothing aside.
type logDisk struct {
	vfs.FS
	recycler *logRecycler
}

// Create is vfs.FS's.
func (d logDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		return d.FS.Create(name, category)
	}
	if d.recycler != nil {
		if file, size := d.recycler.take(d.FS, name, category); file != nil {
			return &logFile{File: file, reserved: size}, nil
		}
	}
	file, err := d.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	f := &logFile{File: file}
	if d.recycler == nil {
		f.reserved = math.MaxInt64
	}
	return f, nil
}

// Remove is vfs.FS's.
func (d logDisk) Remove(name string) error {
	if d.recycler != nil && isLog(name) && d.recycler.keep(name) {
		return nil
	}
	return d.FS.Remove(name)
}

// logFile is written and synced by one goroutine at a time.
type logFile struct {
	vfs.File
	written, zeroed, reserved int64 // up to where
	synced                    int64 // what was written when it was synced last
	small                     bool  // the last sync brought little
}

func (f *logFile) Write(p []byte) (int, error) {
	end := f.written + int64(len(p))
	for end > f.reserved {
		_ = f.File.Preallocate(f.reserved, logStep) // not every disk can; then the file grows as it is written
		f.reserved += logStep
	}
	if f.small && end > f.zeroed {
		f.zero(end)
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// zero writes zeros from what is written to a step behind end. Where that fails the log does without.
func (f *logFile) zero(end int64) {
	if f.Fd() == vfs.InvalidFd {
		return // not a file of the disk's
	}
	for f.zeroed = max(f.zeroed, f.written); f.zeroed < end; {
		n, err := f.File.WriteAt(zeros[:], f.zeroed)
		if err != nil {
			f.zeroed = end
			return
		}
		f.zeroed += int64(n)
	}
}

// SyncData lets those go first who are ready to run. Its thread is in the kernel for as long as the disk takes. While
// goroutines stand in its processor's queue, that processor must be taken from it and handed to another thread, which has to
// be woken, and the scheduler's monitor goes round every 20 µs to see to that: a quarter of what small commits cost. With its
// queue empty the processor stays with the thread until it is needed.
func (f *logFile) SyncData() error {
	runtime.Gosched()
	f.small = f.written-f.synced <= smallRound
	f.synced = f.written
	return f.File.SyncData()
}

// Preallocate is what Pebble would have.
func (f *logFile) Preallocate(int64, int64) error { return nil }

// cleaner removes files as Pebble's own does. That there is an ArchiveCleaner deep down, which is never asked, makes Pebble
// believe that a file's contents are needed, and so not write over it; there is no option for that.
type cleaner struct {
	pebble.DeleteCleaner
	keeper
}

type keeper struct{ pebble.ArchiveCleaner }
