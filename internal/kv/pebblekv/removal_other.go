//go:build !linux

package pebblekv

import "os"

// names is not known.
func names(os.FileInfo) int { return -1 }

// isOurs is not known.
func isOurs(*os.File) bool { return false }
