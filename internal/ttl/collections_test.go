package ttl_test

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// collections prints how reclaim stands in so many of them.
func (w *world) collections(ctx context.Context, most int) error {
	all, left, err := w.monitor.Collections(ctx, most)
	for _, c := range all {
		next := "never"
		if c.Next != policy.Never {
			next = time.UnixMilli(c.Next).Sub(zero).String()
		}
		fmt.Fprintf(&w.out, "%s: lag %d ms, backlog %d, more %v, next %s, deleted %d, bytes %d, paused %v\n", c.NS, c.Lag, c.Backlog, c.More, next, c.Deleted, c.Bytes, c.Paused)
	}
	if left > 0 {
		fmt.Fprintf(&w.out, "%d are left out\n", left)
	}
	return err
}

// most is a number of collections; without one, more than any script has.
func most(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return n
	}
	return 1000
}
