//go:build unix

package network

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	shared = syscall.LOCK_SH
	alone  = syscall.LOCK_EX
)

func takeTurn(how int) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "ebb-e2e-networks.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
