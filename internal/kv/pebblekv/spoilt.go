package pebblekv

import (
	"errors"
	"fmt"
	"github.com/ebbdb/ebb/internal/kv"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// spoiltDisk refuses blocks of tables that were damaged when they were read before. From the first on no compaction ends well: one
// that takes what it cannot read for the end would put less in the place of its tables, and nobody would know.
type spoiltDisk struct {
	vfs.FS
	failure *failure
}

// errMerging is what writing a compaction's tables fails with, for Pebble an error of something damaged.
type errMerging string

func (e errMerging) Error() string { return "a table is damaged, so none are merged: " + string(e) }

func (e errMerging) Is(target error) bool { return target == pebble.ErrCorruption }

func (d spoiltDisk) merging() error {
	if text := d.failure.damage.Load(); text != nil {
		return errMerging(*text)
	}
	return nil
}

func (d spoiltDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if tableKindOf(name, category) != mergedTable {
		return d.FS.Create(name, category)
	}
	if err := d.merging(); err != nil {
		return nil, err
	}
	file, err := d.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return &mergedFile{file, d}, nil
}

// mergedFile is a table that a compaction writes.
type mergedFile struct {
	vfs.File
	disk spoiltDisk
}

func (f *mergedFile) Write(p []byte) (int, error) {
	if err := f.disk.merging(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *mergedFile) Sync() error { return errors.Join(f.disk.merging(), f.File.Sync()) }

func (f *mergedFile) SyncData() error { return errors.Join(f.disk.merging(), f.File.SyncData()) }

func (d spoiltDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := d.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return d.failure.spoilt.Guard(file, d.PathBase(name)), nil
}

func (d spoiltDisk) Unwrap() vfs.FS { return d.FS }

// checkOptions names the file when what Pebble wrote of its options cannot be read. Pebble opens no store then, and nothing else
// is lost with it.
func checkOptions(disk vfs.FS, dir string, o *pebble.Options) error {
	names, err := disk.List(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	latest, last := "", uint64(0)
	for _, name := range names {
		text, ok := strings.CutPrefix(name, "OPTIONS-")
		if number, err := strconv.ParseUint(text, 10, 64); ok && err == nil && number >= last {
			latest, last = name, number
		}
	}
	if latest == "" {
		return nil
	}
	text, err := readAll(disk, disk.PathJoin(dir, latest))
	if err != nil {
		return fmt.Errorf("read %s: %w", latest, err)
	}
	o = o.Clone()
	o.EnsureDefaults()
	if err := o.CheckCompatibility(dir, text); err != nil {
		reason := []rune(err.Error())
		return kv.Damaged(fmt.Errorf("%s is damaged, or of another version: %q. It holds nothing but how the store was opened last: move it away to start without it",
			latest, string(reason[:min(len(reason), maxReason)])))
	}
	return nil
}

// maxReason bounds what is said of a damaged file.
const maxReason = 200

func readAll(disk vfs.FS, path string) (string, error) {
	file, err := disk.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > maxOptions {
		return "", fmt.Errorf("%d bytes: %w", info.Size(), fs.ErrInvalid)
	}
	b := make([]byte, info.Size())
	_, err = file.ReadAt(b, 0)
	return string(b), err
}

// maxOptions bounds what is read of a small file.
const maxOptions = 1 << 20
