package ttl

import (
	"context"
	"time"
)

// rhythm is what Settle has to know of the loop.
type rhythm struct {
	started bool
	// asked counts the signals, heard is how many of them the last plan took into account.
	asked, heard int64
	asleep       bool
	until        time.Time
	slept        chan struct{} // closed when the loop falls asleep or ends, and then another
}

// Settle waits until the loop sleeps and has nothing to do before its clock moves on or something is written. A test that
// turns a fake clock then knows that everything that was due by now is done. Without a loop there is nothing to wait for.
func (m *Monitor) Settle(ctx context.Context) error {
	for {
		m.mu.Lock()
		settled := !m.mu.started || m.mu.asleep && m.mu.heard == m.mu.asked && m.clock.Now().Before(m.mu.until)
		slept := m.mu.slept
		m.mu.Unlock()
		if settled {
			return nil
		}
		select {
		case <-slept:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *Monitor) fallAsleep(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.asleep, m.mu.until = true, until
	m.tellSlept()
}

func (m *Monitor) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.started = false
	m.tellSlept()
}

func (m *Monitor) tellSlept() {
	close(m.mu.slept)
	m.mu.slept = make(chan struct{})
}
