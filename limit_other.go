//go:build !unix

package ebb

// connectionLimit is mongod's default where file descriptors are not limited.
func connectionLimit() int { return 1_000_000 }
