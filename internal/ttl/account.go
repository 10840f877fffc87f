package ttl

import (
	"context"
	"time"
)

// account is what visits have done to one target since the server started.
type account struct {
	deleted     int64
	swept       bool
	singly      time.Time // until when documents are deleted one by one
	lastSweep   int64     // milliseconds since the epoch
	lastDeleted int64
	lastErr     string
}

// accountOf is the target's account, for one who holds the mutex.
func (m *Monitor) accountOf(t Target) *account {
	if m.mu.visited[t] == nil {
		m.mu.visited[t] = &account{}
	}
	return m.mu.visited[t]
}

func (p *pass) noteVisit(t Target, v Visit) {
	p.mu.Lock()
	a := p.accountOf(t)
	a.deleted += v.Deleted
	if v.Bytes > 0 {
		p.Monitor.mu.reclaimed[t.Collection] += v.Bytes
	}
	a.swept, a.lastSweep, a.lastDeleted, a.lastErr = true, p.at, v.Deleted, ""
	if v.Err != nil {
		a.lastErr = v.Err.Error()
	}
	p.mu.Unlock()
	if p.hooks.AfterVisit != nil {
		p.hooks.AfterVisit(v)
	}
}

// forgetGone drops the accounts of targets that are no more, so that they do not pile up.
func (m *Monitor) forgetGone(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	view, err := m.store.View(ctx)
	if err != nil {
		return // the next pass tries again
	}
	defer view.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.mu.reclaimed {
		if _, ok := view.CollectionByID(id); !ok {
			delete(m.mu.reclaimed, id)
		}
	}
	for t := range m.mu.visited {
		r, ok := view.CollectionByID(t.Collection)
		if ok {
			_, ok = t.rule(r)
		}
		if !ok {
			delete(m.mu.visited, t)
			delete(m.mu.retries, t)
		}
	}
}
