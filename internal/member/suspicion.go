package member

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
)

// A primary that ends without a word, as by kill -9, is missed as soon as its machine says that it is gone: its connections end, and nobody
// listens at its port any more. The members that see that elect another one at once. One that is only silent, or whose machine is gone too, is missed when an election's
// time has passed (raftlog). A member that is wrong about it disturbs nobody: those who still hear of the primary do not vote.

// suspicionTime is how long is asked what has become of a member, and suspicionPause the time between two questions.
const (
	suspicionTime  = time.Second
	suspicionPause = 5 * time.Millisecond
)

// suspect looks what has become of a member whose link has ended, where that is who leads.
func (m *member) suspect(id uint64) {
	if m.log.Role().Leader != id || m.ctx.Err() != nil || m.suspects.Swap(true) {
		return
	}
	m.ended.Go(func() {
		defer m.suspects.Store(false)
		ctx, cancel := clock.WithTimeout(m.ctx, m.group.o.Wall, suspicionTime)
		defer cancel()
		host := m.links.hostOf(id)
		if host == "" || !m.isGone(ctx, host) || ctx.Err() != nil {
			return
		}
		m.group.o.Log.For("REPL").Info("The primary is gone", "host", host)
		_ = m.log.Do(ctx, func(c *raftlog.Core) error { return c.Orphaned(id, m.rank(id)) })
	})
}

// isGone says whether a member that led is sure not to: nobody listens there, or who does says that it does not lead. While a process ends it may be that it listens and
// says nothing any more, so it is asked until it is certain, or ctx ends.
func (m *member) isGone(ctx context.Context, host string) bool {
	for {
		if peer.Refuses(ctx, host, m.group.o.Peers()) {
			return true
		}
		if reply, err := m.group.call(ctx, host, m.newLetter(letterPosition).Doc()); err == nil {
			return !reply.Lookup("leads").Truthy()
		}
		if clock.Wait(ctx, m.group.o.Wall, suspicionPause) != nil {
			return false
		}
	}
}

// rank is how many members stand for election before this one where who leads is gone: those of more priority, and of the same those of lower
// _id.
func (m *member) rank(gone uint64) (rank int) {
	v := m.view()
	if v == nil || v.Config == nil || v.Self < 0 {
		return 0
	}
	own := &v.Config.Members[v.Self]
	s := m.log.Status()
	for i := range v.Config.Members {
		other := &v.Config.Members[i]
		p, known := peerOf(s.Peers, other.ID)
		if i != v.Self && known && p.ID != gone && s.IsVoter(p.ID) && standsBefore(other, own) {
			rank++
		}
	}
	return rank
}

func standsBefore(a, b *replset.Member) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.Priority > 0 && a.ID < b.ID
}
