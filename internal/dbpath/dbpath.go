// Package dbpath claims a data directory for one process: it makes it, tells a foreign one, marks it and locks it. It
// must not know what is stored in it.
package dbpath

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// lockFile holds the pid of the process that has the directory, and blanks after a clean stop.
	lockFile = "ebb.lock"
	// markerFile says that the directory is Ebb's, and in which format.
	markerFile = "EBB"
	// format is that of the directory as a whole; it moves only with a migration.
	format = 1

	markerPrefix = "Ebb data directory, format "
	// maxPIDDigits is how long a pid can be.
	maxPIDDigits = 10
	// maxSmallFile bounds what is read of the two files above.
	maxSmallFile = 1 << 10
)

// ErrFormat is of a directory that a newer version of Ebb has made. It says what to do.
var ErrFormat = errors.New("start it with the newer version")

// Dir is a directory that this process holds.
type Dir struct {
	path    string
	lock    *os.File
	unclean bool
	noted   bool // SetOrigin was called
}

// Path is the directory, absolute.
func (d *Dir) Path() string { return d.path }

// Unclean tells whether the process that held it before did not stop in order.
func (d *Dir) Unclean() bool { return d.unclean }

// InUseError says that another process holds the directory.
type InUseError struct {
	Path string
	// PID is 0 when the other process has not written it yet.
	PID int
}

func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("the process with pid %d", e.PID)
	}
	return fmt.Sprintf("DBPathInUse: Unable to lock the lock file: %s. Another ebb instance, %s, is already running on the %s directory",
		filepath.Join(e.Path, lockFile), holder, e.Path)
}

// Claim makes path this process's data directory. It changes nothing in a directory that is not Ebb's.
func Claim(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("dbpath %s: %w", path, err)
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("dbpath %s is not writable: %w", path, cause(err))
	}
	d := &Dir{path: path, lock: lock}
	if err := d.claim(); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// prepare makes the directory, or looks whether the one there is Ebb's or empty.
func prepare(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("dbpath %s cannot be made: %w", path, cause(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("dbpath %s cannot be used: %w", path, cause(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("dbpath %s is not a directory", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("dbpath %s cannot be read: %w", path, cause(err))
	}
	stranger := ""
	for _, e := range entries {
		switch e.Name() {
		case markerFile:
			return nil
		case lockFile, "lost+found", markerFile + ".tmp": // left by a start that was cut off, or by the file system
		default:
			stranger = e.Name()
		}
	}
	if stranger != "" {
		return fmt.Errorf("dbpath %s is not empty and not Ebb's (it holds %q and no file %s): it is left alone", path, stranger, markerFile)
	}
	return nil
}

func (d *Dir) claim() error {
	locked, err := tryLock(d.lock)
	if err != nil {
		return fmt.Errorf("lock dbpath %s: %w", d.path, err)
	}
	before, err := readSmall(d.lock)
	if err != nil {
		return fmt.Errorf("read lock of dbpath %s: %w", d.path, err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(before)))
	if !locked {
		return &InUseError{Path: d.path, PID: pid}
	}
	if err := d.mark(); err != nil {
		return err
	}
	d.unclean = pid != 0
	return d.write(strconv.Itoa(os.Getpid()))
}

// write puts text in the place of what was there. It is as long each time, so that a full disk has room for it, and what was
// there goes only when text is there.
func (d *Dir) write(text string) error {
	line := fmt.Sprintf("%-*s\n", maxPIDDigits, text)
	_, err := d.lock.WriteAt([]byte(line), 0)
	if err == nil {
		err = d.lock.Truncate(int64(len(line)))
	}
	if err == nil {
		err = d.lock.Sync()
	}
	if err != nil {
		return fmt.Errorf("write lock of dbpath %s: %w", d.path, cause(err))
	}
	return nil
}

// mark verifies the marker or writes it, whole or not at all.
func (d *Dir) mark() error {
	name := filepath.Join(d.path, markerFile)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return d.writeMarker(name)
	}
	if err != nil {
		return fmt.Errorf("read marker of dbpath %s: %w", d.path, cause(err))
	}
	defer f.Close()
	return d.checkMarker(f)
}

func (d *Dir) checkMarker(f *os.File) error {
	text, err := readSmall(f)
	if err != nil {
		return fmt.Errorf("read marker of dbpath %s: %w", d.path, err)
	}
	number, ok := bytes.CutPrefix(text, []byte(markerPrefix))
	got, err := strconv.Atoi(strings.TrimSpace(string(number)))
	switch {
	case !ok || err != nil:
		return fmt.Errorf("%s is not the marker of an Ebb data directory", f.Name())
	case got > format:
		return fmt.Errorf("dbpath %s has format %d, as %s says, and this version of Ebb knows up to %d: %w",
			d.path, got, filepath.Base(f.Name()), format, ErrFormat)
	}
	return nil
}

func (d *Dir) writeMarker(name string) error {
	err := writeSynced(name+".tmp", fmt.Sprintf("%s%d\n", markerPrefix, format))
	if err == nil {
		err = os.Rename(name+".tmp", name)
	}
	if err == nil {
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("write marker of dbpath %s: %w", d.path, cause(err))
	}
	return nil
}

// Release gives the directory up after everything in it was closed in order.
func (d *Dir) Release() error {
	if d.noted {
		_ = d.SetOrigin() // where a full disk has no room for it, the one that is there says the same
	}
	err := d.write("")
	return errors.Join(err, d.lock.Close())
}

// Abandon gives the directory up as it was found: what was in it was not opened.
func (d *Dir) Abandon() error {
	if d.unclean {
		return d.lock.Close()
	}
	return d.Release()
}

func readSmall(f *os.File) ([]byte, error) {
	b := make([]byte, maxSmallFile)
	n, err := f.ReadAt(b, 0)
	if err == nil || errors.Is(err, io.EOF) {
		return b[:n], nil
	}
	return nil, err
}

func writeSynced(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// cause is what went wrong without the path, which the caller says.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
