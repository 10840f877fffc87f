package member

import (
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// keepGroup has the members of the log be those of the configuration, as long as this one leads, and looks how the others are, until ctx ends.
func (m *member) keepGroup() {
	for ok := true; ok; ok = clock.Wait(m.ctx, m.group.o.Wall, groupInterval) == nil {
		v := m.view()
		if v == nil || v.Config == nil {
			continue
		}
		m.lookAt(v)
		m.rest(v)
		if v.State != replset.Primary {
			continue
		}
		if err := m.adjust(v.Config); err != nil && m.ctx.Err() == nil {
			m.group.o.Log.For("REPL").Debug("The members of the log could not be changed", "error", err.Error())
		}
		switch why := m.unfit(); {
		case why != "":
			m.relieve(why)
		case v.Self >= 0 && v.Config.Members[v.Self].Priority == 0 && !m.isWaitedFor(v):
			m.group.o.Log.For("REPL").Info("It leads no more: no member that may lead is up for which it did")
			_ = m.log.Do(m.ctx, func(c *raftlog.Core) error { return c.Resign() })
		case v.Self >= 0:
			m.yieldTo(v)
		}
	}
}

// pingWeight is what the last answers count together for each that comes in how long a member takes to answer.
const pingWeight = 4

const groupInterval = 500 * time.Millisecond

// view is what the database of the moment says of the set; nil where there is none.
func (m *member) view() *replset.View {
	d := m.TryEnter()
	if d == nil {
		return nil
	}
	defer d.Leave()
	return d.View()
}

// lookAt asks all others how they are.
func (m *member) lookAt(v *replset.View) {
	m.looks.Lock()
	m.forget(v.Config)
	m.looks.Unlock()
	for i, other := range v.Config.Members {
		if i == v.Self {
			continue
		}
		m.looks.Lock()
		busy := m.looks.busy[other.Host]
		if !busy && len(m.looks.busy) < replset.MaxMembers {
			m.looks.busy[other.Host] = true
		}
		m.looks.Unlock()
		if busy {
			continue
		}
		m.ended.Go(func() {
			reply, took, err := m.group.timed(m.ctx, other.Host, m.newLetter(letterPosition).Doc())
			if mongoerr.Is(err, errNoMember.Code) {
				if refusal := m.invite(v.Config, other); refusal != nil {
					err = refusal
				}
			}
			m.looks.Lock()
			defer m.looks.Unlock()
			delete(m.looks.busy, other.Host)
			if refusal := m.looks.refusals[other.Host]; refusal != nil && mongoerr.Is(err, errNoMember.Code) && !isRefusal(err) {
				err = refusal
			}
			h := m.looks.health[other.Host]
			if h.Up && err != nil && m.ctx.Err() == nil || h.SeenAt == 0 && mongoerr.Is(err, mongoerr.IncompatibleServerVersion) {
				m.group.o.Log.For("REPL").Warn("A member does not say how it is", "host", other.Host, "error", err.Error())
			}
			if err == nil {
				err = m.checkIdentity(other, reply.Lookup("id"))
			}
			if err == nil && !h.Up {
				m.looks.upSince[other.Host] = clock.Monotonic(m.group.o.Wall)
			}
			why := h.Why
			if h.Up, h.Why = err == nil, ""; err != nil {
				h.Why = mongoerr.From(err).Message
			}
			if isRefusal(err) && h.Why != why {
				m.group.o.Log.For("REPL").Warn("The server at the address of a member takes no part in the replica set", "host", other.Host, "error", h.Why)
			}
			if err == nil {
				if h.SeenAt == 0 {
					h.Ping = took
				}
				h.Ping = (pingWeight*h.Ping + took) / (pingWeight + 1)
				h.SeenAt = clock.Millis(m.group.o.Clock)
				readHealth(&h, reply)
				if known := reply.Lookup("known"); known.Type == bson.TypeBool {
					m.noteKnown(h.Version, known.Truthy())
				}
				if delete(m.looks.unfit, other.Host); reply.Lookup("unfit").Truthy() {
					m.looks.unfit[other.Host] = true
				}
			}
			m.looks.health[other.Host] = h
		})
	}
}

// isRefusal says whether a server has answered why it is not the member that it should be. That it is none yet is no reason: it has not been asked to.
func isRefusal(err error) bool {
	said, answered := errors.AsType[*mongoerr.Error](err)
	return answered && said.Message != errNoMember.Message
}

// noteRefusal takes note of why the server at a member's address does not join; nil: it does.
func (m *member) noteRefusal(host string, err error) {
	m.looks.Lock()
	defer m.looks.Unlock()
	if delete(m.looks.refusals, host); isRefusal(err) {
		m.looks.refusals[host] = err
	}
}

// forget drops what is known of those who are not in the configuration. The caller holds looks.
func (m *member) forget(c *replset.Config) {
	for host := range m.looks.refusals {
		if c.Index(host) < 0 {
			delete(m.looks.refusals, host)
		}
	}
}

// readHealth reads what a member says of itself. One whose role changes just then has nothing to say of its data, and is as it was.
func readHealth(h *command.Health, reply bson.Doc) {
	if v := reply.Lookup("term"); v.Type == bson.TypeInt64 {
		h.Term = v.Int64()
	}
	if v := reply.Lookup("electedAt"); v.Type == bson.TypeInt64 {
		h.ElectedAt = v.Int64()
	}
	h.Stalled = 0
	if v := reply.Lookup("stalled"); v.Type == bson.TypeInt64 {
		h.Stalled = time.Duration(v.Int64()) * time.Millisecond
	}
	if v := reply.Lookup("logged"); v.Type == bson.TypeInt64 {
		h.Logged = oplog.Timestamp(v.Int64())
		h.State, h.Version = replset.Secondary, 0
		if v := reply.Lookup("version"); v.Type == bson.TypeInt64 {
			h.Version = v.Int64()
		}
		state := reply.Lookup("state") // which an older member does not tell
		switch {
		case h.Version == 0:
			h.State = replset.Startup2
		case state.Type == bson.TypeInt32 && replset.State(state.Int32()) != replset.Primary: // who leads is told by the log
			h.State = replset.State(state.Int32())
		}
	}
	if reply.Lookup("leads").Truthy() {
		h.State = replset.Primary
	} else if h.State == replset.Primary || h.State == replset.Startup {
		h.State = replset.Secondary
	}
}

// checkIdentity tells, once, that at a member's address a server answers that is another member. It may be a copy of that one, and hears nothing that is
// meant for the member that should be there. The caller holds looks.
func (m *member) checkIdentity(other replset.Member, id bson.Value) error {
	want, known := peerOf(m.log.Status().Peers, other.ID)
	if !known || id.Type != bson.TypeInt64 || uint64(id.Int64()) == want.ID {
		delete(m.looks.others, other.Host)
		return nil
	}
	is := uint64(id.Int64())
	if m.looks.others[other.Host] != is {
		m.looks.others[other.Host] = is
		m.group.o.Log.For("REPL").Error("At the address of a member another one answers: it may have been started on a copy of that one's data directory, and must not be", "host", other.Host, "answers", m.links.hostOf(is))
	}
	return errOther
}

var errOther = errors.New("another member answers")

// noteKnown takes note that another member, which has the configuration of a version, knows this one or does not. One that was away when it was let go
// hears of that in no other way: nobody sends it the log any more. One that joins, of which some have not heard yet, hears from others that they have.
func (m *member) noteKnown(version int64, known bool) {
	for {
		was := m.dismissed.Load()
		next := version
		if known {
			next = 0
		}
		if version < was || next == was {
			return
		}
		if m.dismissed.CompareAndSwap(was, next) {
			m.awake()
			return
		}
	}
}

// Place implements command.Group. Where the log knows the member at the address that the configuration has for it, that is who it is, and no name is looked
// up: those who serve names may be away just when the role changes. Where the two addresses differ the configuration counts, which may have another server
// take the member's place; but who leads has been elected as that member. An address that is not in the configuration is no reason to be missing from a set
// of one, whose member this was when it had another.
func (g *Group) Place(c *replset.Config, byAddress func() int) int {
	m := g.member.Load()
	if m == nil {
		return byAddress()
	}
	if m.dismissed.Load() > c.Version {
		return -1
	}
	self, known := m.peers().ByID(m.disk.ID())
	if !known {
		return byAddress()
	}
	at := slices.IndexFunc(c.Members, func(other replset.Member) bool { return other.ID == self.Member })
	switch {
	case at >= 0 && (c.Members[at].Host == self.Host || m.leader.Load() != nil):
		return at
	case at < 0 && len(c.Members) == 1:
		return -1
	}
	return byAddress()
}

// peers are the members that the log knows of.
func (m *member) peers() raftlog.Peers {
	if m.started.Load() {
		return m.log.Status().Peers
	}
	return m.disk.Peers()
}

// adjust does the next step of what makes the members of the log those of the configuration. One step is done at a time, so that a majority of
// those before is one of those after.
func (m *member) adjust(c *replset.Config) error {
	s := m.log.Status()
	if !s.Leads || s.Joint {
		return nil
	}
	for id := range s.Progress { // who goes does not wait for who comes, and may never
		if p, ok := s.Peers.ByID(id); !ok || !isIn(c, p.Member) {
			return m.proposeChange(pb.ConfChangeRemoveNode, id)
		}
	}
	for _, p := range s.Peers {
		if !isIn(c, p.Member) {
			return m.proposePeers(without(s.Peers, p.ID))
		}
	}
	var missing error
	for _, other := range c.Members {
		p, known := peerOf(s.Peers, other.ID)
		switch {
		case !known || p.Host != other.Host:
			err := m.bring(s, c, other)
			if m.noteRefusal(other.Host, err); err == nil {
				return nil
			}
			missing = errors.Join(missing, err) // it may never come; the others do not wait for it
			continue
		}
		progress, there := s.Progress[p.ID]
		switch {
		case !there:
			return m.proposeChange(pb.ConfChangeAddLearnerNode, p.ID)
		case other.Votes > 0 && progress.Learner && !progress.Behind && progress.Match+maxBehind >= s.Last:
			return m.proposeChange(pb.ConfChangeAddNode, p.ID)
		case other.Votes == 0 && !progress.Learner:
			return m.proposeChange(pb.ConfChangeAddLearnerNode, p.ID)
		}
	}
	return missing
}

// maxBehind is how many entries a member may be behind to get a vote.
const maxBehind = 1000

// bring has the server at the address of a member be that member in the log. Where it was at another address only that changes; where another server was
// the member, that one goes first.
func (m *member) bring(s *raftlog.Status, c *replset.Config, other replset.Member) error {
	id, err := m.group.ask(m.ctx, other.Host, m.joinLetter(c).Doc())
	if err != nil {
		return err
	}
	if p, taken := s.Peers.ByID(id); taken && p.Member != other.ID {
		return fmt.Errorf("%s is in the log already, as another member", other.Host)
	}
	if was, known := peerOf(s.Peers, other.ID); known && was.ID != id {
		return m.proposePeers(without(s.Peers, was.ID))
	}
	return m.proposePeers(with(s.Peers, raftlog.Peer{ID: id, Member: other.ID, Host: other.Host}))
}

func peerOf(p raftlog.Peers, member int64) (raftlog.Peer, bool) {
	for _, peer := range p {
		if peer.Member == member {
			return peer, true
		}
	}
	return raftlog.Peer{}, false
}

func with(p raftlog.Peers, more raftlog.Peer) raftlog.Peers { return append(without(p, more.ID), more) }

func without(p raftlog.Peers, id uint64) (rest raftlog.Peers) {
	for _, peer := range p {
		if peer.ID != id {
			rest = append(rest, peer)
		}
	}
	return rest
}

func isIn(c *replset.Config, member int64) bool {
	for _, m := range c.Members {
		if m.ID == member {
			return true
		}
	}
	return false
}

func (m *member) proposePeers(p raftlog.Peers) error {
	return m.log.Do(m.ctx, func(c *raftlog.Core) error { return c.ProposePeers(p) })
}

func (m *member) proposeChange(kind pb.ConfChangeType, id uint64) error {
	return m.log.Do(m.ctx, func(c *raftlog.Core) error {
		return c.ProposeChange([]*pb.ConfChangeSingle{{Type: kind.Enum(), NodeId: proto.Uint64(id)}})
	})
}
