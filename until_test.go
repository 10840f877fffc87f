package ebb

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// until returns when f is happy.
func until(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for range 1000 {
		if err = f(); err == nil {
			return
		}
		_ = clock.Wait(t.Context(), clock.Wall(), 20*time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}
