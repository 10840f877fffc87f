//go:build cgo && !race

package ebb

// storeOutside says that the store's blocks and tables in memory are not Go's but C's.
const storeOutside = true
