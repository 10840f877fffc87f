package main

import (
	"os"
	"runtime/debug"

	"github.com/ebbdb/ebb"
)

// limitMemory sets Go's memory limit, unless the environment does (GOMEMLIMIT), for a server with such a cache.
func limitMemory(cacheBytes int64) {
	if limit := ebb.HeapLimit(cacheBytes); os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}
