package ebb

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// group is the server's replica set as its commands see it (command.Group).
type group struct{ server *Server }

func (g group) member() *member {
	m := g.server.member.Load()
	if m == nil || m.log == nil {
		return nil
	}
	return m
}

// Leader implements command.Group.
func (g group) Leader() (host string, term int64, ok bool) {
	m := g.member()
	if m == nil {
		return "", 0, g.server.member.Load() != nil
	}
	s := m.log.Status()
	return m.links.hostOf(s.Leader), int64(s.Term), true
}

// callTime is how long a member may take to answer.
const callTime = 5 * time.Second

// call asks another server something, once.
func (s *Server) call(ctx context.Context, host string, letter bson.Doc) (bson.Doc, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := peer.Dial(ctx, host, s.peerOptions())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Call(ctx, letter)
}

func joinLetter(kind string, set [12]byte, name string, s *Server) bson.Doc {
	return bson.Build().String(letterName, kind).String("$db", "admin").ObjectID("set", set).Int64("from", 0).String("host", s.foundation.set.Host).
		String("name", name).Doc()
}

// Check implements command.Group.
func (g group) Check(ctx context.Context, name, host string) error {
	_, err := g.server.call(ctx, host, joinLetter(letterCheck, [12]byte{}, name, g.server))
	return err
}

// ask has the server at a host be of a set, and returns its id.
func (s *Server) ask(ctx context.Context, set [12]byte, host string) (uint64, error) {
	reply, err := s.call(ctx, host, joinLetter(letterJoin, set, s.opts.ReplicaSet.Name, s))
	if err != nil {
		return 0, fmt.Errorf("have %s join: %w", host, err)
	}
	id := reply.Lookup("id")
	if id.Type != bson.TypeInt64 || id.Int64() == 0 {
		return 0, fmt.Errorf("have %s join: its answer is broken", host)
	}
	return uint64(id.Int64()), nil
}

// Begin implements command.Group.
func (g group) Begin(ctx context.Context, c *replset.Config, self int) error {
	s := g.server
	s.joining.Lock()
	defer s.joining.Unlock()
	if s.member.Load() != nil {
		return errors.New("the log has begun already")
	}
	m, err := s.makeMember(func(m *member) error {
		peers := raftlog.Peers{}
		for i, other := range c.Members {
			id := m.disk.ID()
			if i != self {
				if other.Votes == 0 {
					continue // it comes later
				}
				var err error
				if id, err = s.ask(ctx, c.Settings.ReplicaSetID, other.Host); err != nil {
					return err
				}
			}
			peers = append(peers, raftlog.Peer{ID: id, Member: other.ID, Host: other.Host})
		}
		return m.disk.Begin(c.Settings.ReplicaSetID, peers)
	})
	if err != nil {
		return err
	}
	go func() { // when who asks for it has been answered
		if err := m.takeOver(); err != nil {
			s.fail(fmt.Errorf("begin the replica set: %w", err))
		}
	}()
	return nil
}

// keepGroup has the members of the log be those of the configuration, as long as this one leads, and looks how the others are, until ctx ends.
func (m *member) keepGroup() {
	for clock.Wait(m.ctx, clock.Wall(), groupInterval) == nil {
		d := m.server.current.Load()
		if d == nil || !d.users.enter() {
			continue
		}
		v := d.commands.Replica.View()
		d.users.leave()
		if v.Config == nil {
			continue
		}
		m.lookAt(v)
		m.rest(v)
		if v.State != replset.Primary {
			continue
		}
		if err := m.adjust(v.Config); err != nil && m.ctx.Err() == nil {
			m.server.log.For("REPL").Debug("The members of the log could not be changed", "error", err.Error())
		}
		if v.Self >= 0 {
			m.yieldTo(v)
		}
	}
}

const groupInterval = 500 * time.Millisecond

// lookAt asks all others how they are.
func (m *member) lookAt(v *replset.View) {
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
			reply, err := m.server.call(m.ctx, other.Host, m.newLetter(letterPosition).Doc())
			m.looks.Lock()
			defer m.looks.Unlock()
			delete(m.looks.busy, other.Host)
			h := m.looks.health[other.Host]
			h.Up = err == nil
			if err == nil {
				h.SeenAt = clock.Millis(m.server.clock)
				h.State = replset.Secondary
				if reply.Lookup("leads").Truthy() {
					h.State = replset.Primary
				}
				if v := reply.Lookup("logged"); v.Type == bson.TypeInt64 {
					h.Logged = oplog.Timestamp(v.Int64())
				}
				if v := reply.Lookup("term"); v.Type == bson.TypeInt64 {
					h.Term = v.Int64()
				}
				h.Version = 0
				if v := reply.Lookup("version"); v.Type == bson.TypeInt64 {
					h.Version = v.Int64()
				}
				if h.Version == 0 {
					h.State = replset.Startup2
				}
				if v := reply.Lookup("id"); v.Type == bson.TypeInt64 {
					m.looks.ids[other.Host] = uint64(v.Int64())
				}
			}
			m.looks.health[other.Host] = h
		})
	}
}

// Health implements command.Group.
func (g group) Health(host string) command.Health {
	m := g.member()
	if m == nil {
		return command.Health{}
	}
	m.looks.Lock()
	defer m.looks.Unlock()
	return m.looks.health[host]
}

// adjust does the next step of what makes the members of the log those of the configuration. One step is done at a time, so that a majority of
// those before is one of those after.
func (m *member) adjust(c *replset.Config) error {
	s := m.log.Status()
	if !s.Leads || s.Joint {
		return nil
	}
	for _, other := range c.Members {
		p, known := peerOf(s.Peers, other.ID)
		switch {
		case known && p.Host != other.Host:
			return m.proposePeers(with(s.Peers, raftlog.Peer{ID: p.ID, Member: p.Member, Host: other.Host}))
		case !known:
			return m.bring(s, other)
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
	for id := range s.Progress {
		if p, ok := s.Peers.ByID(id); !ok || !isIn(c, p.Member) {
			return m.proposeChange(pb.ConfChangeRemoveNode, id)
		}
	}
	for _, p := range s.Peers {
		if !isIn(c, p.Member) {
			return m.proposePeers(without(s.Peers, p.ID))
		}
	}
	return nil
}

// maxBehind is how many entries a member may be behind to get a vote.
const maxBehind = 1000

// bring has a server that the configuration has, and the log has not, be known to the log.
func (m *member) bring(s *raftlog.Status, other replset.Member) error {
	id, err := m.server.ask(m.ctx, m.disk.SetID(), other.Host)
	if err != nil {
		return err
	}
	if _, taken := s.Peers.ByID(id); taken {
		return fmt.Errorf("%s is in the log already, as another member", other.Host)
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

// AwaitMembers implements command.Group.
func (g group) AwaitMembers(ctx context.Context, number uint64, enough func(has func(member int64) bool) bool) error {
	m := g.member()
	if m == nil {
		return errDeposed()
	}
	index := m.log.IndexOf(number)
	for {
		s := m.log.Status()
		if enough(func(member int64) bool {
			p, ok := peerOf(s.Peers, member)
			return ok && s.Progress[p.ID].Match >= index
		}) {
			return nil
		}
		if !s.Leads {
			return errDeposed()
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return errDeposed()
		}
	}
}

// AwaitRead implements command.Group.
func (g group) AwaitRead(ctx context.Context) error {
	m := g.member()
	if m == nil {
		return nil
	}
	return m.log.AwaitRead(ctx)
}

// AwaitApplied implements command.Group.
func (g group) AwaitApplied(ctx context.Context, done func() bool) error {
	m := g.member()
	if m == nil {
		return nil
	}
	for {
		_, changed := m.log.Applied()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return errDeposed()
		}
	}
}

var errNobodyElse = errors.New("no electable member has caught up")

// transferTime is how long a member that has everything may take to become primary.
const transferTime = 2 * time.Second

// StepDown implements command.Group.
func (g group) StepDown(ctx context.Context, catchUp, notFor time.Duration, force bool) error {
	m := g.member()
	if m == nil {
		return errNobodyElse
	}
	m.freeze(notFor)
	err := m.handOver(ctx, max(catchUp, transferTime), func(raftlog.Peer) bool { return true })
	if err != nil && force {
		return m.log.Do(ctx, func(c *raftlog.Core) error { return c.Resign() })
	}
	if err != nil {
		m.freeze(0)
	}
	return err
}

// handOver has another member that may lead take over within a time. What clients write meanwhile waits.
func (m *member) handOver(ctx context.Context, within time.Duration, to func(raftlog.Peer) bool) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), within)
	defer cancel()
	engine := m.engine()
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
	d := m.server.current.Load()
	if d == nil {
		return 0
	}
	c := d.commands.Replica.View().Config
	best, priority := uint64(0), 0.0
	for _, other := range c.Members {
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
	m.mu.frozen = clock.Monotonic(clock.Wall()) + d
	m.mu.Unlock()
}

// Freeze implements command.Group.
func (g group) Freeze(d time.Duration) {
	if m := g.member(); m != nil {
		m.freeze(d)
		m.rest(nil)
	}
}

// StepUp implements command.Group.
func (g group) StepUp(ctx context.Context) error {
	m := g.member()
	if m == nil {
		return nil
	}
	return m.log.Do(ctx, func(c *raftlog.Core) error { return c.Campaign() })
}

// rest has the member stand for election or not, by its priority and by what it was asked for.
func (m *member) rest(v *replset.View) {
	m.mu.Lock()
	if v != nil {
		m.mu.passive = v.Self < 0 || v.Config.Members[v.Self].Priority == 0
	}
	idle := m.mu.passive || m.mu.frozen > clock.Monotonic(clock.Wall())
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
	now := clock.Monotonic(clock.Wall())
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
