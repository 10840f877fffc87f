package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
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

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// Rotate begins a new file, and keeps what was there beside it, under mongod's kind of name for the moment now. One that
// is there under that name is not lost: mongod refuses, too.
func (f *File) Rotate(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := f.file.Stat(); err == nil && info.Size() == 0 {
		return nil
	}
	kept := f.path + "." + now.UTC().Format("2006-01-02T15-04-05")
	if _, err := os.Lstat(kept); err == nil {
		return fmt.Errorf("Renaming file %s to %s failed; destination already exists", f.path, kept)
	}
	if err := os.Rename(f.path, kept); err != nil {
		return fmt.Errorf("Can't rotate log file: %w", err)
	}
	return f.reopen()
}

// Reopen goes on in the file that is under the name now, or a new one: somebody else has moved the old one.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopen()
}

// reopen holds mu.
func (f *File) reopen() error {
	fresh, err := open(f.path)
	if err != nil {
		return err
	}
	old := f.file
	f.file = fresh
	return old.Close()
}

// Abandon closes the file of a start that failed, and removes it when OpenFile made it.
func (f *File) Abandon() error {
	err := f.Close()
	if f.made {
		err = errors.Join(err, os.Remove(f.path))
	}
	return err
}
