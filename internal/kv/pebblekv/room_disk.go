package pebblekv

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/throttle"
)

// roomDisk is the disk as Pebble sees it: what takes room goes through room.
type roomDisk struct {
	vfs.FS
	room *room
}

// tableKind says what a file may do. Tables may fail to be written: they are thrown away then, and written anew. The log, and
// what lists the tables, must not.
type tableKind uint8

const (
	noTable tableKind = iota
	flushedTable
	mergedTable // by a compaction, or for one to come
)

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

func tableKindOf(name string, category vfs.DiskWriteCategory) tableKind {
	switch {
	case !isTable(name):
		return noTable
	case category == "pebble-memtable-flush":
		return flushedTable
	}
	return mergedTable
}

func (d *roomDisk) file(name string, category vfs.DiskWriteCategory, open func() (vfs.File, error)) (f vfs.File, err error) {
	kind := tableKindOf(name, category)
	d.room.before(kind)
	err = d.room.try(kind, func() (err error) {
		if err := d.room.fits(kind); err != nil {
			return err
		}
		f, err = open()
		return err
	})
	if err != nil {
		d.room.after(kind, err)
		return nil, err
	}
	return &roomFile{File: f, room: d.room, kind: kind}, nil
}

func (d *roomDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(name, category, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d *roomDisk) ReuseForWrite(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(name, category, func() (vfs.File, error) { return d.FS.ReuseForWrite(from, name, category) })
}

func (d *roomDisk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(name, category, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, o...) })
}

func (d *roomDisk) Link(from, name string) error {
	return d.room.try(tableKindOf(name, ""), func() error { return d.FS.Link(from, name) })
}

func (d *roomDisk) Rename(from, name string) error {
	return d.room.try(noTable, func() error { return d.FS.Rename(from, name) })
}

// Remove is vfs.FS's. Some disks need room to say that there is more.
func (d *roomDisk) Remove(name string) error {
	return d.room.try(flushedTable, func() error { return d.FS.Remove(name) })
}

func (d *roomDisk) RemoveAll(name string) error {
	return d.room.try(flushedTable, func() error { return d.FS.RemoveAll(name) })
}

func (d *roomDisk) MkdirAll(name string, perm fs.FileMode) error {
	return d.room.try(flushedTable, func() error { return d.FS.MkdirAll(name, perm) })
}

func (d *roomDisk) Lock(name string) (c io.Closer, err error) {
	err = d.room.try(flushedTable, func() (err error) {
		c, err = d.FS.Lock(name)
		return err
	})
	return c, err
}

func (d *roomDisk) Unwrap() vfs.FS { return d.FS }

// roomFile is a file of a roomDisk.
type roomFile struct {
	vfs.File
	room *room
	kind tableKind
}

// Write is vfs.File's. What was written before there was no more room stays.
func (f *roomFile) Write(p []byte) (n int, err error) {
	err = f.room.try(f.kind, func() error {
		if err := f.room.fits(f.kind); err != nil {
			return err
		}
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	f.room.wrote(n)
	f.room.after(f.kind, err)
	return n, err
}

// WriteAt is vfs.File's. It is for zeros ahead of the log, which does without where room is scarce.
func (f *roomFile) WriteAt(p []byte, at int64) (int, error) {
	if f.room.isScarce() {
		return 0, errScarce
	}
	n := 0
	err := f.room.once(func() (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

// Preallocate is vfs.File's. Where room is scarce nothing is set aside: the file grows as it is written.
func (f *roomFile) Preallocate(at, length int64) error {
	if !f.room.isAmple(length) {
		return errScarce
	}
	return f.room.once(func() error { return f.File.Preallocate(at, length) })
}

var errScarce = errors.New("pebblekv: room on the disk is scarce")

// Sync is vfs.File's. It is not tried again: who syncs anew after a failure learns nothing of what was lost.
func (f *roomFile) Sync() error {
	err := f.File.Sync()
	f.room.after(f.kind, err)
	return err
}

func (f *roomFile) SyncData() error {
	err := f.File.SyncData()
	f.room.after(f.kind, err)
	return err
}

func (f *roomFile) SyncTo(at int64) (bool, error) {
	full, err := f.File.SyncTo(at)
	f.room.after(f.kind, err)
	return full, err
}

// before rests when the last table of the kind found no room: Pebble tries again at once, and without end.
func (r *room) before(kind tableKind) {
	pause := time.Duration(r.pause[kind].Load())
	if pause == 0 {
		return
	}
	timer := clock.Wall().NewTimer(pause) // it is about a real disk
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.quit:
	}
}

// after lengthens the rest when a table found no room.
func (r *room) after(kind tableKind, err error) {
	if kind == noTable || !isFull(err) {
		return
	}
	defer r.refusedOpening()
	pause := time.Duration(r.pause[kind].Load())
	r.pause[kind].Store(int64(min(max(2*pause, firstTablePause), longestTablePause)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := clock.Wall().Now(); r.mu.told.IsZero() || now.Sub(r.mu.told) >= toldEvery {
		r.mu.told = now
		r.log.Error("store: the disk has no room for a table; it is tried again, ever less often", "err", err)
	}
}

// installed ends the rest: a flush or a compaction has come to its end.
func (r *room) installed(kind tableKind, err error) {
	if err == nil {
		r.pause[kind].Store(0)
	}
}

// restForRemoval rests, but not while room is scarce.
func (r *room) restForRemoval(d time.Duration) {
	if !r.isScarce() {
		throttle.Wait(r.quit, d)
	}
}
