package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// File is a log file. Opening it changes nothing in what is there, so that a start that fails leaves no trace.
type File struct {
	*os.File
	path string
	made bool
}

// OpenFile opens the file at path, or makes it.
func OpenFile(path string) (*File, error) {
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path, made: made}, nil
}

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("Can't initialize rotatable log file: %w", err)
	}
	return f, nil
}

// Rotate begins a new file, and keeps what was there beside it, under mongod's kind of name for the moment now.
func (f *File) Rotate(now time.Time) error {
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		return nil
	}
	if err := os.Rename(f.path, f.path+"."+now.UTC().Format("2006-01-02T15-04-05")); err != nil {
		return fmt.Errorf("Can't rotate log file: %w", err)
	}
	fresh, err := open(f.path)
	if err != nil {
		return err
	}
	old := f.File
	f.File = fresh
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
