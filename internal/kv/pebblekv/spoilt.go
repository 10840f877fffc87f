package pebblekv

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv/inspect"
)

// spoiltDisk refuses blocks of tables that were damaged when they were read before.
type spoiltDisk struct {
	vfs.FS
	spoilt *inspect.Spoilt
}

func (d spoiltDisk) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := d.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return file, err
	}
	return d.spoilt.Guard(file, d.PathBase(name)), nil
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
		return fmt.Errorf("%s is damaged, or of another version: %q. It holds nothing but how the store was opened last: move it away to start without it",
			latest, string(reason[:min(len(reason), maxReason)]))
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
