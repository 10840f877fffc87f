//go:build !unix

package pebblekv

import "os"

// allocated is what a file takes on disk; its size where that is not known.
func allocated(info os.FileInfo) int64 { return info.Size() }
