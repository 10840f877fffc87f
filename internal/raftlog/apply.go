package raftlog

import (
	"fmt"
	"sync"
)

// progress is up to where the store has applied the log.
type progress struct {
	mu      sync.Mutex // guards all below
	index   uint64
	number  uint64        // of the last Commit
	offset  uint64        // of the index over the number of that
	found   uint64        // the number of the last Commit that the store had at the start
	foundAt uint64        // where the log has that, 0 where nobody knows
	changed chan struct{} // closed when that moves; nil where nobody waits
}

// applyQueue is what the loop has found committed and the goroutine that applies has not taken yet. It is filled again when it is empty.
type applyQueue struct {
	mu      sync.Mutex // guards all below
	entries []Entry
	at      uint64 // the last that was put into it
	install uint64 // where the log begins behind a snapshot that is to be put in place before anything else; 0: none is
	told    uint64 // the last such
	role    Role
	more    bool          // more is committed than was put into it
	wake    chan struct{} // holds one
}

// fillQueue gives on what is to be applied; moved says that more is committed than before.
func (m *Member) fillQueue(moved bool) (err error) {
	q, c := &m.queue, m.core
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more = q.more || moved
	switch {
	case c.disk.install && q.told == c.disk.base.index, !c.disk.install && (len(q.entries) > 0 || !q.more):
		return nil
	case c.disk.install:
		q.install, q.told, q.at, q.entries, q.more = c.disk.base.index, c.disk.base.index, c.disk.base.index, nil, true
	default:
		if q.entries, err = c.Next(q.at); err != nil {
			return err
		}
		if n := len(q.entries); n > 0 {
			q.at = q.entries[n-1].Index
		}
		q.role, q.more = c.role, q.at < c.committed
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// take is what is to be applied next, and whether the loop has more of it.
func (q *applyQueue) take() (entries []Entry, install uint64, role Role, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	entries, install = q.entries, q.install
	q.entries, q.install = nil, 0
	return entries, install, q.role, q.more
}

// apply gives the machine what is committed.
func (m *Member) apply() {
	led := uint64(0)
	for {
		entries, install, role, more := m.queue.take()
		if more {
			m.awake()
		}
		var err error
		switch {
		case install > 0:
			err = m.install(install)
		case len(entries) > 0:
			led, err = m.applyAll(entries, role, led)
		default:
			select {
			case <-m.queue.wake:
			case <-m.quit.Done():
			}
		}
		switch {
		case m.quit.Err() != nil:
			return
		case err != nil:
			m.fail(fmt.Errorf("apply the log: %w", err))
			return
		}
	}
}

func (m *Member) install(at uint64) error {
	number, err := m.o.Machine.Install(m.quit)
	if err != nil {
		return err
	}
	m.moved(at, number)
	return m.Do(m.quit, func(c *Core) error { c.Installed(at, number); return nil })
}

// applyAll applies entries, and returns the last term in which the machine was told that it leads.
func (m *Member) applyAll(entries []Entry, role Role, led uint64) (uint64, error) {
	for _, e := range entries {
		if err := m.o.Machine.Apply(m.quit, e); err != nil {
			return led, err
		}
		m.moved(e.Index, e.number())
		if role.Leads && e.Term == role.Term && led < role.Term {
			led = role.Term
			m.o.Machine.Lead(role.Term)
		}
	}
	return led, nil
}

// moved takes note that the store has applied the log up to index.
func (m *Member) moved(index, number uint64) {
	m.applied.mu.Lock()
	defer m.applied.mu.Unlock()
	m.applied.index = index
	if number > m.applied.number { // which what is applied once more after a start is not
		m.applied.number, m.applied.offset = number, index-number
	}
	if m.applied.changed != nil {
		close(m.applied.changed)
		m.applied.changed = nil
	}
}

// Applied is up to where the store has applied the log; changed is closed when that moves.
func (m *Member) Applied() (index uint64, changed <-chan struct{}) {
	m.applied.mu.Lock()
	defer m.applied.mu.Unlock()
	if m.applied.changed == nil {
		m.applied.changed = make(chan struct{})
	}
	return m.applied.index, m.applied.changed
}

func (m *Member) appliedNow() uint64 {
	m.applied.mu.Lock()
	defer m.applied.mu.Unlock()
	return m.applied.index
}
