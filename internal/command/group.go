package command

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Group are the members of a replica set as the log knows them that they share. A set of one has no such log, and its Group is empty.
type Group interface {
	// Leader says who leads in which term: its address, "" where nobody is known to. ok is false for a set of one.
	Leader() (host string, term int64, ok bool)
	// Place is where a configuration has this member, -1 for nowhere. byAddress tells it by the addresses, and is asked where the log does not say who
	// the member is: it may have to look names up, for long, and in vain.
	Place(c *replset.Config, byAddress func() int) int
	// IsEmpty says that this member has nothing of the set's data yet.
	IsEmpty() bool
	// Check says whether the server at the address of a member could be that of the set called name; nil when it could.
	Check(ctx context.Context, name string, m replset.Member) error
	// Begin begins the log of a set with a configuration, once the others have said that they can be members and keep has kept the configuration. Soon after
	// it returns this Server gives way to another.
	Begin(ctx context.Context, c *replset.Config, self int, keep func() error) error
	// Ask has the member at an address run a command as another member's, and returns its reply.
	Ask(ctx context.Context, host string, command bson.Doc) (bson.Doc, error)
	// Health is what is known of the member at an address.
	Health(host string) Health
	// Elections are the last ones that this member has had a part in.
	Elections() Elections
	// Votes says whether the vote of a member counts, by its _id: one that was added gets its vote when it has caught up.
	Votes(member int64) bool
	// AwaitMembers returns when enough members have the Commit with a number. It is asked with what says whether a member, by its _id, has it.
	AwaitMembers(ctx context.Context, number uint64, enough func(has func(member int64) bool) bool) error
	// AwaitRead returns when this member has all that was committed before, and has heard that it still led then.
	AwaitRead(ctx context.Context) error
	// AwaitApplied returns when done says so, which is asked whenever more was applied, or the member has another place in the set.
	AwaitApplied(ctx context.Context, done func() bool) error
	// HearTime has the time of the set be no earlier than what a client was told, in milliseconds since the epoch, where this member leads.
	HearTime(millis int64)
	// SeenTime is a time by which has been deleted what nobody finds at this member any more, in milliseconds since the epoch: a little later than its
	// database's, while it applies a Commit.
	SeenTime() int64
	// IsCurrent says whether this member leads, or has applied what its primary had a moment ago, and so has its time.
	IsCurrent() bool
	// StepDown has another member take over, which has caught up within a time; with force this one follows either way. It is not elected for
	// some time then.
	StepDown(ctx context.Context, catchUp, notFor time.Duration, force bool) error
	// Freeze keeps the member from being elected for some time.
	Freeze(time.Duration)
	// StepUp has the member be elected, and returns when it is. It may be interrupted by what follows from that.
	StepUp(ctx context.Context) error
}

// grouped says whether the member's set has a log that is shared with others.
func (s *Server) grouped() bool {
	if s.ReplicaSet == nil || s.ReplicaSet.Group == nil {
		return false
	}
	_, _, ok := s.ReplicaSet.Group.Leader()
	return ok
}

// awaitMembers waits for those members that the write concern asks for beside a majority, which has every write in any case. Where it takes
// longer than the write concern says, the write stands.
func (op *Op) awaitMembers() error {
	wc := &op.WriteConcern
	if wc.unsatisfied != nil || !op.grouped() {
		return nil
	}
	number := op.committed
	if number == 0 {
		number = op.Query.Store.LastCommit()
	}
	ctx := op.Ctx
	if wc.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeout(ctx, op.Clock, wc.timeout)
		defer cancel()
	}
	var never *mongoerr.Error
	err := op.ReplicaSet.Group.AwaitMembers(ctx, number, func(has func(int64) bool) (enough bool) {
		enough, never = wc.enough(has)
		return enough || never != nil
	})
	switch {
	case err == nil:
		wc.unsatisfied = never
	case op.Ctx.Err() != nil:
		wc.unsatisfied = mongoerr.From(context.Cause(op.Ctx))
	case ctx.Err() != nil:
		wc.unsatisfied = op.timedOut()
	default:
		return err
	}
	return nil
}

// timedOut is why a write concern is not satisfied within its wtimeout.
func (op *Op) timedOut() *mongoerr.Error {
	return mongoerr.New(mongoerr.WriteConcernTimeout, "waiting for replication timed out").
		WithInfo(bson.Build().Bool("wtimeout", true).Document("writeConcern", op.WriteConcern.shown).Doc())
}

// commitPatience is how long the operation waits for a majority to have what it commits: as long as its write concern says, and as it may take at all. It is
// nil where there are no others to wait for. What is done within applyOps waits as applyOps does.
func (op *Op) commitPatience() *kv.Patience {
	if !op.grouped() {
		return nil
	}
	wc := &op.WriteConcern
	if wc.patience == nil {
		wc.patience = op.Conn.patience
	}
	if wc.patience == nil {
		wc.patience = &kv.Patience{Timeout: wc.timeout, Clock: op.Clock}
	}
	return wc.patience
}

// patiently is the operation's context for a change that it waits for as long as for a write.
func (op *Op) patiently() context.Context {
	if p := op.commitPatience(); p != nil {
		return kv.WithPatience(op.Ctx, p)
	}
	return op.Ctx
}

// leftCommit is closed when it is known what became of a commit that the operation has left, nil where it has left none. Such a write stands, as far as is
// known: its reply has a writeConcernError.
func (op *Op) leftCommit() <-chan struct{} {
	if p := op.WriteConcern.patience; p != nil {
		return p.Settled
	}
	return nil
}

// noteLeft has the reply say why a commit was left.
func (op *Op) noteLeft() {
	switch p := op.WriteConcern.patience; {
	case p == nil || p.Left == nil:
	case p.Left == kv.ErrImpatient:
		op.WriteConcern.unsatisfied = op.timedOut()
	default:
		op.WriteConcern.unsatisfied = mongoerr.From(p.Left)
	}
}

// awaitLinearizable has a read of what is sure to be the latest.
func (op *Op) awaitLinearizable() error {
	if op.Replica == nil || op.ReadConcern.Level != "linearizable" || !op.grouped() {
		return nil
	}
	if op.Replica.View().State != replset.Primary {
		return mongoerr.New(mongoerr.NotWritablePrimary, "cannot satisfy linearizable read concern on non-primary node")
	}
	return op.awaitRead()
}

// awaitRead returns when it is sure that the member was primary while it waited, and has all that any member had shown before.
func (op *Op) awaitRead() error {
	if err := op.ReplicaSet.Group.AwaitRead(op.Ctx); err != nil {
		if op.Ctx.Err() != nil {
			return context.Cause(op.Ctx)
		}
		return mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")
	}
	return nil
}

// writeNoops has the oplog move on although nobody writes, so that who waits for a time on a secondary does not wait for long, until ctx ends.
func (s *Server) writeNoops(ctx context.Context) {
	last := s.Query.Store.LastLogged()
	for clock.Wait(ctx, s.Clock, noopInterval) == nil {
		if now := s.Query.Store.LastLogged(); now != last {
			last = now
			continue
		}
		if err := s.unlocked(s.NoteTime)(ctx); err != nil {
			return // it leads no more
		}
		last = s.Query.Store.LastLogged()
	}
}

// NoteTime has the oplog tell that nothing has happened by now.
func (s *Server) NoteTime(ctx context.Context) error {
	return s.Query.Store.LogNote(ctx, bson.Build().String("msg", "periodic noop").Doc())
}

// noopInterval is mongod's periodicNoopIntervalSecs.
const noopInterval = 10 * time.Second

// Health is what is known of another member.
type Health struct {
	// Up: it has answered lately, at SeenAt in milliseconds since the epoch, and does so for UpFor. Why is why it is not up; "" where nobody has asked.
	Up     bool
	SeenAt int64
	UpFor  time.Duration
	// Ping is how long it takes to answer, about.
	Ping time.Duration
	Why  string
	// ElectedAt is when a primary became that, in milliseconds since the epoch; 0: nobody knows.
	ElectedAt int64
	State     replset.State
	Logged    oplog.Timestamp
	Term      int64
	// Version is that of the configuration that it has; 0 for none.
	Version int64
	// Stalled is for how long its disk has brought nothing to its end.
	Stalled time.Duration
}

// BeginEnd says that the Server is about to give way to another. It is called once.
func (s *Server) BeginEnd() { close(s.ending) }

// Interrupt ends all operations that run, for the reason err.
func (s *Server) Interrupt(err error) {
	s.Ops.Each(func(o *operation.Operation) { o.Kill(err) })
}

// maxTold is how many operations Underway tells of.
const maxTold = 10

// Underway tells of the operations that run, the oldest first, by what they are and where.
func (s *Server) Underway() (told []string) {
	n := 0
	s.Ops.Each(func(o *operation.Operation) {
		if n++; n <= maxTold {
			told = append(told, fmt.Sprintf("%s of %s (opid %d, %d s)", o.Command.FirstKey(), o.NS, o.ID, s.Ops.Micros(o)/1e6))
		}
	})
	if n > maxTold {
		told = append(told, fmt.Sprintf("%d more", n-maxTold))
	}
	return told
}

// Inherit has a connection go on as whom it was in a Server that has given way to this one.
func (c *Conn) Inherit(before *Conn) {
	if before.metadata != nil {
		c.SetMetadata(before.metadata, before.appName)
	}
	if user := before.user.Load(); user != nil {
		c.become(user)
	}
}

// HasLoggedIn says whether the connection is somebody's.
func (c *Conn) HasLoggedIn() bool { return c.user.Load() != nil }

// IsMember says whether the connection has shown to be another member of the replica set.
func (c *Conn) IsMember() bool {
	user := c.user.Load()
	return user != nil && user.IsInternal()
}

// FollowReplicaSet has a member be a secondary of a set whose log has others, for as long as the Server lives.
func (s *Server) FollowReplicaSet(ctx context.Context) error {
	if err := s.restoreReplica(ctx); err != nil {
		return err
	}
	s.isEmpty = s.ReplicaSet.Group.IsEmpty()
	return s.NoteGroup(ctx)
}

// KeepConfig stores the configuration of a set that the server is about to join.
func (s *Server) KeepConfig(ctx context.Context, doc bson.Doc) error {
	if err := checkKept(doc); err != nil {
		return err
	}
	return s.Query.StoreSetting(ctx, catalog.ReplicaConfigNS, doc, clock.Millis(s.Clock))
}

// follower is what the member is as long as another one leads: what it has is not the set's before a copy has come, with which another Server does.
func (s *Server) follower() replset.State {
	if s.isEmpty {
		return replset.Startup2
	}
	return replset.Secondary
}

// NoteGroup looks what has become of the set that the member follows: who is primary, and what the configuration is.
func (s *Server) NoteGroup(ctx context.Context) error {
	host, term, ok := s.ReplicaSet.Group.Leader()
	if !ok || s.Replica.View().State == replset.Primary {
		return nil
	}
	v := s.Replica.View()
	config, self := v.Config, -1
	if last := s.Query.Store.LastCommit(); last != s.noted || config == nil {
		stored, err := s.Query.AnySetting(ctx, catalog.ReplicaConfigNS)
		if err != nil {
			return err
		}
		if s.noted = last; stored != nil {
			if config, err = readReplicaConfig(stored); err != nil {
				return err
			}
		}
	}
	if config != nil {
		self = s.place(config, func() int {
			if config.Same(v.Config) {
				return v.Self
			}
			return s.restoredIndex(ctx, config)
		})
	}
	s.ReplicaSet.Term.Store(term)
	s.Replica.Follow(replset.View{Config: config, Self: self, Term: term, Primary: host, State: s.follower()})
	return nil
}
