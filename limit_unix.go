//go:build unix

package ebb

import (
	"math"
	"syscall"
)

// fileLimit is how many file descriptors the process may have.
func fileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
