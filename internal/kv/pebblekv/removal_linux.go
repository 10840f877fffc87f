package pebblekv

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// names is how many names a file on disk has; -1 if it is not on disk.
func names(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Nlink)
	}
	return -1
}

// isOurs says whether nobody but us has the file open: the kernel gives nobody else a lease for writing.
func isOurs(file *os.File) bool {
	_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err == nil
}
