//go:build cgo && linux

package main

// #include <malloc.h>
// static void limitArenas(void) {
// #ifdef __GLIBC__
// 	mallopt(M_ARENA_MAX, 1);
// 	mallopt(M_MMAP_THRESHOLD, 256 << 10);
// #endif
// }
import "C"

// limitArenas keeps the C library's heap, where Pebble has its block cache and memtables, near what is in use. As it comes the C
// library makes eight heaps for each processor and keeps memtables that were freed: of a cache of 400 MB it held 700 MB. Blocks come
// from one heap now, and what is large comes from the system and goes back at once.
func limitArenas() { C.limitArenas() }
