//go:build unix

package pebblekv

import (
	"os"
	"syscall"
)

// names is how many names a file on disk has; 0 if it is not on disk.
func names(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Nlink)
	}
	return 0
}
