package member

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/handover"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/raftlog"
)

// member is the server's part in the log of its replica set (raftlog.Machine). Its store goes by the role that it has there: a loop has one
// database give way to another when that changes.
type member struct {
	group *Group
	Server
	disk  *raftlog.Disk
	log   *raftlog.Member
	links *links
	// outgoing are the snapshots that are sent of the store there is now.
	outgoing handover.Holder[*outgoing]
	twins    *twins

	started atomic.Bool   // log is there, and stays
	wake    chan struct{} // holds one: the role may have changed
	ctx     context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu struct {
		sync.Mutex
		leads   uint64        // the term that this member leads in and has applied all that was before it; 0: it does not
		term    uint64        // that the engine leads in
		changed chan struct{} // closed when who applies should look again
		noted   chan struct{} // closed when a database that follows has looked what has become of the set
		// frozen is until when the member is not elected, and relieved when it has tried to hand over since its disk was full, by the clock's monotonic
		// time. barred: it is never elected; passive: only where others who may lead cannot yet, until one can.
		frozen, relieved time.Duration
		takeover         takeover
		barred, passive  bool
	}
	// turn is held while a database gives way to another.
	turn     sync.Mutex
	time     followedTime
	leader   atomic.Pointer[leaderClock] // the clock of the database where it leads; nil where it follows
	noting   atomic.Bool                 // somebody notes the time
	incoming incoming
	arrived  sync.Mutex  // held while something is done with the folder of what has arrived
	suspects atomic.Bool // somebody looks what has become of who leads
	// dismissed is the version of the youngest configuration that others have said this member is missing from; 0: of none.
	dismissed atomic.Int64
	// elections are those that this member has had a part in, and appliedTerm the term of the last Commit that it has applied; 0: nobody knows.
	elections struct {
		sync.Mutex
		noted command.Elections
	}
	appliedTerm atomic.Uint64
	// looks is what is known of the others, by their addresses.
	looks struct {
		sync.Mutex
		busy   map[string]bool
		health map[string]command.Health
		// upSince is when one that had not answered has begun to, by the clock's monotonic time.
		upSince map[string]time.Duration
		unfit   map[string]bool   // to lead
		others  map[string]uint64 // the ids of servers that are not the members that should be there
		// refusals are why servers that this one has asked to join do not.
		refusals map[string]error
	}
}

// newMember opens the log, or makes an empty one.
func (g *Group) newMember() (m *member, err error) {
	m = &member{group: g, Server: g.o.Server, twins: newTwins(), wake: make(chan struct{}, 1)}
	m.time.clock = g.o.Clock
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.outgoing.Put(newOutgoing(m.ctx))
	m.mu.changed, m.mu.noted = make(chan struct{}), make(chan struct{})
	m.looks.upSince, m.looks.refusals = map[string]time.Duration{}, map[string]error{}
	m.looks.busy, m.looks.health, m.looks.unfit, m.looks.others = map[string]bool{}, map[string]command.Health{}, map[string]bool{}, map[string]uint64{}
	if m.disk, err = raftlog.OpenDisk(m.path(LogDir), g.o.Disk.Over(g.o.Files), g.o.Log.For("REPL")); err != nil {
		return nil, err
	}
	m.links = newLinks(m)
	return m, nil
}

// path is that of a file or folder in the data directory.
func (m *member) path(name string) string { return m.group.o.Files.PathJoin(m.group.o.Dir, name) }

// start has the member take part.
func (m *member) start() (err error) {
	stored, _ := m.Engine().Last()
	m.log, err = raftlog.Start(raftlog.Options{
		Disk: m.disk, Machine: m, Stored: stored, Send: m.links.send, Clock: m.group.o.Wall,
		Log: m.group.o.Log.For("REPL"), Failed: m.Fail, Limits: m.group.o.Limits.Log,
		IsStuck: func() bool { return m.group.o.Disk.Stalled() >= raftlog.StuckAfter },
	})
	if err != nil {
		return err
	}
	m.started.Store(true)
	m.ended.Go(m.followRole)
	m.ended.Go(m.tellTime)
	m.ended.Go(m.keepGroup)
	return nil
}

func (m *member) stop() {
	m.cancel()
	if m.log != nil {
		m.log.Stop()
	}
	m.links.stop()
	m.ended.Wait()
}

func (m *member) close() error { return m.disk.Close() }

// follow has the store go by what others order, from its last Commit on; foreign says that it is not the set's yet.
func (m *member) follow(foreign bool) {
	number, millis := m.Engine().Last()
	m.time.begin(number, millis, foreign)
	m.Engine().Follow(errDeposed())
}

// Apply implements raftlog.Machine.
func (m *member) Apply(ctx context.Context, e raftlog.Entry) error {
	if e.Commit == nil {
		return nil
	}
	number := kv.CommitNumber(e.Commit)
	defer m.appliedTerm.Store(e.Term)
	for {
		m.mu.Lock()
		term, changed := m.mu.term, m.mu.changed
		m.mu.Unlock()
		engine := m.Engine()
		if last, _ := engine.Last(); number <= last {
			return nil
		}
		if term == e.Term {
			if c := m.leader.Load(); c != nil { // before anybody sees the commit
				c.confirm(kv.CommitTime(e.Commit))
			}
			if err := engine.Confirm(number); !errors.Is(err, kv.ErrNotLeader) {
				return err
			}
		}
		if d := m.TryEnter(); d != nil {
			if d.Role().Kind == Follower {
				defer d.Leave()
				return m.applyTo(ctx, d, e)
			}
			d.Leave()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *member) applyTo(ctx context.Context, d Database, e raftlog.Entry) error {
	c, err := kv.DecodeCommit(e.Commit)
	if err != nil {
		return err
	}
	m.time.applies(c.Time)
	if err := d.Apply(ctx, c); err != nil {
		return err
	}
	m.time.applied(c.Number, c.Time)
	return nil
}

// Lead implements raftlog.Machine.
func (m *member) Lead(term uint64) {
	m.mu.Lock()
	m.mu.leads = term
	m.mu.Unlock()
	m.awake()
}

// Deposed implements raftlog.Machine.
func (m *member) Deposed() {
	if d := m.TryEnter(); d != nil {
		d.Depose()
		d.Leave()
	}
	m.mu.Lock()
	m.mu.leads, m.mu.term = 0, 0
	m.Engine().Follow(errDeposed())
	m.mu.Unlock()
	m.awake()
}

// Changed implements raftlog.Machine.
func (m *member) Changed() {
	m.noteElections()
	m.awake()
}

// Sync implements raftlog.Machine.
func (m *member) Sync() error { return m.Engine().Sync() }

func (m *member) awake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// errDeposed is what those are told whom a change of roles interrupts.
func errDeposed() error {
	return mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")
}
