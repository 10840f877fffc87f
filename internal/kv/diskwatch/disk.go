package diskwatch

import (
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Over is a disk whose writes and syncs are watched. Reads are not: there are too many of them, and who reads is a client that can tell.
func (w *Watch) Over(disk vfs.FS) vfs.FS {
	if w == nil {
		return disk
	}
	return watchedDisk{disk, w}
}

type watchedDisk struct {
	vfs.FS
	watch *Watch
}

// What a disk is asked for, as the log says it.
const (
	toOpen   = "to make a file"
	toWrite  = "to write"
	toSync   = "to sync"
	toRename = "to rename or link"
	toRemove = "to remove"
)

func (d watchedDisk) file(name string, open func() (vfs.File, error)) (f vfs.File, err error) {
	err = d.watch.do(toOpen, name, false, func() (err error) { f, err = open(); return err })
	if err != nil {
		return nil, err
	}
	return &watchedFile{f, name, d.watch}, nil
}

// Create implements vfs.FS, as do those below.
func (d watchedDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

func (d watchedDisk) ReuseForWrite(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.ReuseForWrite(from, name, category) })
}

func (d watchedDisk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, o...) })
}

func (d watchedDisk) OpenDir(name string) (vfs.File, error) {
	return d.file(name, func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

func (d watchedDisk) Link(from, name string) error {
	return d.watch.do(toRename, name, false, func() error { return d.FS.Link(from, name) })
}

func (d watchedDisk) Rename(from, name string) error {
	return d.watch.do(toRename, name, false, func() error { return d.FS.Rename(from, name) })
}

func (d watchedDisk) Remove(name string) error {
	return d.watch.do(toRemove, name, false, func() error { return d.FS.Remove(name) })
}

func (d watchedDisk) MkdirAll(name string, perm fs.FileMode) error {
	return d.watch.do(toOpen, name, false, func() error { return d.FS.MkdirAll(name, perm) })
}

func (d watchedDisk) Unwrap() vfs.FS { return d.FS }

type watchedFile struct {
	vfs.File
	name  string
	watch *Watch
}

// Write implements vfs.File, as do those below.
func (f *watchedFile) Write(p []byte) (int, error) {
	defer f.watch.end(f.watch.begin(toWrite, f.name), false)
	return f.File.Write(p)
}

func (f *watchedFile) WriteAt(p []byte, at int64) (int, error) {
	defer f.watch.end(f.watch.begin(toWrite, f.name), false)
	return f.File.WriteAt(p, at)
}

func (f *watchedFile) Sync() error { return f.watch.do(toSync, f.name, true, f.File.Sync) }

func (f *watchedFile) SyncData() error { return f.watch.do(toSync, f.name, true, f.File.SyncData) }

func (f *watchedFile) SyncTo(length int64) (fullSync bool, err error) {
	key := f.watch.begin(toSync, f.name)
	defer func() { f.watch.end(key, fullSync) }()
	return f.File.SyncTo(length)
}
