package member

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
)

var errNobodyElse = errors.New("no electable member has caught up")

// transferTime is how long a member that has everything may take to become primary.
const transferTime = 2 * time.Second

// handOver has another member that may lead take over within a time. What clients write meanwhile waits.
func (m *member) handOver(ctx context.Context, within time.Duration, to func(raftlog.Peer) bool) error {
	ctx, cancel := clock.WithTimeout(ctx, m.group.o.Wall, within)
	defer cancel()
	engine := m.Engine()
	defer engine.GoOn()
	if err := engine.Pause(ctx); err != nil {
		return err
	}
	term := m.log.Role().Term
	asked := uint64(0)
	for {
		s := m.log.Status()
		if s.Term != term || !s.Leads {
			return nil
		}
		if asked == 0 {
			asked = m.successor(s, to)
			if asked != 0 {
				if err := m.log.Do(ctx, func(c *raftlog.Core) error { c.Transfer(asked); return nil }); err != nil {
					return err
				}
			}
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return errNobodyElse
		}
	}
}

// successor is the member that should lead next: one that may, and has the whole log; 0 where there is none.
func (m *member) successor(s *raftlog.Status, to func(raftlog.Peer) bool) uint64 {
	v := m.view()
	if v == nil || v.Config == nil {
		return 0
	}
	best, priority := uint64(0), 0.0
	for _, other := range v.Config.Members {
		p, ok := peerOf(s.Peers, other.ID)
		if !ok || p.ID == m.disk.ID() || other.Priority <= priority || !to(p) || !s.IsVoter(p.ID) {
			continue
		}
		if progress := s.Progress[p.ID]; progress.Active && progress.Match >= s.Last {
			best, priority = p.ID, other.Priority
		}
	}
	return best
}

// freeze keeps the member from being elected for some time.
func (m *member) freeze(d time.Duration) {
	m.mu.Lock()
	m.mu.frozen = clock.Monotonic(m.group.o.Wall) + d
	m.mu.Unlock()
}

// rest has the member stand for election or not, by its priority and by what it was asked for.
func (m *member) rest(v *replset.View) {
	m.mu.Lock()
	if v != nil {
		m.mu.passive = v.Self < 0 || v.Config.Members[v.Self].Priority == 0
	}
	idle := m.mu.passive || m.mu.frozen > clock.Monotonic(m.group.o.Wall)
	m.mu.Unlock()
	_ = m.log.Do(m.ctx, func(c *raftlog.Core) error { c.SetIdle(idle); return nil })
}

// takeoverEvery is how often a primary of less priority than another tries to hand over.
const takeoverEvery = 10 * time.Second

// yieldTo hands over to a member of more priority that has caught up.
func (m *member) yieldTo(v *replset.View) {
	own := v.Config.Members[v.Self].Priority
	s := m.log.Status()
	higher := func(p raftlog.Peer) bool {
		for _, other := range v.Config.Members {
			if other.ID == p.Member {
				return other.Priority > own
			}
		}
		return false
	}
	now := clock.Monotonic(m.group.o.Wall)
	m.mu.Lock()
	early := now < m.mu.yielded+takeoverEvery
	m.mu.Unlock()
	if early || m.successor(s, higher) == 0 && !m.isNear(s, higher) {
		return
	}
	m.mu.Lock()
	m.mu.yielded = now
	m.mu.Unlock()
	_ = m.handOver(m.ctx, transferTime, higher)
}

// isNear says whether a member has all but the last few entries.
func (m *member) isNear(s *raftlog.Status, of func(raftlog.Peer) bool) bool {
	for _, p := range s.Peers {
		if progress := s.Progress[p.ID]; of(p) && progress.Active && !progress.Learner && progress.Match+maxBehind >= s.Last {
			return true
		}
	}
	return false
}
