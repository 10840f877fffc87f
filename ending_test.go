package ebb

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// TestWhoKeepsADatabaseIsTold: who works with a database that is to end is interrupted until it has left, and told of where that takes long.
func TestWhoKeepsADatabaseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		interrupted, told := 0, 0
		go func() {
			_ = clock.Wait(t.Context(), clock.Wall(), 2*slowEnd+time.Second)
			close(gone)
		}()
		awaitLeft(gone, func() { interrupted++ }, func() { told++ })
		if least := int(2 * slowEnd / interruptEvery); interrupted < least || told != 2 {
			t.Errorf("interrupted %d times, told %d times", interrupted, told)
		}
	})
}
