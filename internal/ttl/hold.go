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
	holdLastWrite = "lastWrite"
	HoldRelease   = "release" // also what a file may say
)

func newHold(r *parameter.Registry) *Hold {
	h := &Hold{}
	r.Add(&parameter.Parameter{Name: HoldName, When: parameter.Both, Get: h.get, Set: h.set})
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

func (h *Hold) set(v bson.Value) error {
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
	return m.hold(context.Background(), w)
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
		case holdLastWrite:
			return wish{given: true, lastWrite: true}, nil
		}
		for _, layout := range holdLayouts {
			if at, err := time.Parse(layout, v.Str()); err == nil {
				return wish{given: true, at: at.UnixMilli()}, nil
			}
		}
	}
	return wish{}, mongoerr.New(mongoerr.BadValue, "Invalid value for parameter %s: %s is neither a date nor \"%s\" nor \"%s\"", HoldName, v, holdLastWrite, HoldRelease)
}

// connect has the hold work on a monitor's store, and does what the command line asked for.
func (h *Hold) connect(m *Monitor) error {
	h.mu.Lock()
	h.mu.monitor = m
	w := h.mu.wish
	h.mu.Unlock()
	if w.given {
		return m.hold(context.Background(), w)
	}
	if at, held := m.store.HeldAt(); held {
		m.log.Warn("TTL: expiry is held since before the start: nothing is deleted until it is released", "holdAt", formatMillis(at), "release", "setParameter ttlHold: \"release\"")
	}
	return nil
}

// hold has expiry stand still, or go on. It returns when no sweep that began before is under way.
func (m *Monitor) hold(ctx context.Context, w wish) error {
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
		return 0, fmt.Errorf("%s %s: the data were written by an Ebb that did not note the time yet; give a date", HoldName, holdLastWrite)
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
