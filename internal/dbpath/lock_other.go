//go:build !unix

package dbpath

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) {
	return false, errors.New("data directories cannot be locked on this platform; use --storageEngine inMemory")
}
