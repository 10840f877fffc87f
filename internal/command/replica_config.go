package command

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// parseReplicaConfig reads the configuration of a replica set. What it says is not checked beyond the types. Nothing of the result lies
// in doc, whose memory may be a request's.
func parseReplicaConfig(doc bson.Doc) (*replset.Config, error) {
	a := NewArgs("ReplSetConfig", doc.Clone())
	c := replset.Default("", "", [12]byte{})
	c.Members = nil
	a.Required("_id", "version", "members")
	c.ID, _ = a.String("_id")
	c.Version = a.wholeOr("version", 1)
	c.Term = a.wholeOr("term", -1)
	c.ProtocolVersion = a.wholeOr("protocolVersion", 1)
	c.MajorityJournals = a.SafeBool("writeConcernMajorityJournalDefault", true)
	c.ConfigServer = a.SafeBool("configsvr", false)
	members, settings := a.Array("members"), a.Doc("settings")
	if err := a.Done(); err != nil {
		return nil, err
	}
	for it := members.Iter(); it.Next(); {
		d, err := a.element("members", it)
		if err != nil {
			return nil, err
		}
		m, err := parseMember(d)
		if err != nil {
			return nil, err
		}
		c.Members = append(c.Members, m)
	}
	switch {
	case c.Version < 1 || c.Version > replset.MaxVersion:
		return nil, mongoerr.New(mongoerr.BadValue, "version field value of %d is out of range", c.Version)
	case c.ProtocolVersion != 1:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'ReplSetConfig.protocolVersion' value must be equal to 1, actual value '%d'", c.ProtocolVersion)
	}
	return c, parseReplicaSettings(settings, &c.Settings)
}

// wholeOr reads an optional whole number.
func (a *Args) wholeOr(key string, def int64) int64 {
	v, ok := a.typed(key, bson.TypeInt64, bson.TypeInt32, bson.TypeDecimal, bson.TypeDouble)
	if !ok {
		return def
	}
	return v.TruncInt64()
}

func parseMember(doc bson.Doc) (replset.Member, error) {
	a := NewArgs("MemberConfig", doc)
	a.Required("_id", "host")
	host, _ := a.String("host")
	m := replset.NewMember(a.wholeOr("_id", 0), host)
	m.ArbiterOnly = a.SafeBool("arbiterOnly", false)
	m.BuildIndexes = a.SafeBool("buildIndexes", true)
	m.Hidden = a.SafeBool("hidden", false)
	priority, given := a.number("priority")
	switch {
	case given:
		m.Priority = priority
	case m.ArbiterOnly:
		m.Priority = 0
	}
	if tags := a.Doc("tags"); tags != nil {
		m.Tags = tags
	}
	m.DelaySecs = a.wholeOr("secondaryDelaySecs", 0)
	m.Votes = a.wholeOr("votes", 1)
	if err := a.Done(); err != nil {
		return m, err
	}
	for it := m.Tags.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeString {
			return m, mongoerr.New(mongoerr.TypeMismatch, "tags.%s field has non-string value of type %s", it.Key(), it.Value().Type)
		}
	}
	if err := replset.CheckHost(host); err != nil {
		return m, mongoerr.New(mongoerr.FailedToParse, "%s", err)
	}
	return m, nil
}

func parseReplicaSettings(doc bson.Doc, s *replset.Settings) error {
	if doc == nil {
		return nil
	}
	a := NewArgs("ReplSetConfigSettings", doc)
	s.ChainingAllowed = a.SafeBool("chainingAllowed", s.ChainingAllowed)
	for _, n := range []struct {
		key   string
		least int64
		v     *int64
	}{
		{"heartbeatIntervalMillis", 1, &s.HeartbeatIntervalMillis}, {"heartbeatTimeoutSecs", 1, &s.HeartbeatTimeoutSecs},
		{"electionTimeoutMillis", 1, &s.ElectionTimeoutMillis}, {"catchUpTimeoutMillis", -1, &s.CatchUpTimeoutMillis},
		{"catchUpTakeoverDelayMillis", -1, &s.CatchUpTakeoverDelayMillis},
	} {
		if *n.v = a.wholeOr(n.key, *n.v); *n.v < n.least {
			a.Fail(mongoerr.New(mongoerr.BadValue, "BSON field '%s' value must be >= %d, actual value '%d'", n.key, n.least, *n.v))
		}
	}
	if modes := a.Doc("getLastErrorModes"); modes != nil {
		s.Modes = modes
	}
	if defaults := a.Doc("getLastErrorDefaults"); defaults != nil {
		s.DefaultWriteConcern = defaults
	}
	if id, ok := a.typed("replicaSetId", bson.TypeObjectID); ok {
		s.ReplicaSetID = id.ObjectID()
	}
	if err := a.Err(); err != nil { // fields that nobody knows are passed over
		return err
	}
	for it := s.Modes.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			return mongoerr.New(mongoerr.TypeMismatch, "Expected getLastErrorModes.%s to be an Object, not %s", it.Key(), it.Value().Type)
		}
		for tags := it.Value().Doc().Iter(); tags.Next(); {
			if !tags.Value().IsNumber() || tags.Value().TruncInt64() < 1 {
				return mongoerr.New(mongoerr.BadValue, "Value for getLastErrorModes.%s.%s must be positive", it.Key(), tags.Key())
			}
		}
	}
	return nil
}

// acceptable looks at a new configuration: whether it is this set's, and whether this server is the one member of it. self is its place.
func (s *Server) acceptable(ctx context.Context, c *replset.Config, verb string) (self int, err error) {
	if c.ID != s.ReplicaSet.Name {
		return 0, errors.New("Attempting to " + verb + " a replica set with name " + c.ID + ", but command line reports " + s.ReplicaSet.Name + "; rejecting")
	}
	if c.ConfigServer {
		return 0, errors.New("Nodes being used for config servers must be started with the --configsvr flag")
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	if self = s.index(ctx, c); self < 0 {
		return 0, errors.New("No host described in new configuration with {version: " + itoa(c.Version) + ", term: " + itoa(c.Term) + "} for replica set " + c.ID + " maps to this node")
	}
	return self, nil
}
