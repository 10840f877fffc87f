// Package diskwatch tells for how long a disk has brought nothing to its end: a disk that hangs fails nothing, and who waits for it says nothing. It
// knows nothing of what the files hold, and does nothing about it but say so.
package diskwatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Patience is how long a disk may do nothing until that is said. A disk that has too much to do lets a sync go now and then.
const Patience = 5 * time.Second

// lookEvery is how often is looked.
const lookEvery = time.Second

// Watch watches what is written to a disk, by all who have it from Over. A nil Watch watches nothing.
//
// A disk hangs as long as something is to be written or synced and no sync comes back: writes alone say nothing, since the machine's memory takes them
// for a while.
type Watch struct {
	clock clock.Clock
	log   *slog.Logger
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu struct {
		sync.Mutex
		calls  map[uint64]call // that have not come back
		last   uint64          // the key of the youngest
		synced time.Duration   // when a sync has come back last, by the clock's monotonic time
		stalls int64
		told   bool          // of the stall of the moment
		since  time.Duration // when it began
	}
}

// call is something that the disk was asked for.
type call struct {
	began      time.Duration
	what, file string
}

// New begins to watch. Syncs are about real disks, so k is the wall's clock but in tests.
func New(k clock.Clock, log *slog.Logger) *Watch {
	w := &Watch{clock: k, log: log}
	w.mu.calls = map[uint64]call{}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.ended.Go(func() {
		for clock.Wait(ctx, k, lookEvery) == nil {
			w.look()
		}
	})
	return w
}

// Close ends the looking. What was got from Over goes on.
func (w *Watch) Close() {
	if w != nil {
		w.stop()
		w.ended.Wait()
	}
}

// Stalled is for how long the disk has brought nothing to its end; 0 where nothing is to be.
func (w *Watch) Stalled() time.Duration {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, since, any := w.oldest()
	if !any {
		return 0
	}
	return clock.Monotonic(w.clock) - since
}

// Stalls counts how often that has been longer than Patience.
func (w *Watch) Stalls() int64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.stalls
}

// oldest is the call that waits for the longest time, and since when nothing has come to its end. The caller holds mu.
func (w *Watch) oldest() (c call, since time.Duration, any bool) {
	for _, other := range w.mu.calls {
		if !any || other.began < c.began {
			c, any = other, true
		}
	}
	return c, max(c.began, w.mu.synced), any
}

// look says when the disk begins to hang, and when that is over.
func (w *Watch) look() {
	w.mu.Lock()
	c, since, any := w.oldest()
	now := clock.Monotonic(w.clock)
	hangs := any && now-since >= Patience
	begins, ends := hangs && !w.mu.told, !hangs && w.mu.told
	if begins {
		w.mu.since = since
		w.mu.stalls++
	}
	hung := now - w.mu.since
	w.mu.told = hangs
	w.mu.Unlock()
	switch {
	case begins:
		w.log.Error("The disk hangs: nothing that was to be written has come to its end", "millis", hung.Milliseconds(), "waitsFor", c.what, "file", c.file)
	case ends:
		w.log.Warn("The disk does not hang any more", "millis", hung.Milliseconds())
	}
}

func (w *Watch) begin(what, file string) (key uint64) {
	now := clock.Monotonic(w.clock)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.last++
	w.mu.calls[w.mu.last] = call{now, what, file}
	return w.mu.last
}

func (w *Watch) end(key uint64, synced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.calls, key)
	if synced {
		w.mu.synced = clock.Monotonic(w.clock)
	}
}

// do watches something that the disk is asked for.
func (w *Watch) do(what, file string, synced bool, f func() error) error {
	defer w.end(w.begin(what, file), synced)
	return f()
}
