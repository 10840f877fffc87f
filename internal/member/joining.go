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

// Begin implements command.Group.
func (g *Group) Begin(ctx context.Context, c *replset.Config, self int) error {
	g.joining.Lock()
	defer g.joining.Unlock()
	if g.member.Load() != nil {
		return errors.New("the log has begun already")
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
				if id, err = g.ask(ctx, c.Settings.ReplicaSetID, log, other.Host); err != nil {
					return err
				}
			}
			peers = append(peers, raftlog.Peer{ID: id, Member: other.ID, Host: other.Host})
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

// ask has the server at a host be of a set, which has a log, and returns its id.
func (g *Group) ask(ctx context.Context, set, log [12]byte, host string) (uint64, error) {
	reply, err := g.call(ctx, host, g.joinLetter(letterJoin, set, log, g.o.Name))
	if err != nil {
		return 0, fmt.Errorf("have %s join: %w", host, err)
	}
	id := reply.Lookup("id")
	if id.Type != bson.TypeInt64 || id.Int64() == 0 {
		return 0, fmt.Errorf("have %s join: its answer is broken", host)
	}
	return uint64(id.Int64()), nil
}

// join has an empty server be of a set, or tells that it could be, as one can that has been of it and has a part of the same log.
func (g *Group) join(ctx context.Context, set, log [12]byte, name bson.Value, onlyCheck bool) (bson.Doc, error) {
	if name.Type != bson.TypeString || name.Str() != g.o.Name {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "the server was started with the replica set name %s", g.o.Name)
	}
	if set == noID && !onlyCheck {
		return nil, errBrokenLetter
	}
	g.joining.Lock()
	defer g.joining.Unlock()
	if m := g.member.Load(); m != nil {
		if m.disk.SetID() != set || m.disk.LogID() != log || log == noID && onlyCheck {
			return nil, mongoerr.New(mongoerr.AlreadyInitialized, "the server is a member of another replica set, or was")
		}
		return bson.Build().Int64("id", int64(m.disk.ID())).Doc(), nil
	}
	if err := g.isEmpty(ctx); err != nil || onlyCheck {
		return bson.EmptyDoc, err
	}
	m, err := g.makeMember(func(m *member) error { return m.disk.Join(set, log) })
	if err != nil {
		return nil, err
	}
	return bson.Build().Int64("id", int64(m.disk.ID())).Doc(), m.takeOver()
}

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

// makeMember makes the log of a server that has none; begin puts into it what it begins with.
func (g *Group) makeMember(begin func(*member) error) (*member, error) {
	if g.o.Server.Engine() == nil {
		return nil, errOneMember
	}
	m, err := g.newMember()
	if err != nil {
		return nil, err
	}
	if err := begin(m); err != nil {
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

func (g *Group) joinLetter(kind string, set, log [12]byte, name string) bson.Doc {
	return g.newLetter(kind, set, 0).ObjectID("log", log).String("name", name).Doc()
}

// noID is that of a set or a log that nobody knows.
var noID [12]byte
