package command

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
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
	if err != nil {
		return nil, invalidConfig(err)
	}
	if err := otherMembers(config, self, "replSetInitiate quorum check failed because not all proposed set members responded affirmatively:"); err != nil {
		return nil, err
	}
	if err := op.initiate(op.Ctx, config, self); err != nil {
		return nil, err
	}
	op.tell("replSetReconfig", bson.Build().Document("new", config.Document()).Doc())
	return b.Doc(), nil
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
	err := op.Replica.Reconfigure(op.Ctx, func(v *replset.View) (*replset.Config, int, error) {
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
		if err == nil {
			err = v.Config.CheckSuccessor(next, force)
		}
		if err != nil {
			return nil, 0, mongoerr.New(mongoerr.NewReplicaSetConfigurationIncompatible, "%s", err)
		}
		if force {
			next.Version = max(next.Version, v.Config.Version+1)
		}
		was, now = v.Config, next
		return next, self, otherMembers(next, self, "Quorum check failed because not enough voting nodes responded:")
	})
	if err == nil {
		op.tell("replSetReconfig", bson.Build().Document("old", was.Document()).Document("new", now.Document()).Doc())
	}
	return bson.EmptyDoc, err
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
	case seconds <= catchUp:
		return nil, mongoerr.New(mongoerr.BadValue, "stepdown period must be longer than secondaryCatchUpPeriodSecs")
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
	if v.State == replset.Removed {
		return nil, mongoerr.New(mongoerr.InvalidReplicaSetConfig, "Our replica set config is invalid or we are not a member of it")
	}
	last := op.Query.Store.LastLogged()
	written := int64(last.Seconds()) * 1000
	b := bson.Build().String("set", v.Config.ID).Date("date", op.Now).Int32("myState", int32(v.State)).Int64("term", v.Term).
		String("syncSourceHost", "").Int32("syncSourceId", -1).Int64("heartbeatIntervalMillis", v.Config.Settings.HeartbeatIntervalMillis).
		Int32("majorityVoteCount", 1).Int32("writeMajorityCount", 1).Int32("votingMembersCount", 1).Int32("writableVotingMembersCount", 1)
	b.Object("optimes")
	for _, time := range [...]struct{ op, wall string }{{"lastCommittedOpTime", "lastCommittedWallTime"}, {"readConcernMajorityOpTime", ""},
		{"appliedOpTime", ""}, {"durableOpTime", ""}, {"writtenOpTime", ""}, {"", "lastAppliedWallTime"}, {"", "lastDurableWallTime"}, {"", "lastWrittenWallTime"}} {
		if time.op != "" {
			appendEntryTime(b, time.op, last, v.Term)
		}
		if time.wall != "" {
			b.Date(time.wall, written)
		}
	}
	b.End().Timestamp("lastStableRecoveryTimestamp", last.Seconds(), last.Counter())
	self := v.Config.Members[v.Self]
	b.Array("members").Object("0").Int32("_id", int32(self.ID)).String("name", self.Host).Double("health", 1).Int32("state", int32(v.State)).
		String("stateStr", v.State.String()).Int32("uptime", int32(clock.Since(op.Clock, op.started)/time.Second))
	appendEntryTime(b, "optime", last, v.Term)
	b.Date("optimeDate", written).Date("lastAppliedWallTime", written).Date("lastDurableWallTime", written).Date("lastWrittenWallTime", written).
		String("syncSourceHost", "").Int32("syncSourceId", -1).String("infoMessage", "")
	if v.State == replset.Primary {
		b.Timestamp("electionTime", uint32(v.ElectedAt/1000), 1).Date("electionDate", v.ElectedAt)
	}
	b.Int32("configVersion", int32(v.Config.Version)).Int32("configTerm", int32(v.Config.Term)).Bool("self", true).
		String("lastHeartbeatMessage", "").End().End()
	return b.Doc(), nil
}

// notAsPrimary is a command about what only a secondary does: code and text are the error of a primary.
func notAsPrimary(code mongoerr.Code, text string) func(*Op, *replset.View) (bson.Doc, error) {
	return func(*Op, *replset.View) (bson.Doc, error) { return nil, mongoerr.New(code, "%s", text) }
}

func appendOplogNote(op *Op) (bson.Doc, error) {
	op.Args.Ignore(op.Name(), "maxClusterTime")
	op.Args.Required("data")
	data := op.Args.Doc("data")
	if err := op.Args.Done(); err != nil {
		return nil, err
	}
	return bson.EmptyDoc, op.Query.Store.LogNote(op.Ctx, data)
}
