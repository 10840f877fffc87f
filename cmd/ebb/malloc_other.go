//go:build !cgo || !linux

package main

// limitArenas has nothing to do: all memory is Go's, or the C library's ways are not known.
func limitArenas() {}
