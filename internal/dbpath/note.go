package dbpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Notes are small files by which somebody who has a directory in his hands tells the next process that opens it something.

// WriteNote leaves a note in a directory, whole or not at all. Nobody may hold the directory.
func WriteNote(path, name, text string) error {
	file := filepath.Join(path, name)
	err := writeSynced(file+".tmp", text+"\n")
	if err == nil {
		err = os.Rename(file+".tmp", file)
	}
	if err == nil {
		err = syncDir(path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, cause(err))
	}
	return nil
}

// Note is what a note says, without blanks around it.
func (d *Dir) Note(name string) (text string, there bool, err error) {
	file := filepath.Join(d.path, name)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSmallFile) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxSmallFile)
	}
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", file, cause(err))
	}
	f, err := os.Open(file)
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", file, cause(err))
	}
	defer f.Close()
	read, err := readSmall(f)
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", file, cause(err))
	}
	return strings.TrimSpace(string(read)), true, nil
}

// RemoveNote removes a note for good, if it is there.
func (d *Dir) RemoveNote(name string) error {
	err := os.Remove(filepath.Join(d.path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = syncDir(d.path)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", filepath.Join(d.path, name), cause(err))
	}
	return nil
}
