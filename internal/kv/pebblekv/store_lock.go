package pebblekv

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// storeLock keeps others from a store's directory. Pebble counts who holds it, and has it until it is closed; release does without Pebble, where that
// never is.
type storeLock struct {
	*pebble.Lock
	file *lockedFile
}

func lockStore(dir string, disk vfs.FS) (*storeLock, error) {
	d := &lockingDisk{FS: disk}
	lock, err := pebble.LockDirectory(dir, d)
	if err != nil {
		return nil, err
	}
	return &storeLock{lock, d.file}, nil
}

func (l *storeLock) release() error { return l.file.Close() }

// lockingDisk keeps what it locks.
type lockingDisk struct {
	vfs.FS
	file *lockedFile
}

func (d *lockingDisk) Lock(name string) (io.Closer, error) {
	c, err := d.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	d.file = &lockedFile{file: c}
	return d.file, nil
}

// lockedFile is closed once, by whoever comes first.
type lockedFile struct {
	once sync.Once
	file io.Closer
}

func (f *lockedFile) Close() (err error) {
	f.once.Do(func() { err = f.file.Close() })
	return err
}
