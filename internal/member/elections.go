package member

import (
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// Elections implements command.Group.
func (g *Group) Elections() command.Elections {
	m := g.running()
	if m == nil {
		return command.Elections{}
	}
	m.elections.Lock()
	defer m.elections.Unlock()
	return m.elections.noted
}

// noteElections takes note of when an election was that the log tells of, and of how the member was then.
func (m *member) noteElections() {
	if !m.started.Load() {
		return
	}
	s := m.log.Status()
	m.elections.Lock()
	defer m.elections.Unlock()
	e := &m.elections.noted
	stood, voted := s.Stood.Term != uint64(e.Stood.Term), s.Voted.Term != uint64(e.Voted.Term)
	if !stood && !voted {
		return
	}
	now, applied, priority := clock.Millis(m.group.o.Clock), command.LastApplied{Term: int64(m.appliedTerm.Load())}, 0.0
	if d := m.TryEnter(); d != nil {
		defer d.Leave()
		applied.At = d.LastLogged()
		if v := d.View(); v.Config != nil && v.Self >= 0 {
			priority = v.Config.Members[v.Self].Priority
		}
	}
	if stood {
		e.Stood = command.Stood{Term: int64(s.Stood.Term), At: now, Asked: s.Stood.Asked, Before: memberOf(s.Peers, s.Stood.Before), Applied: applied}
	}
	if voted {
		e.Voted = command.Vote{Term: int64(s.Voted.Term), At: now, For: memberOf(s.Peers, s.Voted.For), Priority: priority, Applied: applied}
	}
}

// memberOf is the _id of a member of the log, command.Nobody where the log knows none.
func memberOf(peers raftlog.Peers, id uint64) int64 {
	if p, known := peers.ByID(id); known {
		return p.Member
	}
	return command.Nobody
}
