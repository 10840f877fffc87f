package member

import (
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// wants is the role that the member should have.
func (m *member) wants() Role {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.leads != 0 {
		return Role{Leader, int64(m.mu.leads)}
	}
	return Role{Kind: Follower}
}

// followRole has the server answer by a database of the role that it has.
func (m *member) followRole() {
	m.noteElections() // of which the log may have told before it could be heard
	for {
		want := m.wants()
		if role, there := m.Role(); !there || role != want {
			if err := m.change(want); err != nil {
				if m.ctx.Err() == nil {
					m.Fail(fmt.Errorf("change the role in the replica set: %w", err))
				}
				return
			}
			continue
		}
		if want.Kind == Follower {
			m.noteGroup()
		}
		select {
		case <-m.wake:
		case <-m.ctx.Done():
			return
		}
	}
}

// noteGroup has a database that follows look what has become of the set.
func (m *member) noteGroup() {
	d := m.TryEnter()
	if d == nil {
		return
	}
	defer d.Leave()
	if err := d.NoteGroup(m.ctx); err != nil && m.ctx.Err() == nil {
		m.group.o.Log.For("REPL").Warn("The replica set's configuration could not be read", "error", err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.mu.noted)
	m.mu.noted = make(chan struct{})
}

// nextNote is closed when the database that follows has looked once more what has become of the set.
func (m *member) nextNote() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.noted
}

// change has the database give way to one of another role.
func (m *member) change(want Role) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	began := m.sinceStart()
	if err := m.EndDatabase(errDeposed()); err != nil {
		return err
	}
	ended := m.sinceStart()
	if want.Kind == Leader {
		m.mu.Lock()
		if m.mu.leads != uint64(want.Term) {
			want = Role{Kind: Follower}
		} else {
			m.mu.term = m.mu.leads
			m.Engine().Lead(m.log.LogOf(m.mu.term))
		}
		m.mu.Unlock()
	}
	err := m.become(want, func() {})
	if err != nil && want.Kind == Leader {
		if m.ctx.Err() != nil {
			return err
		}
		m.group.o.Log.For("REPL").Warn("The member could not become primary", "term", want.Term, "error", err.Error())
		m.giveUp(uint64(want.Term))
		want = Role{Kind: Follower}
		err = m.become(want, func() {})
	}
	if err != nil {
		return err
	}
	m.tellChanged()
	m.group.o.Log.For("REPL").Info("The member's role has changed", "primary", want.Kind == Leader, "term", want.Term,
		"endedMillis", (ended - began).Milliseconds(), "openedMillis", (m.sinceStart() - ended).Milliseconds())
	return nil
}

// sinceStart is the monotonic time of what happens in the real world.
func (m *member) sinceStart() time.Duration { return clock.Monotonic(m.group.o.Wall) }

func (m *member) become(r Role, opened func()) error { return m.Become(r, m.clockFor(r), opened) }

// giveUp has a member that cannot lead in a term not do so.
func (m *member) giveUp(term uint64) {
	m.mu.Lock()
	if m.mu.leads == term {
		m.mu.leads = 0
	}
	m.mu.term = 0
	m.Engine().Follow(errDeposed())
	m.mu.Unlock()
	_ = m.log.Do(m.ctx, func(c *raftlog.Core) error {
		if r := c.Role(); r.Leads && r.Term == term {
			return c.Resign()
		}
		return nil
	})
}

func (m *member) tellChanged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.mu.changed)
	m.mu.changed = make(chan struct{})
}
