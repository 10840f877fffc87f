package tikvkv

import (
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// TestGather: whom the next group waits for, and for how long.
func TestGather(t *testing.T) {
	const took = 4 * time.Millisecond
	for name, test := range map[string]struct {
		wrote, queued int // in the last group, and who came while it was written
		come          int // while the next one waits
		want          int // at least so many are in the next one
		passes        time.Duration
	}{
		"all of the last group come again":     {wrote: 3, queued: 1, come: 3, want: 4},
		"two halves become one":                {wrote: 2, queued: 2, come: 2, want: 4},
		"some do not come":                     {wrote: 5, queued: 1, come: 2, want: 1, passes: took},
		"all came while the group was written": {wrote: 0, queued: 9, want: 9},
		"who is alone waits for nobody":        {wrote: 0, queued: 1, want: 1},
		"nobody is there":                      {wrote: 5},
	} {
		t.Run(name, func(t *testing.T) {
			still := clock.NewFake(time.Unix(0, 0))
			c := newCommitter(&Engine{reads: reads{options: Options{Clock: still}.withDefaults()}}, 0, 0)
			add := func(n int) {
				for range n {
					if err := c.enqueue(&pending{Commit: &kv.Commit{Writes: &kv.WriteList{}}, done: make(chan struct{})}); err != nil {
						t.Error(err)
					}
				}
			}
			add(test.queued)
			c.expect(test.wrote, took)
			gathered := make(chan int, 1)
			go func() {
				c.gather()
				gathered <- len(c.take())
			}()
			add(test.come)
			for test.passes > 0 && len(gathered) == 0 {
				still.Advance(test.passes)
			}
			if got := <-gathered; got < test.want {
				t.Errorf("%d are in the next group, want %d", got, test.want)
			}
		})
	}
}
