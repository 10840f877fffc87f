package dbpath

import (
	"os"
	"syscall"
)

// identify finds out which file f is. When it was made a copy may keep here.
func identify(f *os.File) (i identity, err error) {
	info, err := f.Stat()
	if err != nil {
		return i, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		i.inode = s.Ino
	}
	return i, nil
}
