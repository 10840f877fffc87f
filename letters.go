package ebb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/server"
)

// Letters are what members of a replica set say to one another: commands called ebbMember, over the same port as any client's. Where clients log
// in members show that they are such, and nobody else is heard. They go around the database, which may be about to give way to another
// just because of what they say.

func isLetter(req *server.Request) bool { return req.Body.FirstKey() == letterName }

// letter answers one.
func (s *Server) letter(ctx context.Context, c *server.Conn, k *caller, req *server.Request) server.Reply {
	body, err := s.read(ctx, c, k, req)
	if err != nil {
		k.letter = nil
		e := mongoerr.From(err)
		return server.Reply{Body: bson.Build().Double("ok", 0).String("errmsg", e.Message).Int32("code", int32(e.Code)).String("codeName", e.Code.Name()).Doc(),
			Close: req.Unacknowledged()}
	}
	return server.Reply{Body: bson.Build().Fields(body).Double("ok", 1).Doc()}
}

func (s *Server) read(ctx context.Context, c *server.Conn, k *caller, req *server.Request) (bson.Doc, error) {
	if s.opts.ReplicaSet == nil {
		return nil, mongoerr.New(mongoerr.NoReplicationEnabled, "not running with --replSet")
	}
	if err := s.admitMember(ctx, c, k); err != nil {
		return nil, err
	}
	kind, set, from, host := req.Body.Lookup(letterName), req.Body.Lookup("set"), req.Body.Lookup("from"), req.Body.Lookup("host")
	if kind.Type != bson.TypeString || set.Type != bson.TypeObjectID || from.Type != bson.TypeInt64 || host.Type != bson.TypeString || len(host.Str()) > 1<<10 {
		return nil, mongoerr.New(mongoerr.FailedToParse, "the letter is broken")
	}
	switch kind.Str() {
	case letterCheck, letterJoin:
		return s.join(ctx, set.ObjectID(), req.Body.Lookup("name"), kind.Str() == letterCheck)
	}
	m := s.member.Load()
	if m == nil || m.log == nil || m.disk.SetID() != set.ObjectID() {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "this server is no member of that replica set")
	}
	id := uint64(from.Int64())
	data := req.Body.Lookup("data")
	var bytes []byte
	if data.Type == bson.TypeBinary {
		_, bytes = data.Binary()
	}
	switch kind.Str() {
	case letterMessages:
		m.links.meet(id, string([]byte(host.Str())))
		return bson.EmptyDoc, m.receive(k, bytes, req.Body)
	case letterSnapshotBegin:
		return bson.EmptyDoc, m.beginSnapshot(id)
	case letterSnapshotPart:
		return bson.EmptyDoc, m.addToSnapshot(ctx, id, append([]byte{}, bytes...))
	case letterSnapshotEnd:
		message := &pb.Message{}
		if err := proto.Unmarshal(bytes, message); err != nil || message.GetType() != pb.MsgSnap {
			return nil, errBrokenLetter
		}
		return bson.EmptyDoc, m.endSnapshot(id, message)
	case letterPosition:
		return m.position(), nil
	}
	return nil, mongoerr.New(mongoerr.CommandNotFound, "no such letter: '%s'", kind.Str())
}

var errBrokenLetter = mongoerr.New(mongoerr.FailedToParse, "the letter is broken")

// admitMember refuses who is no member, where members can show that they are.
func (s *Server) admitMember(ctx context.Context, c *server.Conn, k *caller) error {
	if k.isMember {
		return nil
	}
	if s.opts.Authorization || len(s.foundation.keys) > 0 || s.opts.ClusterX509 {
		d := s.serving.enter(ctx, s)
		if d == nil {
			return context.Cause(ctx)
		}
		defer d.users.leave()
		d.meet(c, k)
		if !k.conn.IsMember() {
			return mongoerr.New(mongoerr.Unauthorized, "%s is for members of the replica set", letterName)
		}
	}
	k.isMember = true
	return nil
}

// receive takes messages of the log, and the primary's time.
func (m *member) receive(k *caller, data []byte, body bson.Doc) error {
	if len(k.letter)+len(data) > maxLetterBytes {
		return mongoerr.New(mongoerr.ExceededMemoryLimit, "the letter is larger than %d bytes", maxLetterBytes)
	}
	k.letter = append(k.letter, data...)
	if body.Lookup("more").Truthy() {
		return nil
	}
	whole := k.letter
	k.letter = nil // what it holds goes on to the log
	for len(whole) > 0 {
		n, length := binary.Uvarint(whole)
		if length <= 0 || n > uint64(len(whole)-length) {
			return errBrokenLetter
		}
		message := &pb.Message{}
		if err := proto.Unmarshal(whole[length:length+int(n)], message); err != nil {
			return errBrokenLetter
		}
		whole = whole[length+int(n):]
		if message.GetType() == pb.MsgSnap { // which comes with its data
			return errBrokenLetter
		}
		m.log.Receive(message)
	}
	if number, at := body.Lookup("number"), body.Lookup("time"); number.Type == bson.TypeInt64 && at.Type == bson.TypeInt64 {
		m.time.hear(uint64(number.Int64()), at.Int64())
	}
	return nil
}

// position is how far the member is.
func (m *member) position() bson.Doc {
	role := m.log.Role()
	b := bson.Build().Int64("id", int64(m.disk.ID())).Int64("term", int64(role.Term)).Bool("leads", role.Leads).Int64("leader", int64(role.Leader))
	number, millis := m.engine().Last()
	b.Int64("number", int64(number)).Int64("time", millis)
	if d := m.server.current.Load(); d != nil && d.users.enter() {
		defer d.users.leave()
		b.Int64("logged", int64(d.store.LastLogged()))
		if v := d.commands.Replica.View(); v.Config != nil {
			b.Int64("version", v.Config.Version)
		}
	}
	return b.Doc()
}

// join has an empty server be of a set, or tells that it could be.
func (s *Server) join(ctx context.Context, set [12]byte, name bson.Value, onlyCheck bool) (bson.Doc, error) {
	if name.Type != bson.TypeString || name.Str() != s.opts.ReplicaSet.Name {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "the server was started with the replica set name %s", s.opts.ReplicaSet.Name)
	}
	if bytes.Equal(set[:], make([]byte, 12)) && !onlyCheck {
		return nil, errBrokenLetter
	}
	s.joining.Lock()
	defer s.joining.Unlock()
	if m := s.member.Load(); m != nil {
		if m.disk.SetID() != set {
			return nil, mongoerr.New(mongoerr.AlreadyInitialized, "the server is a member of another replica set already")
		}
		return bson.Build().Int64("id", int64(m.disk.ID())).Doc(), nil
	}
	if err := s.isEmpty(ctx); err != nil || onlyCheck {
		return bson.EmptyDoc, err
	}
	m, err := s.makeMember(func(m *member) error { return m.disk.Join(set) })
	if err != nil {
		return nil, err
	}
	return bson.Build().Int64("id", int64(m.disk.ID())).Doc(), m.takeOver()
}

// isEmpty refuses a server that has a set, or data that would go.
func (s *Server) isEmpty(ctx context.Context) error {
	d := s.serving.enter(ctx, s)
	if d == nil {
		return context.Cause(ctx)
	}
	defer d.users.leave()
	if d.commands.Replica.View().Config != nil {
		return mongoerr.New(mongoerr.AlreadyInitialized, "the server has a replica set configuration already")
	}
	for _, c := range d.store.Catalog().All() {
		if db := c.NS.DB; db != "admin" && db != "local" && db != "config" {
			return mongoerr.New(mongoerr.AlreadyInitialized, "the server has data already, in %s", c.NS)
		}
	}
	return nil
}

// makeMember makes the log of a server that has none; begin puts into it what it begins with.
func (s *Server) makeMember(begin func(*member) error) (*member, error) {
	m, err := newMember(s)
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
	s := m.server
	m.turn.Lock()
	defer m.turn.Unlock()
	if err := m.endDatabase(); err != nil {
		return err
	}
	number, millis := s.foundation.engine.Last()
	m.time.begin(number, millis)
	s.foundation.engine.Follow(errDeposed())
	if err := s.foundation.engine.Sync(); err != nil { // what the log does not have
		return err
	}
	s.member.Store(m)
	d, err := openDatabase(s, role{kind: follower}, func() {})
	if err != nil {
		return fmt.Errorf("become a member: %w", err)
	}
	s.serving.become(s, d)
	return m.start()
}
