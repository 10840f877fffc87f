package command

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/diskwatch"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// asMember is a command of a member of a replica set; a standalone refuses it with plain.
func asMember(plain func(*Op) (bson.Doc, error), run func(*Op) (bson.Doc, error)) func(*Op) (bson.Doc, error) {
	return func(op *Op) (bson.Doc, error) {
		if op.Replica == nil {
			return plain(op)
		}
		return run(op)
	}
}

// initiated is what needs a configuration.
func initiated(run func(*Op, *replset.View) (bson.Doc, error)) func(*Op) (bson.Doc, error) {
	return func(op *Op) (bson.Doc, error) {
		v := op.Replica.View()
		if op.Router { // the set is this server's own affair
			return nil, mongoerr.New(mongoerr.NoReplicationEnabled, "not running with --replSet")
		}
		if v.Config == nil {
			return nil, mongoerr.New(mongoerr.NotYetInitialized, "no replset config has been received")
		}
		return run(op, v)
	}
}

func invalidConfig(err error) error {
	if e := mongoerr.From(err); e.Code == mongoerr.NodeNotFound || e.Code == mongoerr.AlreadyInitialized {
		return err
	}
	return mongoerr.New(mongoerr.InvalidReplicaSetConfig, "%s", mongoerr.From(err).Message)
}

func replSetInitiate(op *Op) (bson.Doc, error) {
	given := op.Args.Value(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if op.Replica.View().Config != nil {
		return nil, mongoerr.New(mongoerr.AlreadyInitialized, "already initialized")
	}
	b := bson.Build()
	var config *replset.Config
	if given.Type != bson.TypeObject || given.Doc().IsEmpty() {
		config = replset.Default(op.ReplicaSet.Name, op.ReplicaSet.Host, [12]byte{})
		b.String("info2", "no configuration specified. Using a default configuration for the set").String("me", op.ReplicaSet.Host)
	} else {
		var err error
		if config, err = parseInitial(given.Doc()); err != nil {
			return nil, invalidConfig(err)
		}
	}
	config.Settings.ReplicaSetID = newObjectID(op.Now)
	self, err := op.acceptable(op.Ctx, config, "initiate")
	if err == nil {
		err = config.CheckElectable(self)
	}
	if err != nil {
		return nil, invalidConfig(err)
	}
	if config.Settings.CustomizesWriteConcern() {
		return nil, mongoerr.New(mongoerr.IllegalOperation, customizedConcern, "initiate")
	}
	if err := op.checkOthers(op.Ctx, nil, config, self, "replSetInitiate quorum check failed because not all proposed set members responded affirmatively:"); err != nil {
		return nil, err
	}
	keep := func() error {
		err := op.initiate(op.Ctx, config, self)
		if err == nil {
			op.tell("replSetReconfig", bson.Build().Document("new", config.Document()).Doc())
		}
		return err
	}
	if len(config.Members) > 1 {
		return b.Doc(), op.ReplicaSet.Group.Begin(op.Ctx, config, self, keep)
	}
	return b.Doc(), keep()
}

// initiate gives the set its first configuration and has this member be elected.
func (s *Server) initiate(ctx context.Context, c *replset.Config, self int) error {
	if err := s.Replica.Initiate(ctx, c, self, func(v *replset.View) error {
		if v.Config != nil {
			return mongoerr.New(mongoerr.AlreadyInitialized, "already initialized")
		}
		return nil
	}); err != nil {
		return err
	}
	if len(c.Members) > 1 {
		return nil
	}
	return s.Replica.Elect(ctx)
}

// parseInitial reads the configuration that a set begins with: it says less than one that is kept.
func parseInitial(doc bson.Doc) (*replset.Config, error) {
	if v := doc.Lookup("version"); v.IsNumber() && v.TruncInt64() != 1 {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "Configuration used to initiate a replica set must have version 1, but found %d", v.TruncInt64())
	}
	if doc.Lookup("version").IsMissing() {
		doc = bson.Build().Fields(doc).Int32("version", 1).Doc()
	}
	if id := doc.Lookup("settings"); id.Type == bson.TypeObject && id.Doc().Lookup("replicaSetId").Type == bson.TypeObjectID {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "replica set configuration cannot contain 'replicaSetId' field when called from replSetInitiate: { _id: %q }", doc.Lookup("_id").Str())
	}
	c, err := parseReplicaConfig(doc)
	if err != nil {
		return nil, err
	}
	c.Term = 0
	return c, nil
}

func newObjectID(millis int64) (id [12]byte) {
	_, _ = rand.Read(id[:]) // never fails
	binary.BigEndian.PutUint32(id[:], uint32(millis/1000))
	return id
}

func replSetGetConfig(op *Op, v *replset.View) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "$_internalIncludeNewlyAdded")
	status := op.Args.SafeBool("commitmentStatus", false)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	b := bson.Build().Document("config", v.Config.Document())
	if status {
		if v.State != replset.Primary {
			return nil, mongoerr.New(mongoerr.NotWritablePrimary, "commitmentStatus is only supported on primary.")
		}
		b.Bool("commitmentStatus", true)
	}
	return b.Doc(), nil
}

func replSetReconfig(op *Op, _ *replset.View) (bson.Doc, error) {
	doc := op.Args.Doc(op.Name())
	force := op.Args.SafeBool("force", false)
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, mongoerr.New(mongoerr.BadValue, "no configuration specified")
	}
	var was, now *replset.Config
	place := 0
	err := op.reconfigure(func(v *replset.View) (*replset.Config, int, error) {
		if v.State != replset.Primary && !force {
			return nil, 0, mongoerr.New(mongoerr.NotWritablePrimary, "Safe reconfig is only allowed on a writable PRIMARY. Current state %s", v.State)
		}
		next, err := parseReplicaConfig(doc)
		if err != nil {
			return nil, 0, invalidConfig(err)
		}
		if next.Settings.ReplicaSetID == ([12]byte{}) {
			next.Settings.ReplicaSetID = v.Config.Settings.ReplicaSetID
		}
		next.Term = v.Term
		if next.ID != op.ReplicaSet.Name {
			return nil, 0, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "Attempting to reconfigure a replica set with name %s, but command line reports %s; rejecting", next.ID, op.ReplicaSet.Name)
		}
		self, err := op.acceptable(op.Ctx, next, "reconfigure")
		if err == nil && next.Settings.CustomizesWriteConcern() {
			return nil, 0, mongoerr.New(5624102, customizedConcern, "reconfig")
		}
		if err == nil {
			err = v.Config.CheckSuccessor(next, force)
		}
		if err == nil && !force {
			err = next.CheckElectable(self)
		}
		if err != nil {
			return nil, 0, mongoerr.New(mongoerr.NewReplicaSetConfigurationIncompatible, "%s", err)
		}
		if err := op.checkDefaultMode(next); err != nil {
			return nil, 0, err
		}
		if force {
			next.Version = max(next.Version, v.Config.Version+1)
		}
		if err := next.CheckChange(v.Config); err != nil && !force {
			return nil, 0, mongoerr.New(mongoerr.NewReplicaSetConfigurationIncompatible, "%s", err)
		}
		if force && (op.grouped() || len(next.Members) > 1) && len(v.Config.Members)+len(next.Members) > 2 {
			return nil, 0, errForced
		}
		was, now, place = v.Config, next, self
		if err := op.checkOthers(op.Ctx, v.Config, next, self, "Quorum check failed because not enough voting nodes responded:"); err != nil {
			return nil, 0, err
		}
		if !force {
			err = op.checkQuorum(op.Ctx, v.Config, next, self)
		}
		return next, self, err
	})
	if err == nil {
		op.tell("replSetReconfig", bson.Build().Document("old", was.Document()).Document("new", now.Document()).Doc())
	}
	if err == nil && len(now.Members) > 1 {
		if _, _, grouped := op.ReplicaSet.Group.Leader(); !grouped {
			alone := *now
			alone.Members = now.Members[place : place+1]
			kept := func() error { return nil }
			err = op.ReplicaSet.Group.Begin(op.Ctx, &alone, 0, kept) // the others come when it leads
		}
	}
	return bson.EmptyDoc, err
}

// customizedConcern is MongoDB's text; at the begin of a set it ends mongod.
const customizedConcern = "Failed to %s: Replica set config contains customized getLastErrorDefaults, which has been deprecated and is now ignored. " +
	"Use setDefaultRWConcern instead to set a cluster-wide default writeConcern."

// reconfigure gives the set the configuration that next makes, and is waited for as long as the operation lasts.
func (op *Op) reconfigure(next func(*replset.View) (*replset.Config, int, error)) error {
	node := op.Replica
	_, err := storage.Apart(op.patiently(), op.Query.Store, func(ctx context.Context, _ *struct{}) error { return node.Reconfigure(ctx, next) })
	return err
}

// errForced: what a majority has not agreed to could be lost, or be there twice.
var errForced = mongoerr.New(mongoerr.IllegalOperation, "a set of several members takes no forced configuration: nobody knows then what was acknowledged. "+
	"See docs/replica-set.md on what to do when a majority is lost")

// checkOthers makes sure that the members that are new in a configuration could be such. One that a set gets which has begun need not be there yet: it joins when it
// is, and has no vote before. Where one that is there refuses, or a member is to be elsewhere, nobody knows whether it ever could.
func (s *Server) checkOthers(ctx context.Context, old, next *replset.Config, self int, text string) error {
	for i, m := range next.Members {
		switch {
		case m.ArbiterOnly:
			return mongoerr.New(mongoerr.InvalidReplicaSetConfig, "member %s is an arbiter, and this server takes none: give it data, or leave it out", m.Host)
		case m.DelaySecs > 0 || !m.BuildIndexes:
			return mongoerr.New(mongoerr.InvalidReplicaSetConfig, "member %s is to lag behind or to have no indexes, and this server takes no such members", m.Host)
		}
		if i == self || old != nil && old.Index(m.Host) >= 0 {
			continue
		}
		if err := s.ReplicaSet.Group.Check(ctx, next.ID, m); err != nil {
			if _, answered := errors.AsType[*mongoerr.Error](err); old != nil && !answered && !old.Has(m.ID) {
				s.Log.Warn("A member that is added does not answer; it joins when it does", "host", m.Host, "error", err.Error())
				continue
			}
			return mongoerr.New(mongoerr.NodeNotFound, "%s %s failed with %s", text, m.Host, mongoerr.From(err).Message)
		}
	}
	return nil
}

// quorumTime is how long members are waited for that have to answer before a configuration is taken.
const quorumTime = 10 * time.Second

// checkQuorum makes sure that a majority of those is there who vote before and after a configuration comes: where none is, nobody could lead any more, nor
// change that. Those who are to vote and do not yet get their votes one by one when they have caught up.
func (s *Server) checkQuorum(ctx context.Context, old, next *replset.Config, self int) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.Wall(), quorumTime) // it is about the network
	defer cancel()
	voters := 0
	var there, missing []string
	for i, m := range next.Members {
		group := s.ReplicaSet.Group
		if m.Votes == 0 || i != self && (!old.HasVoter(m.ID) || s.grouped() && !group.Votes(m.ID)) {
			continue
		}
		voters++
		if i != self && old.Index(m.Host) >= 0 && !group.Health(m.Host).Up {
			if _, err := group.Ask(ctx, m.Host, bson.MustDoc("{ping: 1, $db: 'admin'}")); err != nil {
				missing = append(missing, m.Host+" failed with "+mongoerr.From(err).Message)
				continue
			}
		}
		there = append(there, m.Host)
	}
	required := voters/2 + 1
	if len(there) >= required {
		return nil
	}
	return mongoerr.New(mongoerr.NodeNotFound, "Quorum check failed because not enough voting nodes responded; required %d but only the following %d voting nodes responded: %s; the following nodes did not respond affirmatively: %s",
		required, len(there), strings.Join(there, ", "), strings.Join(missing, ", "))
}

func replSetStepDown(op *Op, _ *replset.View) (bson.Doc, error) {
	a := op.Args
	force := a.SafeBool("force", false)
	seconds := int64(60)
	if v := a.Value(op.Name()); v.IsNumber() {
		if n := v.TruncInt64(); n != 0 {
			seconds = n
		}
	}
	catchUp, given := a.Int("secondaryCatchUpPeriodSecs")
	if err := a.Done(); err != nil {
		return nil, err
	}
	if !given && !force {
		catchUp = 10
	}
	switch {
	case seconds < 0:
		return nil, mongoerr.New(mongoerr.BadValue, "stepdown period must be a positive integer")
	case catchUp < 0:
		return nil, mongoerr.New(mongoerr.BadValue, "secondaryCatchUpPeriodSecs period must be a positive or absent")
	case seconds < catchUp:
		return nil, mongoerr.New(mongoerr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
	}
	if op.grouped() {
		if op.Replica.View().State != replset.Primary {
			return nil, mongoerr.New(mongoerr.NotWritablePrimary, "not primary so can't step down")
		}
		err := op.ReplicaSet.Group.StepDown(op.Ctx, time.Duration(catchUp)*time.Second, time.Duration(seconds)*time.Second, force)
		if err != nil {
			return nil, mongoerr.New(mongoerr.ExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the replSetStepDown command with the argument {force: true} to force node to step down.",
				op.Clock.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
		}
		return bson.EmptyDoc, nil
	}
	err := op.Replica.StepDown(op.Ctx, time.Duration(seconds)*time.Second, func(v *replset.View) error {
		switch {
		case v.State != replset.Primary:
			return mongoerr.New(mongoerr.NotWritablePrimary, "not primary so can't step down")
		case !force:
			return mongoerr.New(mongoerr.ExceededTimeLimit, "No electable secondaries caught up as of %s. Please use the replSetStepDown command with the argument {force: true} to force node to step down.",
				op.Clock.Now().UTC().Format("2006-01-02T15:04:05.000-0700"))
		}
		return nil
	})
	if err == nil {
		op.Sessions.AbortAll(op.stopper(mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")))
	}
	return bson.EmptyDoc, err
}

func replSetFreeze(op *Op, _ *replset.View) (bson.Doc, error) {
	seconds, _ := op.Args.Int(op.Name())
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	if seconds < 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Freezing a node requires a non-negative number of seconds")
	}
	b := bson.Build()
	if seconds == 0 {
		b.String("info", "unfreezing")
	} else if seconds == 1 {
		b.String("warning", "you really want to freeze for only 1 second?")
	}
	if op.grouped() && op.Replica.View().State != replset.Primary {
		op.ReplicaSet.Group.Freeze(time.Duration(seconds) * time.Second)
		return b.Doc(), nil
	}
	err := op.Replica.Freeze(op.Ctx, time.Duration(seconds)*time.Second, func(v *replset.View) error {
		if v.State == replset.Primary {
			return mongoerr.New(mongoerr.NotSecondary, "cannot freeze node when primary or running for election. state: Primary")
		}
		return nil
	})
	return b.Doc(), err
}

func replSetGetStatus(op *Op, v *replset.View) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "initialSync")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	last := op.Query.Store.LastLogged()
	if v.State == replset.Removed {
		return nil, op.removed(v, last)
	}
	syncSource, syncID := "", int32(-1)
	if v.State == replset.Secondary && v.Primary != "" {
		if i := v.Config.Index(v.Primary); i >= 0 {
			syncSource, syncID = v.Primary, int32(v.Config.Members[i].ID)
		}
	}
	voters := op.voters(v.Config)
	majority := majorityOf(voters)
	b := bson.Build().String("set", v.Config.ID).Date("date", op.Now).Int32("myState", int32(v.State)).Int64("term", v.Term).
		String("syncSourceHost", syncSource).Int32("syncSourceId", syncID).Int64("heartbeatIntervalMillis", v.Config.Settings.HeartbeatIntervalMillis).
		Int32("majorityVoteCount", majority).Int32("writeMajorityCount", majority).Int32("votingMembersCount", int32(voters)).Int32("writableVotingMembersCount", int32(voters))
	b.Object("optimes")
	for _, time := range [...]struct{ op, wall string }{{"lastCommittedOpTime", "lastCommittedWallTime"}, {"readConcernMajorityOpTime", ""},
		{"appliedOpTime", ""}, {"durableOpTime", ""}, {"writtenOpTime", ""}, {"", "lastAppliedWallTime"}, {"", "lastDurableWallTime"}, {"", "lastWrittenWallTime"}} {
		if time.op != "" {
			appendEntryTime(b, time.op, last, v.Term)
		}
		if time.wall != "" {
			b.Date(time.wall, wallOf(last))
		}
	}
	b.End().Timestamp("lastStableRecoveryTimestamp", last.Seconds(), last.Counter())
	op.appendElections(b, v)
	b.Array("members")
	for n, i := range v.Config.ByID() {
		b.Object(bson.IndexKey(n))
		if i == v.Self {
			op.appendSelf(b, v, last, syncSource, syncID)
		} else {
			op.appendOther(b, v, i)
		}
		b.End()
	}
	b.End()
	return b.Doc(), nil
}

// voters counts the members whose votes count by now: in a set of several one that was added gets its vote when it has caught up.
func (s *Server) voters(c *replset.Config) (n int) {
	for _, m := range c.Members {
		if m.Votes > 0 && (!s.grouped() || s.ReplicaSet.Group.Votes(m.ID)) {
			n++
		}
	}
	return n
}

// removed is what replSetGetStatus answers where the configuration does not have the member: an error with what there is to say of it.
func (op *Op) removed(v *replset.View, last oplog.Timestamp) error {
	b := bson.Build().Int32("state", int32(v.State)).String("stateStr", v.State.String()).Int32("uptime", int32(op.uptime()/time.Second))
	appendEntryTime(b, "optime", last, v.Term)
	appendEntryTime(b, "optimeWritten", last, v.Term)
	appendPlaceDate(b, "", last)
	appendPlaceDate(b, "Written", last)
	b.String("lastHeartbeatMessage", "").String("syncSourceHost", "").Int32("syncSourceId", -1).String("infoMessage", op.aboutOwnDisk())
	return mongoerr.New(mongoerr.InvalidReplicaSetConfig, "Our replica set config is invalid or we are not a member of it").WithExtra(b.Doc())
}

// appendPlaceDate appends of when the last entry of the oplog is that a member has.
func appendPlaceDate(b *bson.Builder, what string, at oplog.Timestamp) {
	b.Date("optime"+what+"Date", wallOf(at))
}

// appendWallTimes appends when what a member has last was written: what it has is on its disk.
func appendWallTimes(b *bson.Builder, at oplog.Timestamp) {
	for _, name := range [...]string{"lastAppliedWallTime", "lastDurableWallTime", "lastWrittenWallTime"} {
		b.Date(name, wallOf(at))
	}
}

// wallOf is the time of an entry, in milliseconds since the epoch.
func wallOf(at oplog.Timestamp) int64 { return int64(at.Seconds()) * 1000 }

// appendSelf appends what replSetGetStatus says of this member.
func (op *Op) appendSelf(b *bson.Builder, v *replset.View, last oplog.Timestamp, syncSource string, syncID int32) {
	self := v.Config.Members[v.Self]
	b.Int32("_id", int32(self.ID)).String("name", self.Host).Double("health", 1).Int32("state", int32(v.State)).
		String("stateStr", v.State.String()).Int32("uptime", int32(op.uptime()/time.Second))
	appendEntryTime(b, "optime", last, v.Term)
	appendPlaceDate(b, "", last)
	appendEntryTime(b, "optimeWritten", last, v.Term)
	appendPlaceDate(b, "Written", last)
	appendWallTimes(b, last)
	b.String("syncSourceHost", syncSource).Int32("syncSourceId", syncID).String("infoMessage", op.aboutOwnDisk())
	if v.State == replset.Primary {
		b.Timestamp("electionTime", uint32(v.ElectedAt/1000), 1).Date("electionDate", v.ElectedAt)
	}
	b.Int32("configVersion", int32(v.Config.Version)).Int32("configTerm", int32(v.Config.Term)).Bool("self", true).String("lastHeartbeatMessage", "")
}

func (op *Op) aboutOwnDisk() string {
	s, _ := op.engineStats()
	return aboutDisk(s.Stalled)
}

// aboutDisk is the infoMessage of a member whose disk has brought nothing to its end for a while: nothing else shows that.
func aboutDisk(stalled time.Duration) string {
	if stalled < diskwatch.Patience {
		return ""
	}
	return "the disk hangs: nothing that was to be written has come to its end for " + itoa(int64(stalled/time.Second)) + " seconds"
}

// appendOther appends what it says of another one, as far as this one has heard. Of one that is not there it tells of when that had its last entry.
func (op *Op) appendOther(b *bson.Builder, v *replset.View, i int) {
	m := v.Config.Members[i]
	h := op.ReplicaSet.Group.Health(m.Host)
	b.Int32("_id", int32(m.ID)).String("name", m.Host)
	logged, term, beat, source, sourceID := h.Logged, h.Term, h.SeenAt, "", int32(-1)
	if h.Up {
		b.Double("health", 1).Int32("state", int32(h.State)).String("stateStr", h.State.String()).Int32("uptime", int32(h.UpFor/time.Second))
		if p := v.Config.Index(v.Primary); h.State == replset.Secondary && v.Primary != "" && p >= 0 {
			source, sourceID = v.Primary, int32(v.Config.Members[p].ID)
		}
	} else {
		b.Double("health", 0).Int32("state", 8).String("stateStr", "(not reachable/healthy)").Int32("uptime", 0)
		logged, term, beat, h.Stalled = 0, -1, op.Now, 0
	}
	for _, what := range [...]string{"", "Durable", "Written"} {
		appendEntryTime(b, "optime"+what, logged, term)
	}
	for _, what := range [...]string{"", "Durable", "Written"} {
		appendPlaceDate(b, what, logged)
	}
	appendWallTimes(b, h.Logged)
	b.Date("lastHeartbeat", beat).Date("lastHeartbeatRecv", h.SeenAt).Int64("pingMs", h.Ping.Milliseconds()).String("lastHeartbeatMessage", h.Why).
		String("syncSourceHost", source).Int32("syncSourceId", sourceID).String("infoMessage", aboutDisk(h.Stalled))
	if h.Up && h.State == replset.Primary && h.ElectedAt != 0 {
		b.Timestamp("electionTime", uint32(h.ElectedAt/1000), 1).Date("electionDate", h.ElectedAt)
	}
	if h.Version == 0 {
		b.Int32("configVersion", -1).Int32("configTerm", -1)
		return
	}
	b.Int32("configVersion", int32(h.Version)).Int32("configTerm", int32(v.Config.Term))
}

// ofSecondaries is a command about what only a secondary of MongoDB does. primary is the error of a primary, missing why a secondary does it neither.
func ofSecondaries(primary, missing string) func(*Op, *replset.View) (bson.Doc, error) {
	return func(_ *Op, v *replset.View) (bson.Doc, error) {
		if v.State == replset.Primary {
			return nil, mongoerr.New(mongoerr.NotSecondary, "%s", primary)
		}
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "%s", missing)
	}
}

// abortPrimaryCatchUp is never in time: a member is primary when it has everything.
func abortPrimaryCatchUp(*Op, *replset.View) (bson.Doc, error) {
	return nil, mongoerr.New(mongoerr.IllegalOperation, "The node is not in catch-up mode.")
}

func appendOplogNote(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "maxClusterTime")
	op.Args.Required("data")
	data := op.Args.Doc("data")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.Query.Store.LogNote(op.patiently(), data)
}

func replSetStepUp(op *Op, v *replset.View) (bson.Doc, error) {
	if v.State == replset.Primary {
		return bson.EmptyDoc, nil
	}
	if op.grouped() {
		if v.State != replset.Secondary { // it has no copy of the set yet, which would interrupt the election
			return nil, errElection
		}
		if err := op.ReplicaSet.Group.StepUp(op.Ctx); err != nil {
			return nil, errElection
		}
		return bson.EmptyDoc, nil
	}
	if err := op.Replica.Elect(op.Ctx); err != nil {
		return nil, err
	}
	if op.Replica.View().State != replset.Primary {
		return nil, errElection
	}
	return bson.EmptyDoc, nil
}

var errElection = mongoerr.New(mongoerr.CommandFailed, "Election failed.")
