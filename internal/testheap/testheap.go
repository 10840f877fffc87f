// Package testheap tells what is in use on the heap, for tests that hold what code says it takes to what it does take. Only
// tests use it.
package testheap

import "runtime"

// Bytes is how many are in use, once what nothing refers to is gone.
func Bytes() int64 {
	runtime.GC()
	runtime.GC() // what pools held, and what had finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
