//go:build !linux

package pebblekv

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// zeroRange is for Linux.
func zeroRange(vfs.File, int64) (int64, error) { return 0, errors.ErrUnsupported }
