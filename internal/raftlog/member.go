package raftlog

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// Machine is what a log is applied to.
type Machine interface {
	// Apply applies what is committed, in the order of the log. An entry that the machine has already is passed over. An error ends the member.
	Apply(ctx context.Context, e Entry) error
	// Install puts the snapshot that has arrived in the place of the store, and returns the number of the last Commit that it has.
	Install(ctx context.Context) (number uint64, err error)
	// Lead is called when the member leads in a term and has applied all that was committed before. It must not wait.
	Lead(term uint64)
	// Deposed is called when what was appended in a term may be lost. It must not wait, for the log least of all.
	Deposed()
	// Changed is called when the role, the members or what they have may be others than before; it must not wait.
	Changed()
	// Sync brings to stable storage what was applied.
	Sync() error
}

// Options of a Member. All but Log, Stored and IsStuck are required.
type Options struct {
	Disk    *Disk
	Machine Machine
	// Stored is the number of the last Commit that the store has.
	Stored uint64
	// Send sends messages to other members, in their order as far as it can; it must not wait. What cannot be sent is lost.
	Send func([]*pb.Message)
	// Clock ticks.
	Clock clock.Clock
	Log   *slog.Logger
	// Failed is told once, when the member can no longer keep what it promised.
	Failed func(error)
	// IsStuck says whether the store's disk has done nothing for StuckAfter; nil: nobody knows.
	IsStuck func() bool
	// Limits are those of the log.
	Limits Limits
}

// Limits bound how much a member keeps of its log.
type Limits struct {
	// Bytes is how much of it is kept for members that are behind, and HardBytes how much for the sake of those that catch up.
	Bytes, HardBytes int64
	// Spare is how many entries are kept although all members have them: one of them may become primary, and not know.
	Spare uint64
	// Every is how often the store is synced and the log cut.
	Every time.Duration
}

// UsualLimits are those of a member that nobody tests.
var UsualLimits = Limits{Bytes: 1 << 30, HardBytes: 4 << 30, Spare: 1 << 10, Every: 10 * time.Second}

// maxKeptEntries is how many entries are kept at most for members that are behind, where the log has room.
const maxKeptEntries = 1 << 20

// tick is the time between two ticks of a Core: a primary that is gone is missed after 0.8 to 1.6 seconds.
const tick = 50 * time.Millisecond

// Limits of what waits for the loop. Messages beyond are lost, as on a network.
const (
	maxInbox      = 1 << 12
	maxInboxBytes = 128 << 20
)

// Member runs a Core.
type Member struct {
	o    Options
	core *Core // of the loop
	log  *slog.Logger

	wake   chan struct{} // holds one
	quit   context.Context
	cancel context.CancelCauseFunc
	ended  sync.WaitGroup
	role   atomic.Pointer[Role]
	status atomic.Pointer[Status]
	writer writer
	queue  applyQueue
	gather gathering

	mu struct {
		sync.Mutex
		inbox      []*pb.Message
		inboxBytes int
		term       uint64 // of the commits
		commits    [][]byte
		enough     int // from how many commits on the loop is woken for one that comes
		calls      []func(*Core)
		written    []*Write // which are on the disk
		ended      bool
		reads      map[uint64]chan ReadState
	}
	applied progress
	watched atomic.Int32  // who wants to hear of each change of the Status at once
	stale   bool          // the Status is of before; of the loop, as is the next
	changed chan struct{} // closed when another Status is published
}

// Status is what is known of the set.
type Status struct {
	Role
	Peers Peers
	// Last is the end of the log, Committed up to where it is.
	Last, Committed uint64
	// Changed is closed when there is a younger Status.
	Changed <-chan struct{}
	// Progress is of each member that a primary knows.
	Progress map[uint64]Progress
	Voters   map[uint64]bool
	Joint    bool
	Elections

	peerIndex, confIndex uint64 // of what it was made from
}

// Progress is how far a member has got.
type Progress struct {
	Match  uint64
	Active bool
	// Behind says that it gets a snapshot, or that nobody knows yet what it has.
	Behind  bool
	Learner bool
}

// Start starts a member.
func Start(o Options) (*Member, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	core, err := NewCore(o.Disk, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), o.Log)
	if err != nil {
		return nil, err
	}
	stored, err := o.Disk.foundStored(o.Stored)
	if err != nil {
		return nil, err
	}
	core.Settle(stored)
	m := &Member{o: o, core: core, log: o.Log, wake: make(chan struct{}, 1)}
	m.quit, m.cancel = context.WithCancelCause(context.Background())
	m.mu.reads = map[uint64]chan ReadState{}
	m.applied.index = core.applied.index
	m.applied.number, m.applied.found, m.applied.foundAt = o.Stored, o.Stored, stored
	m.writer.wake, m.queue.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	m.queue.at = core.applied.index
	m.gather.clock = o.Clock
	m.publish()
	m.ended.Go(m.run)
	m.writer.ended.Go(m.write)
	m.ended.Go(m.apply)
	m.ended.Go(m.cut)
	return m, nil
}

var errStopped = errors.New("raftlog: the member has stopped")

// Stop ends the member, and returns when nothing of it runs any more.
func (m *Member) Stop() {
	m.cancel(errStopped)
	ended := make(chan struct{})
	go func() {
		m.ended.Wait()
		m.writer.ended.Wait()
		close(ended)
	}()
	patience := m.o.Clock.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-ended:
		return
	case <-patience.C():
	}
	m.o.Disk.abandon() // a full disk is all that it can wait for so long
	select {
	case <-ended:
	case <-m.o.Disk.files.abandoned:
		m.ended.Wait() // all but who waits for the disk
	}
}

// stopPatience is how long a member that stops waits for room on a full disk.
const stopPatience = 5 * time.Second

// Role is what the member is.
func (m *Member) Role() Role { return *m.role.Load() }

// Status is what is known of the set. What it says of progress may be a tick behind, unless somebody watches.
func (m *Member) Status() *Status { return m.status.Load() }

// Watch has the Status be of this moment, and its change be told at once, until done is called. It is for those who wait for it.
func (m *Member) Watch() (done func()) {
	m.watched.Add(1)
	m.awake()
	return func() { m.watched.Add(-1) }
}

// Receive takes a message of another member.
func (m *Member) Receive(message *pb.Message) {
	size := 0
	for _, e := range message.GetEntries() {
		size += len(e.GetData())
	}
	m.mu.Lock()
	if len(m.mu.inbox) < maxInbox && m.mu.inboxBytes+size <= maxInboxBytes {
		m.mu.inbox = append(m.mu.inbox, message)
		m.mu.inboxBytes += size
	}
	m.mu.Unlock()
	m.awake()
}

// LogOf is where a store that leads in a term appends what it orders.
func (m *Member) LogOf(term uint64) *Appender { return &Appender{m, term} }

// Appender is a kv.Log for one term.
type Appender struct {
	member *Member
	term   uint64
}

// Append is kv.Log's.
func (a *Appender) Append(encoded []byte) {
	m := a.member
	commit := make([]byte, 1+len(encoded))
	commit[0] = kindCommit
	copy(commit[1:], encoded)
	m.mu.Lock()
	if m.mu.term != a.term {
		m.mu.term, m.mu.commits = a.term, nil // nobody waits for those of another
	}
	m.mu.commits = append(m.mu.commits, commit)
	enough := len(m.mu.commits) >= m.mu.enough
	m.mu.Unlock()
	if enough {
		m.awake()
	}
}

// Do runs f on the loop, and returns when it has.
func (m *Member) Do(ctx context.Context, f func(*Core) error) error {
	over := make(chan error, 1)
	m.mu.Lock()
	if m.mu.ended {
		m.mu.Unlock()
		return errStopped
	}
	m.mu.calls = append(m.mu.calls, func(c *Core) { over <- f(c) })
	m.mu.Unlock()
	m.awake()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.quit.Done():
		return context.Cause(m.quit)
	}
}

func (m *Member) awake() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run is the loop. It waits for nothing but what comes, so that whoever hears it knows that the member is there.
func (m *Member) run() {
	defer m.end()
	next := m.o.Clock.NewTimer(tick)
	defer func() { next.Stop() }()
	for {
		ticks := false
		select {
		case <-next.C():
			ticks = true
			if m.o.IsStuck != nil {
				m.core.SetStuck(m.o.IsStuck())
			}
			m.core.Tick()
			next = m.o.Clock.NewTimer(tick)
		case <-m.gather.tooLate():
			m.gather.expire()
		case <-m.wake:
		case <-m.quit.Done():
			return
		}
		if err := m.step(ticks); err != nil {
			if m.quit.Err() == nil {
				m.fail(err)
			}
			return
		}
	}
}

func (m *Member) end() {
	m.mu.Lock()
	m.mu.ended, m.mu.calls = true, nil // who waits for a call sees that the member has stopped
	m.mu.Unlock()
	m.o.Machine.Deposed()
}

func (m *Member) fail(err error) {
	m.log.Error("The replica set's log has failed", "error", err.Error())
	m.cancel(err)
	if m.o.Failed != nil {
		go m.o.Failed(err)
	}
}

// step does what has come.
func (m *Member) step(ticks bool) error {
	m.mu.Lock()
	inbox, calls, written := m.mu.inbox, m.mu.calls, m.mu.written
	m.mu.inbox, m.mu.calls, m.mu.written, m.mu.inboxBytes = nil, nil, nil, 0
	m.mu.Unlock()
	for _, w := range written {
		said, err := m.core.Written(w)
		if err != nil {
			return err
		}
		m.send(said)
	}
	m.core.Applied(m.appliedNow())
	for _, message := range inbox {
		m.core.Step(message)
	}
	if err := m.propose(); err != nil {
		return err
	}
	for _, call := range calls {
		call(m.core)
	}
	was := m.core.Committed()
	for m.core.HasReady() {
		m.stale = true
		out, err := m.core.Process()
		if err != nil {
			return err
		}
		m.deliver(out)
	}
	if m.gather.isOver(m.core.end, m.core.committed) {
		m.gather.end(m.waiting())
	}
	m.giveWrites(m.core.Writes())
	if m.stale && (ticks || m.watched.Load() > 0 || m.hasTurned()) {
		m.publish()
	}
	return m.fillQueue(m.core.Committed() != was)
}

// propose appends what has been ordered meanwhile.
func (m *Member) propose() error {
	commits, term := m.takeCommits()
	if len(commits) == 0 {
		return nil
	}
	ok, err := m.core.Propose(term, commits)
	if ok {
		m.gather.begin(len(commits))
	}
	if r := m.core.Role(); err == nil && !ok && (!r.Leads || r.Term == term) { // who has ordered them in a term before knows already
		m.o.Machine.Deposed()
	}
	return err
}

// takeCommits are those to append now. As long as something is on its way to the disk they wait, and go with what comes then; and so they do while others
// are about to come.
func (m *Member) takeCommits() (commits [][]byte, term uint64) {
	writes, _ := m.core.Writing()
	m.mu.Lock()
	defer m.mu.Unlock()
	if writes > 0 {
		m.mu.enough = math.MaxInt // the loop is woken when that is done
		return nil, 0
	}
	if m.mu.enough = m.gather.enough(len(m.mu.commits)); len(m.mu.commits) < m.mu.enough {
		return nil, 0
	}
	commits, m.mu.commits, m.mu.enough = m.mu.commits, nil, 1
	return commits, m.mu.term
}

// waiting is how many commits are to be appended.
func (m *Member) waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mu.commits)
}

func (m *Member) send(messages []*pb.Message) {
	if len(messages) > 0 {
		m.o.Send(messages)
	}
}

// hasTurned says whether the Status tells of another role, or of other members, than there are.
func (m *Member) hasTurned() bool {
	s := m.status.Load()
	return s.Role != m.core.role || s.Elections != m.core.elections || s.peerIndex != m.core.disk.peerIndex || s.confIndex != m.core.disk.confIndex
}

func (m *Member) deliver(out Output) {
	if out.Deposed {
		m.o.Machine.Deposed()
		m.failReads()
	}
	m.send(out.Messages)
	for _, r := range out.Reads {
		m.mu.Lock()
		waiting := m.mu.reads[r.ID]
		delete(m.mu.reads, r.ID)
		m.mu.Unlock()
		if waiting != nil {
			waiting <- r
		}
	}
}

func (m *Member) failReads() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, waiting := range m.mu.reads {
		close(waiting)
		delete(m.mu.reads, id)
	}
}

// publish tells what the member is now.
func (m *Member) publish() {
	raftStatus := m.core.Status()
	s := &Status{Role: m.core.Role(), Peers: m.core.disk.peers, Last: m.core.end, Committed: m.core.committed, Voters: map[uint64]bool{},
		Joint: len(raftStatus.Config.Voters[1]) > 0, peerIndex: m.core.disk.peerIndex, confIndex: m.core.disk.confIndex, Elections: m.core.Elections()}
	m.stale = false
	for id := range raftStatus.Config.Voters.IDs() {
		s.Voters[id] = true
	}
	if s.Leads {
		s.Progress = map[uint64]Progress{}
		for id, p := range raftStatus.Progress {
			s.Progress[id] = Progress{Match: p.Match, Active: p.RecentActive, Learner: p.IsLearner, Behind: p.State.String() != "StateReplicate"}
		}
	}
	role := s.Role
	old, was := m.status.Load(), m.changed
	m.changed = make(chan struct{})
	s.Changed = m.changed
	m.role.Store(&role)
	m.status.Store(s)
	if was != nil {
		close(was)
	}
	if old == nil || old.Role != s.Role || old.Elections != s.Elections || len(old.Peers) != len(s.Peers) {
		m.o.Machine.Changed()
	}
}

// IndexOf is where the log has the Commit with a number, or a little behind. ok says that this is known. It becomes so when Applied moves, and that is
// after those who wait for the Commit have been told that it is applied.
func (m *Member) IndexOf(number uint64) (index uint64, ok bool) {
	m.applied.mu.Lock()
	defer m.applied.mu.Unlock()
	if number <= m.applied.found {
		return max(m.applied.index, m.applied.foundAt), true
	}
	return number + m.applied.offset, number <= m.applied.number
}

// AwaitRead returns when what is committed anywhere by now is applied here, and a majority has said that this member still led then.
func (m *Member) AwaitRead(ctx context.Context) error {
	state := make(chan ReadState, 1)
	if err := m.Do(ctx, func(c *Core) error {
		if !c.Role().Leads {
			return ErrNotLeading
		}
		id := c.ReadIndex()
		m.mu.Lock()
		m.mu.reads[id] = state
		m.mu.Unlock()
		return nil
	}); err != nil {
		return err
	}
	var read ReadState
	select {
	case r, ok := <-state:
		if !ok {
			return ErrNotLeading
		}
		read = r
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.quit.Done():
		return context.Cause(m.quit)
	}
	for {
		at, changed := m.Applied()
		if at >= read.Index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.quit.Done():
			return context.Cause(m.quit)
		}
	}
}

// ErrNotLeading is returned by what only a member that leads can do.
var ErrNotLeading = errors.New("raftlog: the member does not lead")

// cut keeps the log short.
func (m *Member) cut() {
	limits := m.o.Limits
	for clock.Wait(m.quit, m.o.Clock, limits.Every) == nil {
		at, _ := m.Applied()
		if at == 0 {
			continue
		}
		if err := m.o.Machine.Sync(); err != nil {
			if m.quit.Err() == nil {
				m.log.Warn("The store could not be synced, and the replica set's log is not cut", "error", err.Error())
			}
			continue
		}
		if err := m.Do(m.quit, func(c *Core) error {
			if c.disk.install {
				return nil
			}
			most := uint64(maxKeptEntries)
			used := int64(c.disk.db.Metrics().DiskSpaceUsage())
			if used > limits.Bytes {
				most = limits.Spare
			}
			return c.Cut(at, limits.Spare, most, used > limits.HardBytes)
		}); err != nil && m.quit.Err() == nil {
			m.fail(err)
		}
	}
}

// IsVoter says whether a member's word counts.
func (s *Status) IsVoter(id uint64) bool { return s.Voters[id] }

// number is that of the Commit that the entry is, 0 where it is none.
func (e Entry) number() uint64 {
	if e.Commit == nil {
		return 0
	}
	return kv.CommitNumber(e.Commit)
}
