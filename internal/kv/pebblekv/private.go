package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Nobody but its owner reads or writes what the store keeps, whatever the umask and whoever made the folder.
const (
	privateFile   fs.FileMode = 0o600
	privateFolder fs.FileMode = 0o700
)

// privateDisk is the machine's disk. It makes each file itself, and Pebble's opens it: a file that is narrowed after it was made
// is open to others for a moment.
type privateDisk struct{ vfs.FS }

// make makes an empty file where there is none.
func (d privateDisk) make(name string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return err
	}
	return file.Close()
}

// Create is vfs.FS's. As Pebble's does, it puts a new file in the place of one that is there, which may have other names.
func (d privateDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	err := d.make(name)
	for errors.Is(err, fs.ErrExist) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = d.make(name)
	}
	if err != nil {
		return nil, err
	}
	return d.FS.OpenReadWrite(name, category)
}

// OpenReadWrite is vfs.FS's: it makes the file where there is none.
func (d privateDisk) OpenReadWrite(name string, category vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := d.make(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.FS.OpenReadWrite(name, category, o...)
}

// Lock is vfs.FS's. A file that is there is not opened twice: whoever closes it gives up all locks of the process on it.
func (d privateDisk) Lock(name string) (io.Closer, error) {
	if err := d.make(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.FS.Lock(name)
}

// MkdirAll is vfs.FS's.
func (d privateDisk) MkdirAll(dir string, perm fs.FileMode) error {
	return d.FS.MkdirAll(dir, perm&privateFolder)
}

// Unwrap is vfs.FS's.
func (d privateDisk) Unwrap() vfs.FS { return d.FS }

// narrow takes from others what earlier versions, or who copied the store here, gave them. What it may not narrow it leaves, and
// says so: the files can be somebody's who lets us use them.
func narrow(dir string, log *slog.Logger) error {
	changed, refused := 0, error(nil)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		private := privateFile
		switch {
		case info.IsDir():
			private = privateFolder
		case !info.Mode().IsRegular():
			return nil // a link's mode is that of what it leads to, which is not ours
		}
		if info.Mode().Perm()&^private == 0 {
			return nil
		}
		if err := os.Chmod(path, info.Mode().Perm()&private); err != nil {
			refused = err
			return nil
		}
		changed++
		return nil
	})
	if changed > 0 {
		log.Warn("store: other users of the machine could get at files of the store; now only their owner can", "path", dir, "files", changed)
	}
	if refused != nil {
		log.Warn("store: other users of the machine can get at files of the store, and this may not be changed", "path", dir, "err", refused)
	}
	if err != nil {
		return fmt.Errorf("look at the files of %s: %w", dir, err)
	}
	return nil
}
