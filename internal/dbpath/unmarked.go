package dbpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ClaimEmpty makes a directory, or takes one that holds nothing, to fill it by other means than a server's. It is no data directory before
// Mark: what is half filled no server takes for one.
func ClaimEmpty(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("dbpath %s: %w", path, err)
	}
	switch _, err := os.Lstat(filepath.Join(path, markerFile)); {
	case err == nil:
		return nil, fmt.Errorf("dbpath %s is not empty: it is a data directory already", path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dbpath %s cannot be used: %w", path, cause(err))
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("dbpath %s is not writable: %w", path, cause(err))
	}
	d := &Dir{path: path, lock: lock}
	if locked, err := tryLock(lock); err != nil || !locked {
		return nil, errors.Join(&InUseError{Path: path}, err, lock.Close())
	}
	if err := prepare(path); err != nil { // somebody may have filled it meanwhile
		return nil, errors.Join(err, lock.Close())
	}
	return d, d.write("")
}

// Mark makes it a data directory: what it holds is whole.
func (d *Dir) Mark() error { return d.mark() }
