package member

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/diskwatch"
	"github.com/ebbdb/ebb/internal/kv/pebblekv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/peer"
	"github.com/ebbdb/ebb/internal/raftlog"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// LogDir is where a member keeps its log, in the data directory.
const LogDir = "replication"

// Role is what a database is for.
type Role struct {
	Kind Kind
	// Term is what it leads in.
	Term int64
}

// Kind is which role.
type Kind uint8

// The roles.
const (
	Alone Kind = iota // a standalone, or a set of one, or of none yet
	Follower
	Leader
	Beside // of no set: it reads what another server works on, and is told of that
)

// Database is what answers in one role. Who has got it from a Server leaves it.
type Database interface {
	Leave()
	Role() Role
	// Now is its time, in milliseconds since the epoch.
	Now() int64
	// View is what the database says of its replica set.
	View() *replset.View
	// Depose has it not call itself a primary any more. It does not wait.
	Depose()
	// NoteGroup has it look what has become of the set.
	NoteGroup(ctx context.Context) error
	// KeepConfig stores the configuration of a set that the server is about to join.
	KeepConfig(ctx context.Context, config bson.Doc) error
	// NoteTime commits that nothing has happened by now.
	NoteTime(ctx context.Context) error
	// Apply applies a Commit of another member's, in their order; it is not synced.
	Apply(ctx context.Context, c *kv.Commit) error
	// LastLogged is the youngest entry of the oplog.
	LastLogged() oplog.Timestamp
	Catalog() *catalog.Catalog
}

// Server is what a Group asks of the server that it is in.
type Server interface {
	// Enter is the database of the moment. It waits for one, and is nil when ctx has ended before; TryEnter does not wait.
	Enter(ctx context.Context) Database
	TryEnter() Database
	// Role is that of the database of the moment; false where there is none.
	Role() (Role, bool)
	// Engine is that of the store; nil: it is one that can have no other members. OpenEngine closes it, if it is open, has prepare change its files, and opens the store again; opened is to be
	// called when what is in it is known to be sound.
	Engine() *pebblekv.Engine
	OpenEngine(prepare func() error) (opened func(), err error)
	// EngineOptions are for an engine in another place.
	EngineOptions() pebblekv.Options
	// EndDatabase interrupts who works with the database of the moment, for the reason err, and closes it.
	EndDatabase(err error) error
	// Become has the server answer by a new database.
	Become(r Role, c clock.Clock, opened func()) error
	// HeardPrimary is told, often, that another member is primary.
	HeardPrimary()
	// Fail ends the server: it can no longer keep what it promised.
	Fail(err error)
}

// Options of a Group. All are required but Dir and Disk.
type Options struct {
	Server Server
	// Name is the set's.
	Name string
	// Host is the server's own address, and IsSelf says whether another one is, too.
	Host   string
	IsSelf func(ctx context.Context, host string) bool
	// Files are where the data is, in the folder Dir, the store in StoreDir of that.
	Files         vfs.FS
	Dir, StoreDir string
	// Clock is the database's time, and Wall that of the network: whoever is missed is missed in real time.
	Clock, Wall clock.Clock
	Log         *serverlog.Log
	// Disk watches the disk that Files are on; nil: nobody does.
	Disk *diskwatch.Watch
	// Peers is how other members are called.
	Peers func() peer.Options
	// Limits are UsualLimits but in tests.
	Limits Limits
}

// Limits bound what a member keeps for others, and sends them at once.
type Limits struct {
	Log raftlog.Limits
	// PartBytes is from how many bytes on a part of a snapshot is sent.
	PartBytes int
}

// UsualLimits are those of a member that nobody tests.
var UsualLimits = Limits{Log: raftlog.UsualLimits, PartBytes: 1 << 20}

// Group is the server's replica set (command.Group).
type Group struct {
	o       Options
	member  atomic.Pointer[member] // nil as long as the set has no other members
	joining chan struct{}          // holds one while it becomes one, or is asked to
	// reserved has the id that the server would be a member by, and is none yet; guarded by joining.
	reserved *member
	// beginning says that this server asks others whether they would be members.
	beginning atomic.Bool
	letters   atomic.Int64 // bytes of letters that have not come as a whole
}

// New is a Group that nothing was looked up for.
func New(o Options) *Group { return &Group{o: o, joining: make(chan struct{}, 1)} }

// lockJoining has nobody else make the server a member, until unlock is called. Who waits may be in the database that gives way while the server becomes
// one: so it can be interrupted.
func (g *Group) lockJoining(ctx context.Context) (unlock func(), err error) {
	select {
	case g.joining <- struct{}{}:
		return func() { <-g.joining }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// HasLog says whether the log of a member is in a data directory.
func HasLog(files vfs.FS, dir string) bool {
	_, err := files.Stat(files.PathJoin(dir, LogDir))
	return err == nil
}

// IsMember says whether a data directory is a member's: that of a server that has only been asked to be one is not. A log that cannot be read counts.
func IsMember(files vfs.FS, dir string, log *serverlog.Log) bool {
	if !HasLog(files, dir) {
		return false
	}
	d, err := raftlog.OpenDisk(files.PathJoin(dir, LogDir), files, log.For("REPL"))
	if err != nil {
		return true
	}
	is := d.IsMember()
	return d.Close() != nil || is
}

// ErrNotAlone is returned for the data of a member that is opened without its set: what is written to a member alone is in no log, and would
// never be at the others.
var ErrNotAlone = errors.New("the data is that of a member of a replica set with others, whose log is in the directory replication: start it with --replSet")

// Load has the Group be what its log says, before the store is opened.
func (g *Group) Load() error {
	if !HasLog(g.o.Files, g.o.Dir) {
		return nil
	}
	m, err := g.newMember()
	if err != nil {
		return err
	}
	if !m.disk.IsMember() { // it was about to become one
		g.reserved = m
		return nil
	}
	if err := m.checkPlace(); err != nil {
		return errors.Join(err, m.close())
	}
	g.member.Store(m)
	return m.finishInstall()
}

// First is the role that the server begins with, over a store that was opened, and the clock of its database.
func (g *Group) First() (Role, clock.Clock) {
	m := g.member.Load()
	if m == nil {
		return Role{}, g.o.Clock
	}
	m.follow(m.disk.IsEmpty())
	return Role{Kind: Follower}, m.clockFor(Role{Kind: Follower})
}

// Start has the member, if there is one, take part.
func (g *Group) Start() error {
	if m := g.member.Load(); m != nil {
		return m.start()
	}
	return nil
}

// Stop has it take part no more; Close closes its log, after the database and the store.
func (g *Group) Stop() {
	if m := g.member.Load(); m != nil {
		m.stop()
	}
}

// Close closes the log.
func (g *Group) Close() error {
	unlock, err := g.lockJoining(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	if g.reserved != nil {
		return g.reserved.close()
	}
	if m := g.member.Load(); m != nil {
		return m.close()
	}
	return nil
}

// running is the member that takes part; nil where there is none.
func (g *Group) running() *member {
	m := g.member.Load()
	if m == nil || !m.started.Load() {
		return nil
	}
	return m
}

// Status is what is known of the log and its members; nil where there are none.
func (g *Group) Status() *raftlog.Status {
	if m := g.running(); m != nil {
		return m.log.Status()
	}
	return nil
}

// Full says whether the log waits for room on a full disk.
func (g *Group) Full() bool {
	m := g.running()
	return m != nil && m.disk.IsFull()
}

// Leader implements command.Group.
func (g *Group) Leader() (host string, term int64, ok bool) {
	m := g.running()
	if m == nil {
		return "", 0, g.member.Load() != nil
	}
	s := m.log.Status()
	return m.links.hostOf(s.Leader), int64(s.Term), true
}

// IsEmpty implements command.Group.
func (g *Group) IsEmpty() bool {
	m := g.member.Load()
	return m != nil && m.time.isForeign()
}

// Check implements command.Group.
func (g *Group) Check(ctx context.Context, name string, member replset.Member) error {
	if g.o.Server.Engine() == nil {
		return errOneMember
	}
	var set, log [12]byte
	m := g.running()
	if m != nil {
		set, log = m.disk.SetID(), m.disk.LogID()
		if err := m.awaitGone(ctx, member); err != nil {
			return err
		}
	}
	reply, err := g.call(ctx, member.Host, g.joinLetter(letterCheck, set, log, name).Doc())
	if err != nil {
		return err
	}
	if id := reply.Lookup("id"); m != nil && id.Type == bson.TypeInt64 {
		return m.awaitLeft(ctx, uint64(id.Int64()), member.ID)
	}
	return nil
}

// leaveTime is how long one that is let go and comes back at once is waited for to be gone.
const leaveTime = 5 * time.Second

// awaitGone returns when whoever was a member before that is added now is none of the log any more. An emptied server that is added at once would find the one
// that it was in its place: nobody would ask it to join, and the vote of one that is gone would count.
func (m *member) awaitGone(ctx context.Context, next replset.Member) error {
	if v := m.view(); v == nil || v.Config == nil || isIn(v.Config, next.ID) {
		return nil
	}
	return m.awaitPeers(ctx, func(p raftlog.Peers) bool {
		before, is := peerOf(p, next.ID)
		return !is || before.Host != next.Host
	})
}

// awaitLeft returns when a server that was a member of the log is none any more, unless it is the one that it is to be.
func (m *member) awaitLeft(ctx context.Context, id uint64, next int64) error {
	return m.awaitPeers(ctx, func(p raftlog.Peers) bool {
		before, is := p.ByID(id)
		return !is || before.Member == next
	})
}

// awaitPeers returns when the members of the log are such that somebody can be added.
func (m *member) awaitPeers(ctx context.Context, free func(raftlog.Peers) bool) error {
	defer m.log.Watch()()
	ctx, cancel := clock.WithTimeout(ctx, m.group.o.Wall, leaveTime)
	defer cancel()
	for {
		s := m.log.Status()
		if free(s.Peers) {
			return nil
		}
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return mongoerr.New(mongoerr.AlreadyInitialized, "the server is a member of the set already")
		}
	}
}

// Ask implements command.Group.
func (g *Group) Ask(ctx context.Context, host string, command bson.Doc) (bson.Doc, error) {
	dialing, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := peer.Dial(dialing, host, g.o.Peers())
	if err != nil {
		return nil, mongoerr.New(mongoerr.HostUnreachable, "%s cannot be reached: %s", host, err)
	}
	defer conn.Close()
	if command.Lookup("apiVersion").IsMissing() { // which may be required of whom it cannot know to be a member
		command = bson.Build().Fields(command).String("apiVersion", "1").Doc()
	}
	reply, err := conn.Call(ctx, command)
	if said := (*mongoerr.Error)(nil); err != nil && !errors.As(err, &said) && ctx.Err() == nil {
		return nil, mongoerr.New(mongoerr.HostUnreachable, "%s has not answered: %s", host, err)
	}
	return reply, err
}

// Health implements command.Group.
func (g *Group) Health(host string) command.Health {
	m := g.running()
	if m == nil {
		return command.Health{}
	}
	m.looks.Lock()
	defer m.looks.Unlock()
	h := m.looks.health[host]
	if h.Up {
		h.UpFor = clock.Monotonic(g.o.Wall) - m.looks.upSince[host]
	}
	return h
}

// Votes implements command.Group. As long as nobody has said who votes the configuration counts.
func (g *Group) Votes(member int64) bool {
	m := g.running()
	if m == nil {
		return true
	}
	s := m.log.Status()
	p, known := peerOf(s.Peers, member)
	return len(s.Voters) == 0 || known && s.Voters[p.ID]
}

// AwaitMembers implements command.Group.
func (g *Group) AwaitMembers(ctx context.Context, number uint64, enough func(has func(member int64) bool) bool) error {
	m := g.running()
	if m == nil {
		return errDeposed()
	}
	defer m.log.Watch()()
	index, known := uint64(0), false
	for {
		var applied <-chan struct{} // nil where that is not waited for
		if !known {                 // and else it stays, or others would run behind what comes meanwhile
			_, applied = m.log.Applied()
			index, known = m.log.IndexOf(number)
		}
		s := m.log.Status()
		if known && enough(func(member int64) bool {
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
		case <-applied:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return errDeposed()
		}
	}
}

// AwaitRead implements command.Group.
func (g *Group) AwaitRead(ctx context.Context) error {
	m := g.running()
	if m == nil {
		return nil
	}
	return m.log.AwaitRead(ctx)
}

// AwaitApplied implements command.Group.
func (g *Group) AwaitApplied(ctx context.Context, done func() bool) error {
	m := g.running()
	if m == nil {
		return nil
	}
	for {
		_, changed := m.log.Applied()
		noted := m.nextNote()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-noted:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ctx.Done():
			return errDeposed()
		}
	}
}

// StepDown implements command.Group.
func (g *Group) StepDown(ctx context.Context, catchUp, notFor time.Duration, force bool) error {
	m := g.running()
	if m == nil {
		return errNobodyElse
	}
	m.freeze(notFor)
	m.rest(nil)
	err := m.handOver(ctx, max(catchUp, transferTime), false, anybody)
	if err != nil && force {
		return m.log.Do(ctx, func(c *raftlog.Core) error { return c.Resign() })
	}
	if err != nil {
		m.freeze(0)
	}
	return err
}

// HandOver has another member lead where this one does, before the server ends, and returns soon whether or not there is one that can. It is not elected
// again.
func (g *Group) HandOver(ctx context.Context) {
	m := g.running()
	if m == nil || !m.log.Role().Leads {
		return
	}
	log := g.o.Log.For("REPL")
	m.freeze(restTime)
	if err := m.handOver(ctx, partingTime, true, anybody); err != nil {
		log.Warn("No other member could take over before the server ends", "error", err.Error())
		return
	}
	ctx, cancel := clock.WithTimeout(ctx, g.o.Wall, partingTime)
	defer cancel()
	for s := m.log.Status(); s.Leader == 0; s = m.log.Status() { // so that clients are told of the next
		select {
		case <-s.Changed:
		case <-ctx.Done():
			return
		}
	}
	log.Info("Another member has taken over before the server ends", "host", m.links.hostOf(m.log.Role().Leader))
}

// partingTime is how long at most a server that ends waits for another to take over, and restTime how long it is not elected then.
const (
	partingTime = 5 * time.Second
	restTime    = time.Minute
)

// Freeze implements command.Group.
func (g *Group) Freeze(d time.Duration) {
	if m := g.running(); m != nil {
		m.freeze(d)
		m.rest(nil)
	}
}

// StepUp implements command.Group.
func (g *Group) StepUp(ctx context.Context) error {
	m := g.running()
	if m == nil {
		return errNotElected
	}
	return m.stepUp(ctx)
}
