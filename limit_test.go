package ebb

import (
	"math"
	"testing"
)

// TestFileLimits: connections get what mongod gives them, and leave the store the files that it needs.
func TestFileLimits(t *testing.T) {
	for files, want := range map[int]struct{ connections, tables int }{
		10:            {1, 74},
		200:           {72, 74},
		1024:          {816, 102},
		64_000:        {51_200, 4096},
		math.MaxInt32: {1_000_000, 4096},
	} {
		c, n := connectionLimit(files), tableLimit(files)
		if c != want.connections || n != want.tables {
			t.Errorf("of %d files: %d connections and %d tables, want %d and %d", files, c, n, want.connections, want.tables)
		}
		if files > ownFiles && c+n > files {
			t.Errorf("of %d files %d connections and %d tables are too many", files, c, n)
		}
	}
}
