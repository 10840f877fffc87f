package raftlog

import (
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
)

// patientDisk is the disk as the log's engine sees it. The engine ends the process when it cannot write, for nobody knows then what it has written. So
// what finds no room on a full disk waits until there is some, and the member with it: it acknowledges nothing, votes for nobody and leads no more,
// as the others see it, while reads of its store go on; and it takes part again as soon as there is room.
type patientDisk struct {
	vfs.FS
	log       *slog.Logger
	open      atomic.Bool   // before, who finds no room is told so
	waiting   atomic.Int64  // writers who wait for room
	abandoned chan struct{} // closed when nobody waits for them any more: they never go on then
}

// The pauses of who waits for room.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

func newPatientDisk(files vfs.FS, log *slog.Logger) *patientDisk {
	return &patientDisk{FS: files, log: log, abandoned: make(chan struct{})}
}

// try does what takes room, when there is some.
func (d *patientDisk) try(do func() error) error {
	err := do()
	if !vfs.IsNoSpaceError(err) || !d.open.Load() {
		return err
	}
	if d.waiting.Add(1) == 1 {
		d.log.Error("The disk is full: the replica set's log cannot be written, and the member takes no part until there is room")
	}
	for pause := firstPause; vfs.IsNoSpaceError(err); pause = min(2*pause, longestPause) {
		timer := clock.Wall().NewTimer(pause) // it is about a real disk
		select {
		case <-timer.C():
		case <-d.abandoned:
			select {} // the disk may be another's by now
		}
		err = do()
	}
	if d.waiting.Add(-1) == 0 {
		d.log.Warn("There is room on the disk: the replica set's log is written again")
	}
	return err
}

// isFull says whether somebody waits for room.
func (d *patientDisk) isFull() bool { return d.waiting.Load() > 0 }

func (d *patientDisk) file(open func() (vfs.File, error)) (f vfs.File, err error) {
	if err = d.try(func() (err error) { f, err = open(); return err }); err != nil {
		return nil, err
	}
	return &patientFile{f, d}, nil
}

// Create implements vfs.FS, as do those below.
func (d *patientDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *patientDisk) ReuseForWrite(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(func() (vfs.File, error) { return d.FS.ReuseForWrite(from, name, category) })
}

func (d *patientDisk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, o...) })
}

func (d *patientDisk) Link(from, name string) error {
	return d.try(func() error { return d.FS.Link(from, name) })
}

func (d *patientDisk) Rename(from, name string) error {
	return d.try(func() error { return d.FS.Rename(from, name) })
}

func (d *patientDisk) Remove(name string) error {
	return d.try(func() error { return d.FS.Remove(name) })
}

func (d *patientDisk) MkdirAll(name string, perm fs.FileMode) error {
	return d.try(func() error { return d.FS.MkdirAll(name, perm) })
}

func (d *patientDisk) Unwrap() vfs.FS { return d.FS }

// patientFile is a file of a patientDisk. A sync that fails is not tried again: who syncs anew learns nothing of what was lost.
type patientFile struct {
	vfs.File
	disk *patientDisk
}

// Write implements vfs.File. What was written before there was no more room stays.
func (f *patientFile) Write(p []byte) (n int, err error) {
	err = f.disk.try(func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return n, err
}
