//go:build !unix

package ebb

import "math"

// fileLimit is how many file descriptors the process may have, which are not limited.
func fileLimit() int { return math.MaxInt32 }
