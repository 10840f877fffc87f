//go:build unix

package pebblekv

import (
	"os"
	"syscall"
)

// allocated is what a file takes on disk; its size where that is not known.
func allocated(info os.FileInfo) int64 {
	const block = 512 // of stat, whatever the disk's are
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Blocks) * block
	}
	return info.Size()
}
