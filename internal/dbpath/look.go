package dbpath

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CheckMarker says what is wrong with the file that tells that the directory is Ebb's, if it is.
func CheckMarker(path string) error {
	f, err := os.Open(filepath.Join(path, markerFile))
	if err != nil {
		return err
	}
	defer f.Close()
	return (&Dir{path: path}).checkMarker(f)
}

// Look makes sure that nobody uses the directory until the closer is called, and changes nothing in it. A directory that cannot be
// written to can be looked at, too.
func Look(path string) (io.Closer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("dbpath %s cannot be used: %w", path, cause(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("dbpath %s is not a directory", path)
	}
	lock, err := os.Open(filepath.Join(path, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil // a copy
	}
	if err != nil {
		return nil, fmt.Errorf("dbpath %s cannot be read: %w", path, cause(err))
	}
	locked, err := tryLock(lock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock dbpath %s: %w", path, err), lock.Close())
	}
	if !locked {
		text, _ := readSmall(lock)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, errors.Join(&InUseError{Path: path, PID: pid}, lock.Close())
	}
	return lock, nil
}
