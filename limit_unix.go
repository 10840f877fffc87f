//go:build unix

package ebb

import "syscall"

// connectionLimit is mongod's: four fifths of the file descriptors that the process may have, at most a million.
func connectionLimit() int {
	const most = 1_000_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return most
	}
	return int(min(uint64(limit.Cur)/5*4, most))
}
