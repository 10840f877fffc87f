package raftlog

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// How many ticks pass before a member that hears nothing from a primary stands for election (up to twice as many, by chance), and between
// two heartbeats.
const (
	electionTicks  = 16
	heartbeatTicks = 2
	// lastResort is how many times that pass before one stands that is reluctant to.
	lastResort = 4
)

// How many ticks a member waits for each that stands for election before it when who leads is gone for certain, how many of these it waits
// before it tries again, and how often it does.
const (
	rankTicks  = 2
	hurryTicks = 4
	maxHurries = 4
)

// Limits of what is on its way to a member.
const (
	maxAppendBytes   = 1 << 20
	maxInflight      = 256
	maxInflightBytes = 64 << 20
	maxApplyBytes    = 4 << 20
)

// maxWritingBytes is how much may be on its way to the disk before what other members append is lost, as on a network.
const maxWritingBytes = 2 * maxInflightBytes

// Core is a member without time, goroutines and network: what it does follows from what it is told, in that order. It is used by one goroutine.
type Core struct {
	disk    *Disk
	node    *raft.RawNode
	log     *slog.Logger
	applied raftPosition // up to where the store has applied the log
	role    Role
	// committed is up to where the log is committed, as far as has been told.
	committed uint64
	// settled is up to where it was committed when the member started, by what its store has; raft may know of less. diverged is why the member cannot
	// follow who leads.
	settled  uint64
	diverged error
	ahead    map[uint64]uint64 // members that claim more than this one has appended, and the term in which that was told
	// idle keeps the member from standing for election. A reluctant one stands as a last resort, where all others have been unable to lead for long:
	// they may lack what it has, and nobody but who leads could give it to them. missed is how often it has heard of no primary in time, one time after the other.
	idle, reluctant bool
	missed          int
	// random draws how long it waits for that, and elapsed are the ticks since it has heard of a primary. Raft has such a timer, which
	// nobody can repeat.
	random            *rand.Rand
	elapsed, patience int
	hurries           int // how often it is still tried again soon, see Orphaned
	lastRead          uint64
	asked             asked

	// What is on its way to the disk, which may take long: the writes that nobody does yet, how many there are in all and how many bytes their entries
	// have, how many of them have the log begin behind a snapshot, the end of the log behind all of them, and what raft has then, which isHardLate says
	// goes with the next. stalled are the ticks since the last one was done.
	writes                []*Write
	writing, writingBytes int
	resets                int
	end                   uint64
	hard                  *pb.HardState
	isHardLate            bool
	stalled               int
	stuck                 bool // see SetStuck
	// resigns says that the member ceases to lead as soon as nothing is on its way.
	resigns bool
	turned  bool // the role may be another one, for reasons that raft does not know of

	elections Elections
	led       uint64 // who led last
	summoned  bool   // who leads has asked the member to stand for election
	restarted uint64 // the term in which the member started, whose vote may be of before
}

// stalledTicks is how long a disk may take for one write before a member that leads falls silent, so that another one does, and StuckAfter the same as a
// time.
const (
	stalledTicks = 200
	StuckAfter   = stalledTicks * tick
)

// Role is what a member is in its log.
type Role struct {
	Term uint64
	// Leader is who leads in the term; 0 where nobody is known to.
	Leader uint64
	// Leads says that it is this member.
	Leads bool
}

// Output is what a Core says is to be done, in the order of the fields, beside Writes. What messages promise is on stable storage: those that tell of
// what is not yet are answers of a Write.
type Output struct {
	// Deposed says that the member has ceased to lead: what was appended in that term and is not among what is committed may be lost.
	Deposed  bool
	Messages []*pb.Message
	// Reads are the reads that may go on when the store has applied the log up to Index.
	Reads []ReadState
}

// ReadState is a read that was asked for by ReadIndex.
type ReadState struct{ ID, Index uint64 }

// NewCore is the member that a Disk keeps, which has to be one of a set.
func NewCore(d *Disk, random *rand.Rand, log *slog.Logger) (*Core, error) {
	if !d.IsMember() {
		return nil, errors.New("raftlog: the member is of no set yet")
	}
	c := &Core{disk: d, log: log, random: random, committed: d.applied}
	position := raftPosition{index: d.applied}
	var err error
	if position.term, err = d.Term(d.applied); err != nil && d.applied > 0 {
		return nil, err
	}
	c.applied = position
	d.snapshot = func() raftPosition { return c.applied }
	c.restarted = d.hard.GetTerm()
	if err := c.start(); err != nil {
		return nil, err
	}
	if c.isOnlyVoter() { // nobody else could lead
		c.patience = 1
	}
	return c, nil
}

func (c *Core) isOnlyVoter() bool {
	conf := c.disk.conf
	return slices.Equal(conf.GetVoters(), []uint64{c.disk.id}) && len(conf.GetVotersOutgoing()) == 0
}

func (c *Core) start() (err error) {
	c.resigns, c.turned = false, true
	c.end, c.hard = c.disk.last, c.disk.hard
	c.node, err = raft.NewRawNode(&raft.Config{
		ID: c.disk.id, Storage: c.disk, Applied: c.applied.index, Logger: raftLogger{c.log},
		ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks, CheckQuorum: true, PreVote: true, StepDownOnRemoval: true,
		MaxSizePerMsg: maxAppendBytes, MaxInflightMsgs: maxInflight, MaxInflightBytes: maxInflightBytes, MaxCommittedSizePerReady: maxApplyBytes,
		DisableProposalForwarding: true, AsyncStorageWrites: true,
	})
	if err != nil {
		return fmt.Errorf("raftlog: start: %w", err)
	}
	c.restartTimer()
	return nil
}

func (c *Core) restartTimer() {
	c.hurries = 0
	c.elapsed, c.patience = 0, electionTicks+c.random.IntN(electionTicks)
}

// Role is what the member is now.
func (c *Core) Role() Role {
	s := c.node.BasicStatus()
	if c.resigns {
		return Role{Term: s.GetTerm()}
	}
	return Role{Term: s.GetTerm(), Leader: s.Lead, Leads: s.RaftState == raft.StateLeader}
}

// Tick is time that passes.
func (c *Core) Tick() {
	if c.writing > 0 {
		c.stalled++
	}
	if c.node.BasicStatus().RaftState == raft.StateLeader {
		if !c.isSilent() {
			c.node.Tick()
		}
		return
	}
	c.node.TickQuiesced() // time for all but elections
	if c.elapsed++; c.elapsed < c.patience {
		return
	}
	if c.hurries > 1 {
		c.hurries--
		c.elapsed, c.patience = 0, hurryTicks+c.random.IntN(hurryTicks)
	} else {
		c.restartTimer()
		c.missed++
	}
	if !c.idle && !c.isSilent() && (!c.reluctant || c.missed >= lastResort) {
		_ = c.node.Campaign() // where it may not, it does not
	}
}

// isSilent says whether the member leaves it to others to lead, for its disk does nothing.
func (c *Core) isSilent() bool { return c.stuck || c.stalled > stalledTicks }

// SetStuck says whether the store's disk does nothing, or does again. A member that cannot apply what is committed is of no use as who leads.
func (c *Core) SetStuck(stuck bool) { c.stuck = stuck }

// SetIdle keeps the member from standing for election, or lets it again; as a last resort only where it is reluctant.
func (c *Core) SetIdle(idle, reluctant bool) {
	if c.idle && !idle { // others have their turn first
		c.missed = 0
	}
	c.idle, c.reluctant = idle, reluctant
}

// Campaign has the member stand for election now.
func (c *Core) Campaign() error {
	c.restartTimer()
	return c.node.Campaign()
}

// Orphaned has the member take who leads for gone, of which it is certain: it votes for another at once, and stands for election soon, after
// those of lower rank. So nobody waits as long as for one that may only be slow. Where the others still hear of who leads, they do not vote.
func (c *Core) Orphaned(leader uint64, rank int) error {
	if s := c.node.BasicStatus(); s.Lead != leader || leader == c.disk.id || leader == raft.None {
		return nil
	}
	if err := c.node.ForgetLeader(); err != nil {
		return err
	}
	c.hurries = maxHurries
	c.elapsed, c.patience = 0, 1+rank*rankTicks
	return nil
}

// Step takes a message of another member. What makes no sense is passed over.
func (c *Core) Step(m *pb.Message) {
	c.lookAhead(m)
	if !c.isPlausible(m) || m.GetType() == pb.MsgApp && c.writingBytes > maxWritingBytes {
		return
	}
	switch m.GetType() {
	case pb.MsgTimeoutNow: // who leads has not heard yet
		if c.idle || c.reluctant {
			return
		}
		c.summoned = true
	case pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap, pb.MsgVote:
		if m.GetTerm() >= c.node.BasicStatus().GetTerm() {
			if c.diverged == nil {
				c.diverged = c.contradiction(m)
			}
			if c.diverged != nil {
				return
			}
			c.restartTimer()
			if m.GetType() != pb.MsgVote {
				c.missed = 0
			}
		}
	}
	_ = c.node.Step(m)
}

// Propose appends the entries of one term to the log, together. It says whether the member leads in that term and has done so. Where they are
// dropped although it does, while another member is to take over, it resigns: what comes later would have numbers that these have.
func (c *Core) Propose(term uint64, commits [][]byte) (ok bool, err error) {
	s := c.node.BasicStatus()
	if s.RaftState != raft.StateLeader || s.GetTerm() != term || c.resigns {
		return false, nil
	}
	entries := make([]*pb.Entry, len(commits))
	for i, b := range commits {
		entries[i] = &pb.Entry{Data: b}
	}
	if c.propose(entries) != nil {
		return false, c.Resign()
	}
	return true, nil
}

func (c *Core) propose(entries []*pb.Entry) error {
	return c.node.Step(&pb.Message{Type: pb.MsgProp.Enum(), From: proto.Uint64(c.disk.id), Entries: entries})
}

// ProposePeers has the members be known under other addresses.
func (c *Core) ProposePeers(p Peers) error {
	return c.propose([]*pb.Entry{{Data: p.appendBinary([]byte{kindPeers})}})
}

// ProposeChange adds or removes voters and learners, by joint consensus where it is more than one.
func (c *Core) ProposeChange(changes []*pb.ConfChangeSingle) error {
	return c.node.ProposeConfChange(&pb.ConfChangeV2{Changes: changes})
}

// Transfer has another member take over; it is asked to stand for election once it has the whole log.
func (c *Core) Transfer(to uint64) { c.node.TransferLeader(to) }

// Resign has a member that leads follow, whoever else could lead. It is as if it had been started anew, once what it has written is on its disk.
func (c *Core) Resign() error {
	if c.writing > 0 {
		c.resigns, c.turned = true, true
		return nil
	}
	return c.start()
}

// ReadIndex asks whether the member still leads. Output.Reads has the id that it returns once a majority has said so.
func (c *Core) ReadIndex() (id uint64) {
	c.lastRead++
	var b [8]byte
	for i := range b {
		b[i] = byte(c.lastRead >> (8 * i))
	}
	c.node.ReadIndex(b[:])
	return c.lastRead
}

// Unreachable says that a message to a member was lost.
func (c *Core) Unreachable(id uint64) { c.node.ReportUnreachable(id) }

// SnapshotSent says how it went to send a snapshot's data to a member.
func (c *Core) SnapshotSent(id uint64, ok bool) {
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.node.ReportSnapshot(id, status)
}

// Applied says up to where the store has applied the log.
func (c *Core) Applied(index uint64) {
	if index > c.applied.index && index > c.disk.base.index {
		if term, err := c.disk.Term(index); err == nil {
			c.applied = raftPosition{index, term}
		}
	}
}

// HasReady says whether Process has something to do.
func (c *Core) HasReady() bool { return c.diverged != nil || c.node.HasReady() || c.turned }

// Process does what follows from what the Core was told.
func (c *Core) Process() (out Output, err error) {
	if c.diverged != nil {
		return out, c.diverged
	}
	var applies *pb.Message
	rd := c.node.Ready()
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			said, err := c.append(m)
			if err != nil {
				return out, err
			}
			out.Messages = append(out.Messages, said...)
		case raft.LocalApplyThread:
			applies = m
		default:
			out.Messages = append(out.Messages, m)
		}
	}
	c.asked.note(out.Messages)
	for _, r := range rd.ReadStates {
		id := uint64(0)
		for i, b := range r.RequestCtx {
			id |= uint64(b) << (8 * i)
		}
		out.Reads = append(out.Reads, ReadState{id, r.Index})
	}
	if applies != nil {
		for _, e := range applies.GetEntries() {
			if err := c.commit(e); err != nil {
				return out, err
			}
		}
		for _, m := range applies.GetResponses() {
			_ = c.node.Step(m)
		}
	}
	c.noteElections()
	was := c.role
	c.role, c.turned = c.Role(), false
	out.Deposed = was.Leads && (!c.role.Leads || c.role.Term != was.Term)
	return out, nil
}

// commit takes note of an entry that is committed. What is about the log itself is done here, at once: it has its own order.
func (c *Core) commit(e *pb.Entry) error {
	c.committed = max(c.committed, e.GetIndex())
	switch e.GetType() {
	case pb.EntryNormal:
		_, peers, err := readEntry(e.GetData())
		if err == nil && peers != nil && e.GetIndex() > c.disk.peerIndex {
			c.savePeers(e.GetIndex(), peers)
		}
		return err
	case pb.EntryConfChangeV2:
		var change pb.ConfChangeV2
		if err := proto.Unmarshal(e.GetData(), &change); err != nil {
			return fmt.Errorf("raftlog: read entry %d: %w", e.GetIndex(), err)
		}
		if e.GetIndex() > c.disk.confIndex {
			c.saveConf(e.GetIndex(), c.node.ApplyConfChange(&change))
		}
		return nil
	}
	return errors.New("raftlog: the log has a change of its members in a form that no Ebb writes")
}

// Committed is up to where the log is committed.
func (c *Core) Committed() uint64 { return c.committed }

// Next are the entries to apply behind an index, up to about so many bytes: what is committed of them.
func (c *Core) Next(applied uint64) (entries []Entry, err error) {
	if applied >= c.committed {
		return nil, nil
	}
	found, err := c.disk.Entries(applied+1, c.committed+1, maxApplyBytes)
	if err != nil {
		return nil, fmt.Errorf("raftlog: read what is to be applied: %w", err)
	}
	for _, e := range found {
		entry := Entry{Index: e.GetIndex(), Term: e.GetTerm()}
		if e.GetType() == pb.EntryNormal {
			if entry.Commit, _, err = readEntry(e.GetData()); err != nil {
				return nil, err
			}
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// Status is raft's own account of itself.
func (c *Core) Status() raft.Status { return c.node.Status() }

// Cut takes note that the store has what the log has up to an index on stable storage, and cuts the log where nobody needs it any more: all
// members have it, or more than so many entries lie behind it. Of those more are kept for a member that is there and catches up, or gets a copy
// of the store behind which it goes on, unless hard says that there is no room for that. A member that leads also keeps spare ones that all have.
func (c *Core) Cut(durable, spare, most uint64, hard bool) error {
	var progress map[uint64]tracker.Progress
	if c.Role().Leads { // others cannot know who needs what
		progress = c.node.Status().Progress
	}
	return c.saveApplied(durable, cutBefore(progress, durable, c.disk.last, spare, most, hard))
}

// cutBefore is the first entry that stays.
func cutBefore(progress map[uint64]tracker.Progress, durable, last, spare, most uint64, hard bool) (keep uint64) {
	catchingUp := uint64(math.MaxUint64)
	if len(progress) > 0 {
		keep = durable + 1
		for _, p := range progress {
			needs := p.Match + 1
			if p.State == tracker.StateSnapshot {
				needs = max(needs, p.PendingSnapshot+1)
			}
			if keep = min(keep, needs); p.RecentActive {
				catchingUp = min(catchingUp, needs)
			}
		}
		keep -= min(keep, spare)
	}
	if last > most {
		least := last - most
		if !hard {
			least = min(least, catchingUp)
		}
		keep = max(keep, least)
	}
	return keep
}
