package pebblekv

import (
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble sets aside 110 % of a memtable for each file of its log, the many files of small memtables at the start too, and
// keeps one more than it has memtables of those it no longer needs, to write over them: with 64 MiB a memtable, 420 MiB
// that hold nothing. On ext4 neither made a sync measurably faster. So the log's files grow by small steps here, and go when
// their memtable is flushed.

// logStep is how much is set aside for a file of the log at once.
const logStep = 4 << 20

// logDisk sets aside little for files of the log.
type logDisk struct{ vfs.FS }

func (d logDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &logFile{File: file}, nil
}

type logFile struct {
	vfs.File
	written, reserved int64
}

func (f *logFile) Write(p []byte) (int, error) {
	for f.written+int64(len(p)) > f.reserved {
		_ = f.File.Preallocate(f.reserved, logStep) // not every disk can; then the file grows as it is written
		f.reserved += logStep
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// SyncData lets those go first who are ready to run. Its thread is in the kernel for as long as the disk takes. While
// goroutines stand in its processor's queue, that processor must be taken from it and handed to another thread, which has to
// be woken, and the scheduler's watchman goes round every 20 µs to see to that: a quarter of what small commits cost. With its
// queue empty the processor stays with the thread until it is needed.
func (f *logFile) SyncData() error {
	runtime.Gosched()
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
