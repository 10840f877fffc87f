package ttl

import (
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
)

// Hold is why what has expired is kept on purpose; "" when it is not. This is the one place that knows the reasons. While there is one
// no sweep begins or goes on, and a command that would delete what it makes visible is refused (storage.Options.Held). Whoever ends
// one calls Wake.
func (m *Monitor) Hold() string {
	if !m.params.Enabled.Get() {
		return "ttlMonitorEnabled is false"
	}
	if m.store != nil {
		if at, held := m.store.HeldAt(); held {
			return "expiry is held at " + formatMillis(at) + " (" + HoldName + ")"
		}
	}
	if m.standby != nil {
		if why := m.standby(); why != "" {
			return why
		}
	}
	return m.time.why()
}

// Held is why nothing is deleted at the moment; "" when something may be: a Hold, or a gate that is closed to all who write.
func (m *Monitor) Held() string {
	if why := m.Hold(); why != "" {
		return why
	}
	switch {
	case m.gate.Locked():
		return "the server is locked (fsyncLock)"
	case m.gate.WritesBlocked():
		return "user writes are blocked (setUserWriteBlockMode)"
	}
	return ""
}

// HeldIn is Held for one collection.
func (m *Monitor) HeldIn(coll *catalog.Collection) string {
	if why := m.Held(); why != "" || !coll.Options.TTLPaused {
		return why
	}
	return storage.Paused
}

// PausedIn are the collections with a TTL that pick chooses, nil for all, in which deleting is paused (collMod ttlPaused).
func (m *Monitor) PausedIn(pick func(namespace.NS) bool) (paused []namespace.NS) {
	for _, coll := range m.store.Catalog().All() {
		if coll.Options.TTLPaused && hasTTL(coll) && (pick == nil || pick(coll.NS)) {
			paused = append(paused, coll.NS)
		}
	}
	return paused
}

// runs says whether passes are run: nothing is held but what users may not write.
func (m *Monitor) runs() bool { return m.Hold() == "" && !m.gate.Locked() }
