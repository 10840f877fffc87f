package member

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
)

// A replica set of several begins in three steps. Whoever begins it has the others say by which ids they would be members, which each of them keeps; it
// begins the log with these as its voters; then they join. So a set of which not all can be members does not begin, and one of which not all have joined
// goes on to have them do so (keepGroup). A server that has lost its directory meanwhile is not the one that a vote was given to.

// Begin implements command.Group.
func (g *Group) Begin(ctx context.Context, c *replset.Config, self int, keep func() error) error {
	if !g.beginning.CompareAndSwap(false, true) {
		return errBeginning
	}
	defer g.beginning.Store(false)
	unlock, err := g.lockJoining(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if g.member.Load() != nil {
		return errAlready
	}
	var log [12]byte
	_, _ = rand.Read(log[:]) // never fails
	m, err := g.makeMember(func(m *member) error {
		peers := raftlog.Peers{}
		for i, other := range c.Members {
			id := m.disk.ID()
			if i != self {
				if other.Votes == 0 {
					continue // it comes later
				}
				var err error
				if id, err = g.ask(ctx, other.Host, g.joinLetter(letterReserve, c.Settings.ReplicaSetID, log, g.o.Name).Doc()); err != nil {
					return err
				}
			}
			peers = append(peers, raftlog.Peer{ID: id, Member: other.ID, Host: other.Host})
		}
		if err := keep(); err != nil {
			return err
		}
		return m.disk.Begin(c.Settings.ReplicaSetID, log, peers)
	})
	if err != nil {
		return err
	}
	go func() { // when who asks for it has been answered
		if err := m.takeOver(); err != nil {
			g.o.Server.Fail(fmt.Errorf("begin the replica set: %w", err))
		}
	}()
	return nil
}

// ask has the server at a host be of a set, or be ready to, as a letter says, and returns its id.
func (g *Group) ask(ctx context.Context, host string, letter bson.Doc) (uint64, error) {
	reply, err := g.call(ctx, host, letter)
	if err != nil {
		return 0, fmt.Errorf("have %s join: %w", host, err)
	}
	id := reply.Lookup("id")
	if id.Type != bson.TypeInt64 || id.Int64() == 0 {
		return 0, fmt.Errorf("have %s join: its answer is broken", host)
	}
	return uint64(id.Int64()), nil
}

// anyID is no member's.
const anyID = 0

// invite has the server at a member's address join, which is a member by the log already, by the id that it has reserved.
func (m *member) invite(c *replset.Config, other replset.Member) error {
	p, known := peerOf(m.log.Status().Peers, other.ID)
	if !known || p.Host != other.Host {
		return nil
	}
	_, err := m.group.ask(m.ctx, other.Host, m.joinLetter(c).Int64("id", int64(p.ID)).Doc())
	return err
}

// invitation is what a server is told that could be a member.
type invitation struct {
	kind     string // of letter
	set, log [12]byte
	name     bson.Value
	id       uint64 // that it has reserved; anyID where it has not been asked to
	config   bson.Doc
}

func readInvitation(kind string, set [12]byte, letter bson.Doc) (v invitation, err error) {
	v = invitation{kind: kind, set: set, name: letter.Lookup("name")}
	if log := letter.Lookup("log"); log.Type == bson.TypeObjectID {
		v.log = log.ObjectID()
	}
	if id := letter.Lookup("id"); id.Type == bson.TypeInt64 {
		v.id = uint64(id.Int64())
	}
	if c := letter.Lookup("config"); c.Type == bson.TypeObject {
		v.config = c.Doc()
	}
	if set == noID && kind != letterCheck {
		return v, errBrokenLetter
	}
	return v, nil
}

// join has an empty server be of a set, reserve the id that it would have there, or tell that it could be, as one can that has been of it and has a part
// of the same log.
func (g *Group) join(ctx context.Context, v invitation) (bson.Doc, error) {
	if v.name.Type != bson.TypeString || v.name.Str() != g.o.Name {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "the server was started with the replica set name %s", g.o.Name)
	}
	if g.beginning.Load() { // which may wait for who asks
		return nil, errBeginning
	}
	unlock, err := g.lockJoining(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m := g.member.Load(); m != nil {
		if m.disk.SetID() != v.set || m.disk.LogID() != v.log || v.log == noID && v.kind == letterCheck {
			return nil, errAlready
		}
		return identity(m), nil
	}
	if err := g.isEmpty(ctx); err != nil || v.kind == letterCheck {
		return bson.EmptyDoc, err
	}
	if v.kind == letterReserve {
		m, err := g.reserve()
		if err != nil {
			return nil, err
		}
		return identity(m), nil
	}
	if v.id != anyID && (g.reserved == nil || g.reserved.disk.ID() != v.id) {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "the server is not the one that was to be this member: it has lost its directory since")
	}
	m, err := g.makeMember(func(m *member) error { return m.disk.Join(v.set, v.log) })
	if err != nil {
		return nil, err
	}
	if v.config != nil {
		if err := g.keepConfig(ctx, v.config); err != nil { // it comes with the copy, too
			g.o.Log.For("REPL").Warn("The configuration of the replica set that the server joins could not be kept", "error", err.Error())
		}
	}
	return identity(m), m.takeOver()
}

// keepConfig has a server that joins know the configuration before it has anything else, so that no client hears that it is of no set. What it is kept in
// gives way to what the others have.
func (g *Group) keepConfig(ctx context.Context, config bson.Doc) error {
	d := g.o.Server.Enter(ctx)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.Leave()
	return d.KeepConfig(ctx, config)
}

func identity(m *member) bson.Doc { return bson.Build().Int64("id", int64(m.disk.ID())).Doc() }

var (
	errAlready   = mongoerr.New(mongoerr.AlreadyInitialized, "the server is a member of another replica set, or was")
	errBeginning = mongoerr.New(mongoerr.ConfigurationInProgress, "the server is about to begin a replica set itself")
)

// isEmpty refuses a server that has a set, or data that would go.
func (g *Group) isEmpty(ctx context.Context) error {
	d := g.o.Server.Enter(ctx)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.Leave()
	if d.View().Config != nil {
		return mongoerr.New(mongoerr.AlreadyInitialized, "the server has a replica set configuration already")
	}
	for _, c := range d.Catalog().All() {
		if db := c.NS.DB; db != "admin" && db != "local" && db != "config" {
			return mongoerr.New(mongoerr.AlreadyInitialized, "the server has data already, in %s", c.NS)
		}
	}
	return nil
}

// errOneMember: a cluster keeps its own replicas.
var errOneMember = mongoerr.New(mongoerr.IllegalOperation, "a server whose data is in a TiKV cluster has no other members: the cluster replicates the data")

// reserve makes the log of a server that has none, and with it the id that the server would be a member by.
func (g *Group) reserve() (m *member, err error) {
	if g.o.Server.Engine() == nil {
		return nil, errOneMember
	}
	if g.reserved == nil {
		g.reserved, err = g.newMember()
	}
	return g.reserved, err
}

// makeMember has a server that is none be a member; begin puts into its log what that begins with.
func (g *Group) makeMember(begin func(*member) error) (*member, error) {
	m, err := g.reserve()
	if err != nil {
		return nil, err
	}
	err = begin(m)
	if err != nil && !m.disk.IsMember() {
		return nil, err
	}
	g.reserved = nil
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// takeOver has the server be the member from now on.
func (m *member) takeOver() error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.EndDatabase(errDeposed()); err != nil {
		return err
	}
	m.follow(m.disk.IsEmpty())
	if err := m.Sync(); err != nil { // what the log does not have
		return err
	}
	m.group.member.Store(m)
	if err := m.become(Role{Kind: Follower}, func() {}); err != nil {
		return fmt.Errorf("become a member: %w", err)
	}
	return m.start()
}

func (g *Group) joinLetter(kind string, set, log [12]byte, name string) *bson.Builder {
	return g.newLetter(kind, set, 0).ObjectID("log", log).String("name", name)
}

// joinLetter has another server join this one's set, of which it tells the configuration.
func (m *member) joinLetter(c *replset.Config) *bson.Builder {
	return m.group.joinLetter(letterJoin, m.disk.SetID(), m.disk.LogID(), m.group.o.Name).Document("config", c.Document())
}

// noID is that of a set or a log that nobody knows.
var noID [12]byte
