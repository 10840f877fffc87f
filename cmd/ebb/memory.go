package main

import (
	"os"
	"runtime/debug"

	"github.com/ebbdb/ebb"
)

// gcPercent is how far the collector may let the heap grow above what is alive, as long as all of it stays within the limit.
const gcPercent = 200

// limitMemory sets what the environment (GOGC, GOMEMLIMIT) has left open, for a server with such a cache.
func limitMemory(cacheBytes int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit := ebb.HeapLimit(cacheBytes); os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}
