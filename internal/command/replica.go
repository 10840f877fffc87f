package command

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// ReplicaSet is what a Server has to know to be a member of a replica set.
type ReplicaSet struct {
	// Name is the set's name, as the server was started with it.
	Name string
	// Host is the server's own address in a configuration that nobody has given: "host:port".
	Host string
	// IsSelf, unless nil, says whether another address is this server's, too.
	IsSelf func(ctx context.Context, address string) bool
	// Term is that of the entries that the store writes into the oplog (storage.Options.Oplog); the Server keeps it up to date.
	Term *atomic.Int64
	// Topology is the process's; nil: the Server's own.
	Topology *replset.Topology
	// Group are the other members.
	Group Group
	// OplogBytes is how large the oplog may be, and OplogMinHours how old its entries become at least, whatever its size.
	OplogBytes    int64
	OplogMinHours float64
}

// electionKey is the _id of the one document that catalog.ElectionNS has.
var electionKey = bson.ObjectID([12]byte{0xeb, 0xb0})

// replicaStorage keeps the configuration and the elections of a member in its database local.
type replicaStorage struct{ s *Server }

// SaveConfig implements replset.Storage.
func (r replicaStorage) SaveConfig(ctx context.Context, c *replset.Config) error {
	store, now, doc := r.s.Query.Store, clock.Millis(r.s.Clock), c.Document()
	if err := checkKept(doc); err != nil {
		return err
	}
	first := r.s.Replica.View().Config == nil
	if first {
		if err := store.CreateOplog(ctx, r.s.ReplicaSet.OplogBytes); err != nil {
			return err
		}
	}
	if err := r.s.Query.StoreSetting(ctx, catalog.ReplicaConfigNS, doc, now); err != nil {
		return err
	}
	note := bson.Build().String("msg", "Reconfig set").Number("version", c.Version).Doc()
	if first {
		note = bson.Build().String("msg", "initiating set").Doc()
	}
	err := store.LogNote(ctx, note)
	if err != nil && ctx.Err() != nil { // the configuration is stored, whoever waits
		err = store.LogNote(context.WithoutCancel(ctx), note)
	}
	return err
}

// SaveElection implements replset.Storage.
func (r replicaStorage) SaveElection(ctx context.Context, term int64) error {
	r.s.noteElection(term)
	doc := bson.Build().Value("_id", electionKey).Int64("term", term).Int64("candidateIndex", int64(r.s.Replica.View().Self)).Doc()
	if err := r.s.Query.StoreSetting(ctx, catalog.ElectionNS, doc, clock.Millis(r.s.Clock)); err != nil {
		return err
	}
	r.s.ReplicaSet.Term.Store(term)
	return r.s.Query.Store.LogNote(ctx, bson.Build().String("msg", "new primary").Doc())
}

// restoreReplica gives the member what it has kept, if it has.
func (s *Server) restoreReplica(ctx context.Context) error {
	stored, err := s.Query.AnySetting(ctx, catalog.ReplicaConfigNS)
	if err != nil || stored == nil {
		return err
	}
	config, err := readReplicaConfig(stored)
	if err != nil {
		return err
	}
	if s.Query.Store.Options().Follows {
		return nil // NoteGroup looks at the rest
	}
	if err := s.Query.Store.CreateOplog(ctx, s.ReplicaSet.OplogBytes); err != nil { // somebody may have dropped it meanwhile, without --replSet
		return err
	}
	election, err := s.Query.StoredSetting(ctx, catalog.ElectionNS, electionKey)
	if err != nil {
		return err
	}
	term := int64(0)
	if v := election.Lookup("term"); v.Type == bson.TypeInt64 {
		term = v.Int64()
	}
	s.ReplicaSet.Term.Store(term)
	s.Replica.Restore(config, s.place(config, func() int { return s.restoredIndex(ctx, config) }), term)
	return nil
}

// place is which member of the configuration that it has kept the server is, -1 when it is none.
func (s *Server) place(c *replset.Config, byAddress func() int) int {
	if c.ID != s.ReplicaSet.Name {
		if !c.Same(s.Replica.View().Config) { // which has been told of
			s.StartupLog.Warn("Local replica set configuration document set name differs from command line set name; waiting for reconfig or remote heartbeat",
				"localConfigSetName", c.ID, "commandLineSetName", s.ReplicaSet.Name)
		}
		return -1
	}
	return s.ReplicaSet.Group.Place(c, byAddress)
}

// restoredIndex is which member of the configuration that it has kept the server is by its address, -1 when it is none. Of a set of one it is that one,
// wherever the configuration says that it is.
func (s *Server) restoredIndex(ctx context.Context, c *replset.Config) int {
	switch i := s.index(ctx, c); {
	case i >= 0 && len(c.Members) > 1 && !s.grouped():
		s.StartupLog.Warn("The replica set's configuration has other members, and their log is not in the data directory: it was restored, or the log was removed. "+
			"The member is RECOVERING: nobody reads or writes it. rs.reconfig() with force: true and this member alone in the configuration begins a set of one with what is here", "members", len(c.Members))
		return i
	case i < 0 && len(c.Members) == 1:
		s.StartupLog.Warn("Locally stored replica set configuration does not have a valid entry for the current node; it goes on as the one member that the set has, "+
			"which clients look for at the address that the configuration says. rs.reconfig() changes that", "configured", c.Members[0].Host, "host", s.ReplicaSet.Host)
		return 0
	default:
		return i
	}
}

// Standby is why the server lets nothing go by itself, being no primary of the replica set whose data it has; "" when it is, or there
// is no such set.
func (s *Server) Standby() string {
	switch {
	case s.Replica == nil:
		return s.standby
	case s.Replica.View().State != replset.Primary:
		return "the server is not the primary of its replica set"
	}
	return ""
}

// StandAlone looks whether a server without a replica set has the data of a member of one. It says so then, and lets nothing of that go.
func (s *Server) StandAlone(ctx context.Context) error {
	config, err := s.Query.AnySetting(ctx, catalog.ReplicaConfigNS)
	if err != nil || config == nil {
		return err
	}
	s.standby = "the data is a replica set's, and the server was started without --replSet"
	s.StartupLog.Warn("Document(s) exist in 'system.replset', but started without --replSet. Database contents may appear inconsistent with the writes that " +
		"were visible when this node was running as part of a replica set. Restart with --replSet unless you are doing maintenance and no other clients are " +
		"connected. The TTL collection monitor will not start because of this. For more info see http://dochub.mongodb.org/core/ttlcollections")
	return nil
}

// index is which member of a configuration this one is by its address, -1 for none. Where its log has told which it is, at which address, no names
// are looked up.
func (s *Server) index(ctx context.Context, c *replset.Config) int {
	if i := c.Index(s.ReplicaSet.Host); i >= 0 || s.ReplicaSet.IsSelf == nil {
		return i
	}
	if v := s.Replica.View(); v.Config != nil && v.Self >= 0 && s.grouped() {
		if i := c.Index(v.Host()); i >= 0 {
			return i
		}
	}
	return slices.IndexFunc(c.Members, func(m replset.Member) bool { return s.ReplicaSet.IsSelf(ctx, m.Host) })
}

// InitiateReplicaSet begins a set of this member alone, unless one has begun.
func (s *Server) InitiateReplicaSet(ctx context.Context) error {
	if s.Replica.View().Config != nil {
		return nil
	}
	return s.initiate(ctx, replset.Default(s.ReplicaSet.Name, s.ReplicaSet.Host, newObjectID(clock.Millis(s.Clock))), 0)
}

// checkMember refuses what the member may not do in its state. The database local is always there to read, and to write as long as its log is
// nobody else's.
func (op *Op) checkMember() error {
	if op.Replica == nil || op.DB == catalog.LocalDB && !(op.Command.writes() && op.follows()) {
		return nil
	}
	if op.readsBeside {
		return op.notBeside()
	}
	v := op.Replica.View()
	c := op.Command
	switch {
	case v.State == replset.Primary:
		return nil
	case op.multi && v.State == replset.Secondary:
		return mongoerr.New(mongoerr.NotWritablePrimary, "cannot run a transaction on a secondary")
	case c.writes() && !slices.Contains(everywhere, c.Name), op.writesItsResult():
		return mongoerr.New(mongoerr.NotWritablePrimary, "not primary")
	case !c.ReadConcern && !slices.Contains(readers, c.Name):
		return nil
	case !op.secondaryOK && !slices.Contains(onCursors, c.Name) && !slices.Contains(measures, c.Name):
		return mongoerr.New(mongoerr.NotPrimaryNoSecondaryOk, "not primary and secondaryOk=false")
	case v.State != replset.Secondary:
		return mongoerr.New(mongoerr.NotPrimaryOrSecondary, "node is not in primary or recovering state")
	}
	return nil
}

// everywhere are commands with a write concern that are about the member itself, and readers those that read and take no read concern. onCursors work on
// cursors that there are, whoever is primary: where they are gone a driver resumes its change stream, which it gives up for NotPrimaryNoSecondaryOk.
// measures are about this member's data, and need no consent to that.
var (
	everywhere = []string{"replSetInitiate", "fsync", "setParameter", "compact"}
	onCursors  = []string{"getMore", "killCursors"}
	measures   = []string{"collStats", "dbHash", "dbStats"}
	readers    = []string{"listCollections", "listIndexes", "listDatabases", "explain", "killCursors"}
)

// clusterTime is the newest time of the logical clock that the server knows of.
func (s *Server) clusterTime() oplog.Timestamp { return s.Query.Store.ClusterTime() }

// knownTime is clusterTime, 0 on a standalone and before there is an oplog.
func (op *Op) knownTime() uint64 {
	if op.Replica == nil || op.Query.Store.LastLogged() == 0 {
		return 0
	}
	return uint64(op.clusterTime())
}

// maxClockDrift is how many seconds a client's cluster time may be ahead of the server's clock: maxAcceptableLogicalClockDriftSecs.
const maxClockDrift = 365 * 24 * 3600

// checkClusterTime refuses a $clusterTime that is none.
func (a *Args) checkClusterTime(v bson.Value) error {
	if v.IsMissing() {
		return nil
	}
	if v.Type != bson.TypeObject {
		return a.wrongType("$clusterTime", v.Type, []bson.Type{bson.TypeObject})
	}
	if v.Doc().Lookup("clusterTime").Type == bson.TypeTimestamp && v.Doc().Lookup("signature").Type == bson.TypeObject {
		return nil
	}
	inner := NewArgs(a.path+".$clusterTime", v.Doc())
	inner.typed("clusterTime", bson.TypeTimestamp)
	inner.typed("signature", bson.TypeObject)
	inner.Required("clusterTime", "signature")
	return inner.Err()
}

// hearClusterTime reads $clusterTime, which the server's own is not behind from then on.
func (op *Op) hearClusterTime(v bson.Value) error {
	if v.IsMissing() {
		return nil
	}
	at, signature := v.Doc().Lookup("clusterTime"), v.Doc().Lookup("signature")
	seconds, counter := at.Timestamp()
	op.knows = oplog.NewTimestamp(seconds, counter)
	grouped := op.grouped()
	if grouped {
		if told := signature.Doc().Lookup("keyId"); told.Type == bson.TypeInt64 {
			op.hearTime(told.Int64())
		}
	}
	if op.knows <= op.clusterTime() {
		return nil // no news, as a rule
	}
	if now := clock.Millis(op.Clock) / 1000; grouped {
		if int64(seconds) > now+maxAhead/1000 {
			return nil // nobody of this set can have told it
		}
	} else if int64(seconds) > now+maxClockDrift {
		return mongoerr.New(mongoerr.ClusterTimeFailsRateLimiter, "New cluster time, %d, is too far from this node's wall clock time, %d.", seconds, now)
	}
	if !op.May(privilege.Cluster(), privilege.AdvanceClusterTime) {
		return nil // a time that is not ours: nobody signs it, and anybody could send it
	}
	op.Query.Store.HearClusterTime(op.knows)
	return nil
}

// hearTime takes note of the time that the client was told. Where it is later than the set's, the set's becomes that: whoever is asked next
// shall not be behind it.
func (op *Op) hearTime(millis int64) {
	op.toldTime = millis
	if ahead := millis - clock.Millis(op.Clock); ahead > 0 && ahead <= maxAhead && op.May(privilege.Cluster(), privilege.AdvanceClusterTime) {
		op.ReplicaSet.Group.HearTime(millis)
	}
}

// What has expired for a client once stays so for it, whichever member of the set it asks. So each reply tells a time that its operation has
// hidden by, or a later one, in the key of the signature, which nobody needs to sign with and clients hand back as it is. An operation that only
// reads hides by that time where it is later than the member's own. It may have waited before it read, and has not seen what was deleted meanwhile:
// the time is the member's when the operation has ended, not when it began.
//
// A client keeps, of all that its threads are told by all members, what comes with the latest cluster time. So of two replies the one with the
// later cluster time must not tell an earlier time (tellTime): the cluster time is that of the last entry or of the told time, not one that other
// clients have brought, and the told time is not before it; and news come with a later cluster time than the client has sent. A client may bring
// to a primary what one before it has told, whose clock was ahead: then the set's time is that (Group.HearTime), before an entry may have the
// cluster time that came with it.

// maxAhead is how many milliseconds a told time may be ahead of the member's own. Where it is further the member waits. A primary is never that far
// ahead of what a majority knows, so that the time comes, if it is one of this set: with what the member lags behind, or with the next that its primary
// tells, or, where it only believes to lead, with the end of that. When it has not come by toldPatience, a member that leads, or has what its
// primary has, knows better than the client.
const (
	maxAhead     = 10_000
	toldPatience = 2 * time.Second
)

// followTold has an operation that only reads see nothing that its client has seen expired.
func (op *Op) followTold() error {
	if op.toldTime <= op.Now || !op.grouped() || op.multi || op.Command.writes() || op.writesItsResult() {
		return nil
	}
	began := clock.Monotonic(clock.Wall())
	for op.toldTime-op.Now > maxAhead {
		if clock.Monotonic(clock.Wall())-began >= toldPatience && op.ReplicaSet.Group.IsCurrent() {
			return nil
		}
		if err := clock.Wait(op.Ctx, clock.Wall(), toldInterval); err != nil {
			return context.Cause(op.Ctx)
		}
		if err := op.checkMember(); err != nil { // it has been removed meanwhile, and hears of no time
			return err
		}
		op.Now = clock.Millis(op.Clock)
	}
	if op.toldTime <= op.Now {
		return nil
	}
	op.Now = max(op.Now, op.toldTime)
	op.Ctx = storage.NotBefore(op.Ctx, op.Now)
	return nil
}

// toldInterval is how often is looked whether the primary's time has come.
const toldInterval = 50 * time.Millisecond

// noHash signs the cluster time where nobody has a key to sign with.
var noHash [20]byte

// appendTimes appends $clusterTime and operationTime, which each reply of a member has that has begun to write an oplog.
func (op *Op) appendTimes(b *bson.Builder) {
	if op.Replica == nil {
		return
	}
	last := op.Query.Store.LastLogged()
	if last == 0 {
		return
	}
	now, told := op.clusterTime(), int64(0)
	if op.grouped() {
		now, told = op.tellTime(last)
	}
	b.Object("$clusterTime").Timestamp("clusterTime", now.Seconds(), now.Counter()).
		Object("signature").Binary("hash", 0, noHash[:]).Int64("keyId", told).End().End().
		Timestamp("operationTime", last.Seconds(), last.Counter())
}

// tellTime is the cluster time that a reply tells, and the time beside it; last is the cluster time of the last entry.
func (op *Op) tellTime(last oplog.Timestamp) (cluster oplog.Timestamp, told int64) {
	now := max(clock.Millis(op.Clock), op.ReplicaSet.Group.SeenTime())
	told = max(now, op.Now)
	if op.toldTime-told <= maxAhead { // what hides by the operation's own time is no news to who knows a later one
		told = max(told, op.toldTime)
	}
	// The member's own time counts for everybody; a time that the client brought goes back to it alone.
	op.Query.Store.HearClusterTime(oplog.TimestampAt(min(told, now)))
	cluster = max(last, oplog.TimestampAt(told), op.knows)
	if at := oplog.Timestamp(op.readsAt()); at.Millis() <= now { // clients take it to another member
		cluster = max(cluster, at)
	}
	if told > op.toldTime && cluster == op.knows {
		cluster++
	}
	return cluster, told
}

// appendOpTime appends what the reply of a write has of the replica set: the election that it is of, and the place of its entry.
func (op *Op) appendOpTime(b *bson.Builder) {
	if op.Replica == nil || op.txn != nil || op.WriteConcern.Unacknowledged {
		return
	}
	v, last := op.Replica.View(), op.Query.Store.LastLogged()
	b.ObjectID("electionId", replset.ElectionID(max(v.Term, 0)))
	appendEntryTime(b, "opTime", last, v.Term)
}

func appendEntryTime(b *bson.Builder, key string, at oplog.Timestamp, term int64) {
	b.Object(key).Timestamp("ts", at.Seconds(), at.Counter()).Int64("t", term).End()
}

// readClusterTimes reads the times that a read concern asks for.
func (op *Op) readClusterTimes(a *Args, level string, after, at bson.Value) {
	switch {
	case !after.IsMissing() && !at.IsMissing():
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency"))
	case !at.IsMissing() && level != "snapshot":
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "atClusterTime field can be set only if level is equal to snapshot"))
	case !at.IsMissing():
		op.at = oplog.NewTimestamp(at.Timestamp())
	case !after.IsMissing() && (level == "linearizable" || level == "available"):
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "afterClusterTime field can be set only if level is equal to majority, local, or snapshot"))
	case !after.IsMissing():
		op.after = oplog.NewTimestamp(after.Timestamp())
	}
}

// awaitClusterTime returns when the server has what was written up to the time that the read concern asks for. It writes everything
// itself, so what it has not got has not been written: a note moves its time on.
func (op *Op) awaitClusterTime() error {
	store := op.Query.Store
	if op.grouped() && op.after > op.clusterTime() && op.Replica.View().State == replset.Primary {
		if err := op.awaitRead(); err != nil { // another one is primary by now, whose clock is ahead
			return err
		}
	}
	now := op.clusterTime()
	switch {
	case op.after <= store.LastLogged():
		return nil
	case op.follows():
		return op.awaitApplied(op.Ctx, "afterClusterTime", op.after, func() {})
	case op.after > now:
		return timeToCome("afterClusterTime", op.after, now)
	}
	if err := op.enterWrites(); err != nil {
		return err
	}
	defer op.Writes.Leave()
	return op.NoteTime(op.Ctx)
}

// follows says whether the member has what another one writes.
func (op *Op) follows() bool { return op.grouped() && op.Replica.View().State != replset.Primary }

// awaitApplied returns when a member that follows has the entries up to t, which a read concern calls name; look is called whenever there are more. A time
// that nobody can have told is refused, unless the member is behind and may not know better.
func (op *Op) awaitApplied(ctx context.Context, name string, t oplog.Timestamp, look func()) error {
	group, last := op.ReplicaSet.Group, op.Query.Store.LastLogged
	isToCome := func() bool {
		return t > op.clusterTime() && t.Millis() > clock.Millis(op.Clock)+maxAhead && group.IsCurrent()
	}
	err := group.AwaitApplied(ctx, func() bool {
		look()
		return t <= last() || isToCome() || op.checkMember() != nil
	})
	if err == nil {
		err = op.checkMember()
	}
	if err == nil && t > last() {
		err = timeToCome(name, t, op.clusterTime())
	}
	return err
}

func timeToCome(name string, t, now oplog.Timestamp) error {
	return mongoerr.New(mongoerr.InvalidOptions, "readConcern %s value must not be greater than the current clusterTime. Requested clusterTime: { ts: Timestamp(%d, %d) }; current clusterTime: { ts: Timestamp(%d, %d) }",
		name, t.Seconds(), t.Counter(), now.Seconds(), now.Counter())
}
