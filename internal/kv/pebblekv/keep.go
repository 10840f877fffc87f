package pebblekv

import (
	"errors"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keepDisk removes no file of data before it is let: what Pebble takes for obsolete when it opens a store it may take for so
// because the store is damaged. Pebble uses no number twice, so a file that it has removed is in nobody's way.
//
// While it is frozen, for somebody who copies the files one by one, it removes none either, and who would make a table waits. So what
// the manifest tells of is there, whenever the copy comes to the one and to the other.
type keepDisk struct {
	vfs.FS
	dir      string
	closing  <-chan struct{}
	isSpoilt func(base string) bool
	mu       struct {
		sync.Mutex
		free   bool
		names  []string
		made   map[string]bool // by us, since
		frozen int             // how many have it so
		thawed chan struct{}   // closed when nobody has it frozen any more
		// waiting is how many would make a table.
		waiting int
	}
	removing sync.WaitGroup
}

// keeps says whether nothing is to be removed; the caller holds mu.
func (d *keepDisk) keeps() bool { return !d.mu.free || d.mu.frozen > 0 }

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
	if d.PathDir(name) == d.dir && strings.HasSuffix(name, ".sst") {
		d.awaitThaw()
	}
	file, err := d.FS.Create(name, category)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.keeps() {
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
	if !d.keeps() || d.mu.made[name] {
		return false
	}
	d.mu.names = append(d.mu.names, name)
	return true
}

// letGo removes what was held, beside the caller, and holds nothing from then on, unless it is frozen.
func (d *keepDisk) letGo() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.free = true
	d.remove()
}

// remove removes what was held if nothing is to be any more; the caller holds mu.
func (d *keepDisk) remove() {
	if d.keeps() {
		return
	}
	names := d.mu.names
	d.mu.names, d.mu.made = nil, nil
	d.removing.Go(func() {
		for _, name := range names {
			_ = d.FS.Remove(name) // what is left is found when the store is opened again
		}
	})
}

// freeze has nobody make a table, nor remove a file, until thaw is called as often as freeze was.
func (d *keepDisk) freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.frozen++; d.mu.frozen == 1 {
		d.mu.thawed = make(chan struct{})
	}
}

func (d *keepDisk) thaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.frozen--; d.mu.frozen == 0 {
		close(d.mu.thawed)
		d.remove()
	}
}

// isFrozen says whether somebody copies the files.
func (d *keepDisk) isFrozen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.frozen > 0
}

// awaitThaw returns when it is not frozen, or the store is being closed.
func (d *keepDisk) awaitThaw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for isClosing := false; d.mu.frozen > 0 && !isClosing; {
		thawed := d.mu.thawed
		d.mu.waiting++
		d.mu.Unlock()
		select {
		case <-thawed:
		case <-d.closing:
			isClosing = true
		}
		d.mu.Lock()
		d.mu.waiting--
	}
}

// waiting is how many wait to make a table.
func (d *keepDisk) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.waiting
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
