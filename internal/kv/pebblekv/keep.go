package pebblekv

import (
	"errors"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keepDisk removes no file of data before it is let: what Pebble takes for obsolete when it opens a store it may take for so
// because the store is damaged. Pebble uses no number twice, so a file that it has removed is in nobody's way.
type keepDisk struct {
	vfs.FS
	isSpoilt func(base string) bool
	mu       struct {
		sync.Mutex
		free  bool
		names []string
		made  map[string]bool // by us, since
	}
	removing sync.WaitGroup
}

func (d *keepDisk) Remove(name string) error {
	switch base := d.PathBase(name); {
	case d.isSpoilt(base): // it may be all that is left of what it holds
		return nil
	case strings.HasPrefix(base, "marker.") || !d.hold(name):
		return d.FS.Remove(name)
	}
	return nil
}

func (d *keepDisk) Unwrap() vfs.FS { return d.FS }

// Create is vfs.FS's. What is new may be removed: a table for which a full disk had no room.
func (d *keepDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.Create(name, category)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && !d.mu.free {
		if d.mu.made == nil {
			d.mu.made = map[string]bool{}
		}
		d.mu.made[name] = true
	}
	return file, err
}

// hold notes a name to be removed later, if it still is to be later.
func (d *keepDisk) hold(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.free || d.mu.made[name] {
		return false
	}
	d.mu.names = append(d.mu.names, name)
	return true
}

// letGo removes what was held, beside the caller, and holds nothing from then on.
func (d *keepDisk) letGo() {
	d.mu.Lock()
	names := d.mu.names
	d.mu.names, d.mu.made, d.mu.free = nil, nil, true
	d.mu.Unlock()
	d.removing.Go(func() {
		for _, name := range names {
			_ = d.FS.Remove(name) // what is left is found when the store is opened again
		}
	})
}

// wait returns when what was let go is removed.
func (d *keepDisk) wait() { d.removing.Wait() }

// replaceFile puts a file in its place whole or not at all.
func replaceFile(disk vfs.FS, dir, name string, content []byte) error {
	path := disk.PathJoin(dir, name)
	file, err := disk.Create(path+tempSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := disk.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return syncDir(disk, dir)
}

// tempSuffix is of a file that is not in its place yet.
const tempSuffix = ".tmp"
