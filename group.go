package ebb

import (
	"context"
	"crypto/tls"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tikv/client-go/v2/tikv"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/member"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/server"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/wire"
)

// openGroup makes the server's replica set, whose log Group.Load looks for.
func (s *Server) openGroup(address string) *member.Group {
	files, dir := s.files()
	return member.New(member.Options{
		Server: memberServer{s}, Name: s.opts.ReplicaSet.Name, Host: address, IsSelf: s.isSelf, Files: files, Dir: dir, StoreDir: storeDir,
		Clock: s.clock, Wall: clock.Wall(), Log: s.log, Peers: s.peerOptions, Disk: s.watch, Limits: s.opts.memberLimits(),
	})
}

// files are where the server's data is.
func (s *Server) files() (files vfs.FS, dir string) {
	switch {
	case s.memoryFiles != nil:
		return s.memoryFiles, ""
	case s.opts.disk() != nil:
		return s.opts.disk(), ""
	}
	return vfs.Default, s.DBPath()
}

// peerOptions are how other members are called at the moment. As long as plain connections are the rule, which some members may take alone, so are these.
func (s *Server) peerOptions() peer.Options {
	codec, err := wire.NewCodec(nil)
	if err != nil {
		panic(err) // of no compressor
	}
	o := peer.Options{Keys: s.foundation.secrets, X509: s.transport.clusterAuth.SendsX509(), Codec: codec}
	if s.opts.Machine != nil {
		o.Dial = s.opts.Machine.Dial
	}
	if c := s.transport.certificates; c != nil && server.Mode(s.transport.mode.Load()) >= server.PreferTLS {
		withholds := s.transport.params.Withholds.Get()
		o.TLS = func(host string) *tls.Config { return c.Set().Outgoing(host, withholds) }
	}
	return o
}

// memberServer is the Server as its replica set sees it (member.Server).
type memberServer struct{ *Server }

// Enter implements member.Server.
func (s memberServer) Enter(ctx context.Context) member.Database { return seen(s.serving.Enter(ctx)) }

// TryEnter implements member.Server.
func (s memberServer) TryEnter() member.Database { return seen(s.serving.TryEnter()) }

func seen(d *database) member.Database {
	if d == nil {
		return nil
	}
	return memberDatabase{d}
}

// Role implements member.Server.
func (s memberServer) Role() (member.Role, bool) {
	if d := s.serving.Current(); d != nil {
		return d.role, true
	}
	return member.Role{}, false
}

// Engine implements member.Server.
func (s memberServer) Engine() *pebblekv.Engine { return s.foundation.engine.Load() }

// OpenEngine implements member.Server.
func (s memberServer) OpenEngine(prepare func() error) (opened func(), err error) {
	if err := s.Engine().Close(); err != nil {
		return nil, err
	}
	if err := prepare(); err != nil {
		return nil, err
	}
	engine, opened, err := s.openEngine()
	if err != nil {
		return nil, err
	}
	s.foundation.engine.Store(engine)
	return opened, nil
}

// EngineOptions implements member.Server.
func (s memberServer) EngineOptions() pebblekv.Options { return s.engineOptions() }

// EndDatabase implements member.Server.
func (s memberServer) EndDatabase(why error) error { return s.endDatabase(why) }

// Become implements member.Server.
func (s memberServer) Become(r member.Role, c clock.Clock, opened func()) error {
	d, err := openDatabase(s.Server, origin{engine: s.foundation.store(), role: r, clock: c}, opened)
	if err == nil {
		s.serving.Put(d)
	}
	return err
}

// Fail implements member.Server.
func (s memberServer) Fail(err error) { s.fail(err) }

// memberDatabase is a database as its replica set sees it (member.Database).
type memberDatabase struct{ *database }

// Role implements member.Database.
func (d memberDatabase) Role() member.Role { return d.role }

// Now implements member.Database.
func (d memberDatabase) Now() int64 { return d.store.Now() }

// View implements member.Database.
func (d memberDatabase) View() *replset.View { return d.commands.Replica.View() }

// Depose implements member.Database.
func (d memberDatabase) Depose() { d.commands.Replica.Depose() }

// NoteGroup implements member.Database.
func (d memberDatabase) NoteGroup(ctx context.Context) error { return d.commands.NoteGroup(ctx) }

// KeepConfig implements member.Database.
func (d memberDatabase) KeepConfig(ctx context.Context, config bson.Doc) error {
	return d.commands.KeepConfig(ctx, config)
}

// NoteTime implements member.Database.
func (d memberDatabase) NoteTime(ctx context.Context) error { return d.commands.NoteTime(ctx) }

// Apply implements member.Database.
func (d memberDatabase) Apply(ctx context.Context, c *kv.Commit) error {
	if d.seams != nil && d.seams.apply != nil {
		d.seams.apply(c)
	}
	return d.store.Apply(ctx, c, kv.Unsynced)
}

// LastLogged implements member.Database.
func (d memberDatabase) LastLogged() oplog.Timestamp { return d.store.LastLogged() }

// Catalog implements member.Database.
func (d memberDatabase) Catalog() *catalog.Catalog { return d.store.Catalog() }

// seams are where tests of this package watch a member of a replica set, and have it do what it must not, or have a server's cluster in this process; nil in
// all others.
type seams struct {
	// cluster is a client of a TiKV cluster; nil: it is where the options say.
	cluster func() *tikv.KVStore
	// clock changes the clock of a database that is to have a role; nil: it does not.
	clock func(member.Role, clock.Clock) clock.Clock
	// apply changes what another member has committed, before it is applied; nil: it does not.
	apply func(*kv.Commit)
	// limits are smaller ones, so that members need copies of the store, in many parts.
	limits member.Limits
}

func (o Options) memberLimits() member.Limits {
	if o.seams != nil {
		return o.seams.limits
	}
	return member.UsualLimits
}
