package pebblekv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// zeroRange makes a file zeros that keep its blocks, unless it has other names or takes more than most. It is as large then as what it
// takes, which it returns.
func zeroRange(file vfs.File, most int64) (size int64, err error) {
	fd := file.Fd()
	if fd == vfs.InvalidFd {
		return 0, errors.ErrUnsupported
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(fd), &s); err != nil {
		return 0, err
	}
	const block = 512 // of stat, whatever the disk's are
	size = max(s.Size, s.Blocks*block)
	if s.Nlink != 1 || size == 0 || size > most {
		return 0, errUnfit
	}
	for {
		if err = unix.Fallocate(int(fd), unix.FALLOC_FL_ZERO_RANGE, 0, size); !errors.Is(err, unix.EINTR) {
			return size, err
		}
	}
}
