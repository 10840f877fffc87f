package ebb

import (
	"math"
	"testing"
)

// Whatever the machine has, all that may be in use together fits it, and is worth having.
func TestMemoryIsSharedOut(t *testing.T) {
	for _, memory := range []int64{1 << 30, 2 << 30, 4 << 30, 24 << 30, 512 << 30} {
		for _, outside := range []bool{false, true} {
			cache := cacheFor(memory)
			heap, share := heapLimit(memory, cache, outside), memoryFor(memory, math.MaxInt64, cache, outside)
			blocks, rows := shareCache(cache)
			store := blocks + memTables*memTableFor(memory, cache)
			all := heap + memory/scriptShare
			if outside {
				all += store
				store = 0
			}
			if all > memory*9/10 || store+rows+share > heap*9/10 || share < memory/16 {
				t.Errorf("%d MB (outside %v): heap %d MB, of that %d for the store and %d to share; %d in all", memory>>20, outside, heap>>20, (store+rows)>>20, share>>20, all>>20)
			}
		}
	}
	if got := memoryFor(0, math.MaxInt64, cacheFor(0), false); got != defaultMemoryBytes {
		t.Errorf("%d on a machine that does not say", got)
	}
	if got := memoryFor(64<<30, 1<<30, cacheFor(2<<30), false); got > 300<<20 {
		t.Errorf("%d where the heap is to stay below a gigabyte", got)
	}
}
