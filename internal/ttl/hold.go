package ttl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/parameter"
	"github.com/ebbdb/ebb/internal/storage"
)

// Hold is ttlHold. While expiry is held its clock stands still: what was alive then can be read, whatever has expired since,
// and nothing is deleted. The store keeps it, so that a restart does not let go what an operator holds.
//
// A value is a date, "lastWrite" for the latest time that the data knows of, or "release".
type Hold struct {
	mu struct {
		sync.Mutex
		wish    wish     // of the command line, until there is a store
		monitor *Monitor // nil before it is connected
	}
}

// wish is a value of ttlHold.
type wish struct {
	given     bool
	release   bool
	lastWrite bool
	at        int64
}

// HoldName is the name of Parameters.Hold.
const HoldName = "ttlHold"

// Words of ttlHold.
const (
	HoldLastWrite = "lastWrite"
	HoldRelease   = "release"
)

func newHold(r *parameter.Registry) *Hold {
	h := &Hold{}
	r.Add(&parameter.Parameter{Name: HoldName, When: parameter.Both, Get: h.get, SetWithin: h.set})
	return h
}

// get is where expiry is held, or "release" when it goes on.
func (h *Hold) get() bson.Value {
	h.mu.Lock()
	m := h.mu.monitor
	h.mu.Unlock()
	if m != nil {
		if at, held := m.store.HeldAt(); held {
			return bson.Date(at)
		}
	}
	return bson.String(HoldRelease)
}

func (h *Hold) set(ctx context.Context, v bson.Value) error {
	w, err := parseHold(v)
	if err != nil {
		return err
	}
	h.mu.Lock()
	m := h.mu.monitor
	if m == nil {
		h.mu.wish = w
	}
	h.mu.Unlock()
	if m == nil {
		return nil
	}
	return m.hold(ctx, w)
}

// holdLayouts are the forms of a date in a text.
var holdLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"}

func parseHold(v bson.Value) (wish, error) {
	switch v.Type {
	case bson.TypeDate:
		return wish{given: true, at: v.Millis()}, nil
	case bson.TypeString:
		switch v.Str() {
		case HoldRelease:
			return wish{given: true, release: true}, nil
		case HoldLastWrite:
			return wish{given: true, lastWrite: true}, nil
		}
		for _, layout := range holdLayouts {
			if at, err := time.Parse(layout, v.Str()); err == nil {
				return wish{given: true, at: at.UnixMilli()}, nil
			}
		}
	}
	return wish{}, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is neither a date nor \"%s\" nor \"%s\"", HoldName, v, HoldLastWrite, HoldRelease)
}

// connect has the hold work on a monitor's store.
func (h *Hold) connect(m *Monitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.monitor = m
}

// Begin does what the start asked for, once: a member of a replica set does so when it leads.
func (h *Hold) Begin() error {
	h.mu.Lock()
	m, w := h.mu.monitor, h.mu.wish
	h.mu.Unlock()
	if w.given {
		err := m.hold(context.Background(), w)
		if err == nil {
			h.Forget()
		}
		return err
	}
	at, held := m.store.HeldAt()
	if stale := m.staleSecs(); !held && stale > 0 {
		m.log.Warn("TTL: nothing was written for longer than "+holdAfterName+" allows, so expiry is held where the last write was", "secs", stale, holdAfterName, m.params.HoldAfterSecs.Get())
		return m.hold(context.Background(), wish{given: true, lastWrite: true})
	}
	if held {
		m.log.Warn("TTL: expiry is held since before the start: nothing is deleted until it is released", "holdAt", formatMillis(at), "release", "setParameter ttlHold: \"release\"")
	}
	return nil
}

// staleSecs is for how long nothing was written, where that is longer than it may be; 0 where it is not.
func (m *Monitor) staleSecs() int64 {
	seen, known := m.store.TimeSeen()
	limit := m.params.HoldAfterSecs.Get()
	if secs := (clock.Millis(m.clock) - seen) / 1000; known && limit > 0 && secs > limit {
		return secs
	}
	return 0
}

// Pending says whether the start asked for something that is not done yet.
func (h *Hold) Pending() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.wish.given
}

// Forget has what the start asked for not be done any more, if it was not yet; it says whether there was anything.
func (h *Hold) Forget() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.mu.wish.given
	h.mu.wish = wish{}
	return was
}

// hold has expiry stand still, or go on. It returns when no sweep that began before is under way, or when ctx's patience is over: then it is done all the same,
// once it is stored.
func (m *Monitor) hold(ctx context.Context, w wish) error {
	_, err := storage.Apart(ctx, m.store, func(ctx context.Context, _ *struct{}) error { return m.holdApart(ctx, w) })
	return err
}

func (m *Monitor) holdApart(ctx context.Context, w wish) error {
	if w.release {
		return m.release(ctx)
	}
	at, held := m.store.HeldAt()
	switch {
	case w.lastWrite && held: // where it is, or each restart would move it
	case w.lastWrite:
		var err error
		if at, err = m.lastWrite(); err != nil {
			return err
		}
	default:
		at = w.at
	}
	if err := m.store.Hold(ctx, at); err != nil {
		return err
	}
	m.log.Warn("TTL: expiry is held: what had not expired then is visible, and nothing is deleted until it is released", "holdAt", formatMillis(at))
	return holding(ctx, m.hand, func() error { return nil })
}

// lastWrite is the latest time that the data knows of. Where there are no data yet, that is the present.
func (m *Monitor) lastWrite() (int64, error) {
	at, known := m.store.TimeSeen()
	switch {
	case known:
		return at, nil
	case m.hasData():
		return 0, fmt.Errorf("%s %s: the data were written by an Ebb that did not note the time yet; give a date", HoldName, HoldLastWrite)
	}
	return clock.Millis(m.clock), nil
}

// hasData says whether there is a collection of a user's.
func (m *Monitor) hasData() bool {
	for _, c := range m.store.Catalog().All() {
		if !ownDatabase(c.NS.DB) {
			return true
		}
	}
	return false
}

func (m *Monitor) release(ctx context.Context) error {
	at, held := m.store.HeldAt()
	if !held {
		return nil
	}
	if err := m.store.Release(ctx); err != nil {
		return err
	}
	m.log.Warn("TTL: expiry is released, and goes on", "heldAt", formatMillis(at))
	m.Wake()
	return nil
}
