package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// File is a log file. Opening it changes nothing in what is there, so that a start that fails leaves no trace. It may be rotated
// while it is written.
type File struct {
	path string
	made bool

	mu   sync.Mutex // guards which file it is
	file *os.File
}

// OpenFile opens the file at path, or makes it.
func OpenFile(path string) (*File, error) {
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{file: f, path: path, made: made}, nil
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("Can't initialize rotatable log file: %w", err)
	}
	return f, nil
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(p)
}

// Append adds p to the file, whole or not at all: of what does not fit nothing stays.
func (f *File) Append(p []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.file.Write(p)
	if err != nil && n > 0 {
		if info, failed := f.file.Stat(); failed == nil {
			err = errors.Join(err, f.file.Truncate(info.Size()-int64(n))) // nobody else writes to it
		}
	}
	return err
}

// Sync has what was added before be on stable storage.
func (f *File) Sync() error {
	f.mu.Lock()
	file := f.file
	f.mu.Unlock()
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) && !isNoFile(err) { // a file is on stable storage before it is closed
		return err
	}
	return nil
}

// isNoFile says whether err is that of a pipe or a device, which have no stable storage.
func isNoFile(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}

// Narrow takes away what others than the owner may do with the file.
func (f *File) Narrow() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return f.file.Chmod(info.Mode().Perm() &^ 0o077)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// Rotate begins a new file, and keeps what was there beside it, under mongod's kind of name for the moment now, which it returns: "" where
// there was nothing. One that is there under that name is not lost: mongod refuses, too.
func (f *File) Rotate(now time.Time) (kept string, err error) {
	old, kept, err := f.moved(now)
	if err != nil || old == nil {
		return "", err
	}
	return kept, retire(old)
}

// moved has the old file be beside the new one, and returns it; nil where there was nothing in it.
func (f *File) moved(now time.Time) (old *os.File, kept string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := f.file.Stat(); err == nil && info.Size() == 0 {
		return nil, "", nil
	}
	kept = f.path + "." + now.UTC().Format("2006-01-02T15-04-05")
	if _, err := os.Lstat(kept); err == nil {
		return nil, "", fmt.Errorf("Renaming file %s to %s failed; destination already exists", f.path, kept)
	}
	if err := os.Rename(f.path, kept); err != nil {
		return nil, "", fmt.Errorf("Can't rotate log file: %w", err)
	}
	old, err = f.reopen()
	return old, kept, err
}

// Reopen goes on in the file that is under the name now, or a new one: somebody else has moved the old one.
func (f *File) Reopen() error {
	f.mu.Lock()
	old, err := f.reopen()
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return retire(old)
}

// reopen holds mu. It returns the file that was written to before.
func (f *File) reopen() (old *os.File, err error) {
	fresh, err := open(f.path)
	if err != nil {
		return nil, err
	}
	old, f.file = f.file, fresh
	return old, nil
}

// retire closes a file that nobody writes to any more, when what is in it is on stable storage.
func retire(old *os.File) error {
	err := old.Sync()
	if isNoFile(err) {
		err = nil
	}
	return errors.Join(err, old.Close())
}

// Abandon closes the file of a start that failed, and removes it when OpenFile made it.
func (f *File) Abandon() error {
	err := f.Close()
	if f.made {
		err = errors.Join(err, os.Remove(f.path))
	}
	return err
}
