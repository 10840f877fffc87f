package pebblekv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/kv"
)

// A store's directory holds a file that says what it is, written before anything else, so that Open never builds into
// somebody else's files nor reads what a newer Ebb has written.
const (
	formatFile    = "EBB-FORMAT"
	formatLine    = "ebb pebblekv %d\n"
	currentFormat = 3 // commits store their numbers
	oldestFormat  = 1 // 1 is without notes of what was synced, too
	maxFormatFile = 256
)

// checkFormat accepts a store of a format that is known, and says which, and an empty directory, which it marks as ours.
func checkFormat(disk vfs.FS, dir string) (version int, err error) {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("make %s: %w", dir, err)
	}
	text, err := readFormat(disk, disk.PathJoin(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && text == "" {
		return currentFormat, initFormat(disk, dir)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", formatFile, err)
	}
	return parseFormat(dir, text)
}

// CheckFiles says what is wrong with the small files of a store that a check of its data does not look at: that of its format, and
// that of the options it was opened with last. Of another format nobody here can say more than that.
func CheckFiles(disk vfs.FS, dir string) error {
	text, err := readFormat(disk, disk.PathJoin(dir, formatFile))
	if err == nil {
		_, err = parseFormat(dir, text)
	}
	if errors.Is(err, kv.ErrFormat) {
		return err
	}
	return errors.Join(err, checkOptions(disk, dir, Options{}.withDefaults().pebble(nil, nil, nil, nil)))
}

func parseFormat(dir, text string) (version int, err error) {
	if _, err := fmt.Sscanf(text, formatLine, &version); err != nil || text != fmt.Sprintf(formatLine, version) {
		return 0, fmt.Errorf("%s is not an Ebb store: its %s says %q", dir, formatFile, text)
	}
	if version < oldestFormat || version > currentFormat {
		return 0, fmt.Errorf("%s has store format %d, this Ebb knows format %d: %w, if %s is right", dir, version, currentFormat, kv.ErrFormat, formatFile)
	}
	return version, nil
}

// raiseFormat writes the number of this format, so that no older Ebb goes on with what it does not know.
func raiseFormat(disk vfs.FS, dir string) error {
	if err := replaceFile(disk, dir, formatFile, fmt.Appendf(nil, formatLine, currentFormat)); err != nil {
		return fmt.Errorf("write %s: %w", formatFile, err)
	}
	return nil
}

func readFormat(disk vfs.FS, path string) (string, error) {
	file, err := disk.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFormatFile))
	return string(text), err
}

func initFormat(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		// A crash can leave our own file empty; a mounted volume brings lost+found.
		if base := filepath.Base(strings.TrimSuffix(name, "/")); base != formatFile && base != "lost+found" {
			return fmt.Errorf("%s is not an Ebb store and not empty: it holds %q, and its file %s is missing or empty", dir, base, formatFile)
		}
	}
	if err := writeFormat(disk, disk.PathJoin(dir, formatFile)); err != nil {
		return fmt.Errorf("write %s: %w", formatFile, err)
	}
	return syncDir(disk, dir)
}

func writeFormat(disk vfs.FS, path string) error {
	file, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, formatLine, currentFormat)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(disk vfs.FS, dir string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
