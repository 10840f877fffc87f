package main

import (
	"os"
	"runtime/debug"

	"github.com/ebbdb/ebb/internal/host"
)

// The collector may let the heap grow to gcPercent above what is alive, as long as all of it stays within memoryShare of
// the memory that the machine or the container has: the rest is the kernel's, whose cache of files the store reads through.
const (
	gcPercent   = 200
	memoryShare = 0.8
)

// limitMemory sets what the environment (GOGC, GOMEMLIMIT) has left open.
func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := host.Look().MemoryLimit; os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(int64(memoryShare * float64(limit)))
	}
}
