package replset

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// State is what a member is. The numbers are MongoDB's.
type State int32

// The states that this member can have.
const (
	// Startup: it has no configuration yet.
	Startup State = 0
	// Primary takes writes.
	Primary State = 1
	// Secondary only reads.
	Secondary State = 2
	// Recovering: it has others' configuration and not their log, so that its data may be of any time; nobody reads it.
	Recovering State = 3
	// Startup2: it gets its first data.
	Startup2 State = 5
	// Removed: it has a configuration that is not for it.
	Removed State = 10
)

// String is MongoDB's stateStr.
func (s State) String() string {
	switch s {
	case Startup:
		return "STARTUP"
	case Primary:
		return "PRIMARY"
	case Secondary:
		return "SECONDARY"
	case Recovering:
		return "RECOVERING"
	case Startup2:
		return "STARTUP2"
	case Removed:
		return "REMOVED"
	}
	return "UNKNOWN"
}

// View is what the member is at a moment. It does not change.
type View struct {
	State State
	// Config is nil in Startup. Self is the member's place in it, -1 in Removed.
	Config *Config
	Self   int
	// Term counts elections; -1 before the first configuration.
	Term int64
	// ElectedAt is when it became primary, in milliseconds since the epoch; 0 where it is not.
	ElectedAt int64
	// Primary is the address of the set's primary, "" where the member knows of none.
	Primary string
	// Until is the end of the time in which it is not elected, as the clock's monotonic time; 0 where there is none.
	Until time.Duration
	// Topology counts what hello tells of: it moves when any of that does.
	Topology int64
	// Changed is closed when there is a newer View.
	Changed <-chan struct{}
}

// isAlone says whether nobody else has a vote. Where others have, it is for the log that they share to say who is primary (Node.Lead).
func (v *View) isAlone() bool { return len(v.Config.Members) == 1 }

// ElectionID is the id of a term's election.
func ElectionID(term int64) (id [12]byte) {
	copy(id[:], []byte{0x7f, 0xff, 0xff, 0xff})
	binary.BigEndian.PutUint64(id[4:], uint64(term))
	return id
}

// Host is the member's own address.
func (v *View) Host() string { return v.Config.Members[v.Self].Host }

// Storage keeps what has to be there after a restart. What it is given is durable when it returns.
type Storage interface {
	// SaveConfig keeps a configuration: the first, or the one that takes the place of another.
	SaveConfig(context.Context, *Config) error
	// SaveElection keeps that the member was elected in a term; the member is not primary before.
	SaveElection(ctx context.Context, term int64) error
}

// Node is this server as a member of a replica set.
type Node struct {
	name    string
	clock   clock.Clock
	storage Storage
	// topology is what the Node's Views are counted by.
	topology *Topology
	// OnChange, unless nil, is called when there is another View. It is set before the first, and must not wait.
	OnChange func()
	view     atomic.Pointer[View]
	// changing lets one change in at a time; it is held while Storage works.
	changing chan struct{}
	mu       struct {
		sync.Mutex // guards the following, for moments only
		changed    chan struct{}
	}
}

// NewNode is a member of the set called name without a configuration. Its Views are counted by t.
func NewNode(name string, c clock.Clock, s Storage, t *Topology) *Node {
	m := &Node{name: name, clock: c, storage: s, topology: t, changing: make(chan struct{}, 1)}
	m.mu.changed = make(chan struct{})
	m.view.Store(&View{Term: -1, Topology: t.next(), Changed: m.mu.changed})
	return m
}

// SetName is the name that the server was started with.
func (m *Node) SetName() string { return m.name }

// View is what the member is now.
func (m *Node) View() *View { return m.view.Load() }

// publish makes v the member's View. The caller is in change.
func (m *Node) publish(v View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := m.mu.changed
	m.mu.changed = make(chan struct{})
	v.Topology, v.Changed = m.topology.next(), m.mu.changed
	m.view.Store(&v)
	close(changed)
	if m.OnChange != nil {
		m.OnChange()
	}
}

// change runs f alone.
func (m *Node) change(ctx context.Context, f func(View) error) error {
	select {
	case m.changing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.changing }()
	return f(*m.view.Load())
}

// Restore gives the member what it had before a restart. It is elected by Run, where nobody else has a vote, or by others, which Lead tells; self is -1
// where the configuration is not for it.
func (m *Node) Restore(c *Config, self int, term int64) {
	v := View{State: Secondary, Config: c, Self: self, Term: term}
	switch {
	case self < 0:
		v.State = Removed
	case !v.isAlone():
		v.State = Recovering
	}
	m.publish(v)
}

// Initiate gives the member its first configuration. check looks at what it is by then.
func (m *Node) Initiate(ctx context.Context, c *Config, self int, check func(*View) error) error {
	return m.change(ctx, func(v View) error {
		if err := check(&v); err != nil {
			return err
		}
		if err := m.storage.SaveConfig(ctx, c); err != nil {
			return err
		}
		m.publish(View{State: Secondary, Config: c, Self: self, Term: 0})
		return nil
	})
}

// Lead makes the member the primary in a term in which the others have elected it. Without a place in a configuration it cannot be.
func (m *Node) Lead(ctx context.Context, term int64) error {
	return m.change(ctx, func(v View) error {
		switch {
		case v.Config == nil:
			return errors.New("the member has no configuration of the replica set")
		case v.Self < 0:
			return errors.New("the replica set's configuration does not have the member")
		}
		if err := m.storage.SaveElection(ctx, term); err != nil {
			return err
		}
		v.State, v.Until, v.Term, v.ElectedAt, v.Primary = Primary, 0, term, clock.Millis(m.clock), v.Host()
		m.publish(v)
		return nil
	})
}

// Follow makes the member what v says, a secondary or one that becomes that, of a primary that others have elected; "" where there is none now. Its Config
// is nil where it has none yet. What it is already is not told again.
func (m *Node) Follow(v View) {
	old := m.View()
	switch {
	case v.Config == nil:
		v.State, v.Term = Startup, -1
	case v.Self < 0:
		v.State = Removed
	}
	if old.State == v.State && old.Term == v.Term && old.Primary == v.Primary && old.Self == v.Self && v.Config.Same(old.Config) {
		return
	}
	m.publish(v)
}

// Depose makes a primary a secondary at once: others lead, or may. Whoever is interrupted after that is told of it by a newer topology.
func (m *Node) Depose() {
	v := *m.View()
	if v.State != Primary {
		return
	}
	v.State, v.ElectedAt, v.Primary = Secondary, 0, ""
	m.publish(v)
}

// Same says whether two configurations are one; either may be nil.
func (c *Config) Same(other *Config) bool {
	return c == other || c != nil && other != nil && c.Version == other.Version && c.Term == other.Term
}

// Reconfigure gives the member another configuration: the one that next makes of what it is by then.
func (m *Node) Reconfigure(ctx context.Context, next func(*View) (c *Config, self int, err error)) error {
	return m.change(ctx, func(v View) error {
		c, self, err := next(&v)
		if err != nil {
			return err
		}
		if err := m.storage.SaveConfig(ctx, c); err != nil {
			return err
		}
		v.Config, v.Self = c, self
		switch {
		case self < 0:
			v.State, v.ElectedAt, v.Primary = Removed, 0, ""
		case v.State == Removed, v.State == Recovering && v.isAlone(): // a forced configuration is for it again; Run has it elected, if it may be
			v.State = Secondary
		case v.State == Primary: // under another address, maybe
			v.Primary = v.Host()
		}
		m.publish(v)
		return nil
	})
}

// StepDown makes the primary a secondary that is not elected for some time. check looks at what it is by then.
func (m *Node) StepDown(ctx context.Context, d time.Duration, check func(*View) error) error {
	return m.change(ctx, func(v View) error {
		if err := check(&v); err != nil {
			return err
		}
		v.State, v.ElectedAt, v.Primary, v.Until = Secondary, 0, "", clock.Monotonic(m.clock)+d
		m.publish(v)
		return nil
	})
}

// Frozen is until when a member is not elected that is not until some time, and is asked not to be for d from now on: the later of both counts, and 0 ends
// them.
func Frozen(until, now, d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return max(until, now+d)
}

// Freeze keeps a secondary from being elected for some time; 0 ends that, and what StepDown has asked for.
func (m *Node) Freeze(ctx context.Context, d time.Duration, check func(*View) error) error {
	return m.change(ctx, func(v View) error {
		if err := check(&v); err != nil {
			return err
		}
		v.Until = Frozen(v.Until, clock.Monotonic(m.clock), d)
		m.publish(v)
		return nil
	})
}

// Run has the member elected whenever it may be, until ctx ends. An election that cannot be kept is an error, and tried again
// after a while.
func (m *Node) Run(ctx context.Context, failed func(error)) {
	for ctx.Err() == nil {
		v := m.View()
		wait := time.Duration(-1) // for a change
		if v.State == Secondary && v.isAlone() {
			if wait = v.Until - clock.Monotonic(m.clock); wait <= 0 {
				if err := m.Elect(ctx); err == nil {
					continue
				} else if ctx.Err() == nil {
					failed(err)
				}
				wait = electionRetry
			}
		}
		m.await(ctx, v, wait)
	}
}

// electionRetry is how long after an election that failed the next is tried.
const electionRetry = time.Second

// await returns when there is a newer View, after d unless it is negative, or when ctx ends.
func (m *Node) await(ctx context.Context, v *View, d time.Duration) {
	var over <-chan time.Time
	if d >= 0 {
		t := m.clock.NewTimer(d)
		defer t.Stop()
		over = t.C()
	}
	select {
	case <-v.Changed:
	case <-over:
	case <-ctx.Done():
	}
}

// Elect makes a secondary that may be elected the primary: it is the only one that votes.
func (m *Node) Elect(ctx context.Context) error {
	return m.change(ctx, func(v View) error {
		if v.State != Secondary || !v.isAlone() || v.Until > clock.Monotonic(m.clock) {
			return nil
		}
		if err := m.storage.SaveElection(ctx, v.Term+1); err != nil {
			return err
		}
		v.State, v.Until, v.Term, v.ElectedAt, v.Primary = Primary, 0, v.Term+1, clock.Millis(m.clock), v.Host()
		m.publish(v)
		return nil
	})
}
