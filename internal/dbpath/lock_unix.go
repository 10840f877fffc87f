//go:build unix

package dbpath

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock that the kernel gives back when the process ends, however it ends.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
