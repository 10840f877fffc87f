package ebb

import (
	"math"

	"github.com/ebbdb/ebb/internal/host"
)

// How the memory of the machine, or of the container, is shared out. What is left is the kernel's, whose cache of files the
// store reads through.
const (
	// heapShare is which part of it the process may have, and scriptShare which part of it its workers of scripts.
	heapShare   = 0.8
	scriptShare = 8
	// ownBytes is what the process takes for itself, with its stacks and connections.
	ownBytes = 96 << 20
	// leftShare is which part of what is left then may be shared out: the collector needs room, and not every byte is counted.
	leftShare      = 0.55
	minMemoryBytes = 32 << 20
	// defaultMemoryBytes is for a machine that does not say what it has.
	defaultMemoryBytes = 1 << 30

	// What is written is kept in memtables of a size that a machine of memTableShare times as much can afford, and that is small beside the
	// cache: a cache of C bytes is to mean a process of little more than that.
	memTableShare      = 64
	memTableCacheShare = 8
	minMemTableBytes   = 16 << 20
	maxMemTableBytes   = 48 << 20
	memTables          = 4 // that may be waiting to be written to disk
)

// HeapLimit is what a program should set as Go's memory limit for a server with such a cache, 0 for the default one: what
// the machine or the container has, less what the store keeps outside of Go's heap and what scripts may take. It is 0 where
// the machine does not say.
func HeapLimit(cacheBytes int64) int64 {
	memory := host.Look().MemoryLimit
	if cacheBytes == 0 {
		cacheBytes = cacheFor(memory)
	}
	return heapLimit(memory, cacheBytes, storeOutside)
}

func heapLimit(memory, cache int64, outside bool) int64 {
	if memory == 0 {
		return 0
	}
	limit := int64(heapShare*float64(memory)) - memory/scriptShare
	if outside {
		blocks, _ := shareCache(cache)
		limit -= blocks + memTables*memTableFor(memory, cache)
	}
	return max(limit, minMemoryBytes)
}

// memoryFor is what may be shared out on a machine with so many bytes of memory, 0 where it does not say; set is Go's
// memory limit, and outside says that the store keeps what it can outside of Go's heap.
func memoryFor(memory, set, cache int64, outside bool) int64 {
	heap := heapLimit(memory, cache, outside)
	if heap == 0 || set < heap {
		heap = set
	}
	if heap == math.MaxInt64 {
		return defaultMemoryBytes
	}
	blocks, rows := shareCache(cache)
	left := heap - rows - ownBytes
	if !outside {
		left -= blocks + memTables*memTableFor(memory, cache)
	}
	return max(int64(leftShare*float64(left)), minMemoryBytes)
}

// memTableFor is the size of a memtable on a machine with so many bytes of memory, beside such a cache.
func memTableFor(memory, cache int64) int64 {
	size := min(cache/memTableCacheShare, maxMemTableBytes)
	if memory > 0 {
		size = min(size, memory/memTableShare)
	}
	return max(size, minMemTableBytes)
}
