// Package hangdisk is a disk that can hang, for tests of what stores do then: what is written or synced comes back when the disk goes on. It knows
// nothing of what the files hold.
package hangdisk

import (
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a vfs.FS in memory.
type Disk struct {
	vfs.FS
	mu    sync.Mutex    // guards all below
	hangs chan struct{} // closed when it goes on; nil: it does not hang
	part  string
}

// New is an empty disk.
func New() *Disk { return &Disk{FS: vfs.NewMem()} }

// Hang has nothing come back until GoOn is called that is written or synced in files whose paths have a part.
func (d *Disk) Hang(part string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.part = part
	if d.hangs == nil {
		d.hangs = make(chan struct{})
	}
}

// GoOn has all come back.
func (d *Disk) GoOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hangs != nil {
		close(d.hangs)
		d.hangs = nil
	}
}

func (d *Disk) wait(name string) {
	d.mu.Lock()
	hangs, hang := d.hangs, strings.Contains(name, d.part)
	d.mu.Unlock()
	if hangs != nil && hang {
		<-hangs
	}
}

// Create implements vfs.FS, as do those below.
func (d *Disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.wait(name)
	f, err := d.FS.Create(name, category)
	return d.file(name, f, err)
}

func (d *Disk) ReuseForWrite(from, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.wait(name)
	f, err := d.FS.ReuseForWrite(from, name, category)
	return d.file(name, f, err)
}

func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, category, o...)
	return d.file(name, f, err)
}

func (d *Disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return d.file(name, f, err)
}

func (d *Disk) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, name, d}, nil
}

type file struct {
	vfs.File
	name string
	disk *Disk
}

// Write implements vfs.File, as do those below.
func (f *file) Write(p []byte) (int, error) {
	f.disk.wait(f.name)
	return f.File.Write(p)
}

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	f.disk.wait(f.name)
	return f.File.WriteAt(p, at)
}

func (f *file) Sync() error {
	f.disk.wait(f.name)
	return f.File.Sync()
}

func (f *file) SyncData() error {
	f.disk.wait(f.name)
	return f.File.SyncData()
}

func (f *file) SyncTo(length int64) (bool, error) {
	f.disk.wait(f.name)
	return f.File.SyncTo(length)
}
