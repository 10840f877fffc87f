package ttl

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// lookEvery is how often the clock is looked at, and the time kept in the store.
const lookEvery = time.Minute

// watch looks at the clock, also when there is nothing to delete, until ctx ends.
func (m *Monitor) watch(ctx context.Context) {
	for {
		m.noteTime(ctx)
		if clock.Wait(ctx, m.clock, lookEvery) != nil {
			return
		}
	}
}

// noteTime keeps the time in the store, for the next start to know how far time had come. While it is not trusted, or
// nothing may be written, what is kept stays.
func (m *Monitor) noteTime(ctx context.Context) {
	seen, ok := m.time.latest()
	if !ok || m.gate.Locked() {
		return
	}
	if err := m.gate.Enter(ctx); err != nil {
		return
	}
	defer m.gate.Leave()
	if err := m.store.NoteTime(ctx, seen); err != nil && ctx.Err() == nil {
		m.log.Debug("TTL: the time could not be kept", "error", err.Error())
	}
}

// HidesUpTo is for storage.Options: up to which time what has expired stays hidden, though the clock was turned back a little.
func (m *Monitor) HidesUpTo() int64 { return m.time.hidesUpTo() }

// settles is how long it is until the clock is trusted; 0 when it is.
func (m *Monitor) settles() time.Duration {
	settles, _ := m.time.look()
	return settles
}

func formatMillis(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
