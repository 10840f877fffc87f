package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
)

// parseReplicaConfig reads a new configuration of a replica set. Beyond the types and the bounds of numbers what it says is not checked.
func parseReplicaConfig(doc bson.Doc) (*replset.Config, error) {
	c, err := readReplicaConfig(doc)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Version < 1:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'version' value must be > 0, actual value '%d'", c.Version)
	case c.Version > replset.MaxVersion:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'version' value must be < %d, actual value '%d'", replset.MaxVersion+1, c.Version)
	case c.Term < -1:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'term' value must be >= -1, actual value '%d'", c.Term)
	case c.Term > replset.MaxVersion:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'term' value must be < %d, actual value '%d'", replset.MaxVersion+1, c.Term)
	case c.ProtocolVersion != 1:
		return nil, mongoerr.New(mongoerr.BadValue, "BSON field 'ReplSetConfig.protocolVersion' value must be equal to 1, actual value '%d'", c.ProtocolVersion)
	}
	return c, checkReplicaSettings(&c.Settings)
}

// readReplicaConfig reads a configuration that a member has kept, too: no bound of a number ends the server that meets it there. Nothing of the
// result lies in doc, whose memory may be a request's.
func readReplicaConfig(doc bson.Doc) (*replset.Config, error) {
	a := NewArgs("ReplSetConfig", doc.Clone())
	c := replset.Default("", "", [12]byte{})
	c.Members = nil
	a.Required("_id", "version", "members")
	c.ID, _ = a.String("_id")
	c.Version = a.exactOr("version", 1)
	c.Term = a.exactOr("term", -1)
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
	return c, readReplicaSettings(settings, &c.Settings)
}

// exactOr reads an optional number that an int64 holds as it is.
func (a *Args) exactOr(key string, def int64) int64 {
	v := a.Value(key)
	switch {
	case v.IsMissing():
		return def
	case !v.IsNumber():
		a.Fail(mongoerr.New(mongoerr.TypeMismatch, "Expected a number, got value of type %s for field %s", v.Type, key))
		return def
	}
	n := v.TruncInt64()
	if float64(n) != v.AsDouble() {
		a.Fail(mongoerr.New(4708900, "Expected field \"%[1]s\" to have a value exactly representable as a 64-bit integer, but found %[1]s: %s", key, v))
	}
	return n
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
	horizons := a.Doc("horizons")
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
	m.Host = replset.WithPort(host)
	return m, readHorizons(horizons, &m)
}

// readHorizons reads a member's addresses for clients of other networks; there are none where doc is nil.
func readHorizons(doc bson.Doc, m *replset.Member) error {
	if doc == nil {
		return nil
	}
	if doc.IsEmpty() {
		return mongoerr.New(mongoerr.BadValue, "The horizons field cannot be empty, if present.")
	}
	for it := doc.Iter(); it.Next(); {
		v := it.Value()
		if v.Type != bson.TypeString {
			return mongoerr.New(mongoerr.TypeMismatch, "horizons.%s field has non-string value of type %s", it.Key(), v.Type)
		}
		if err := replset.CheckHost(v.Str()); err != nil {
			return mongoerr.New(mongoerr.FailedToParse, "%s", err)
		}
		m.Horizons = append(m.Horizons, replset.Horizon{Name: it.Key(), Host: replset.WithPort(v.Str())})
	}
	slices.SortStableFunc(m.Horizons, func(a, b replset.Horizon) int { return strings.Compare(a.Name, b.Name) })
	if err := m.CheckHorizons(); err != nil {
		return mongoerr.New(mongoerr.BadValue, "%s", err)
	}
	return nil
}

func readReplicaSettings(doc bson.Doc, s *replset.Settings) error {
	if doc == nil {
		return nil
	}
	a := NewArgs("ReplSetConfigSettings", doc)
	s.ChainingAllowed = a.SafeBool("chainingAllowed", s.ChainingAllowed)
	for _, n := range settingNumbers(s) {
		*n.v = a.exactOr(n.key, *n.v)
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

// settingNumber is a number of the settings, which is least or more.
type settingNumber struct {
	key   string
	v     *int64
	least int64
	bound string
}

func settingNumbers(s *replset.Settings) []settingNumber {
	return []settingNumber{
		{"heartbeatIntervalMillis", &s.HeartbeatIntervalMillis, 1, "> 0"}, {"heartbeatTimeoutSecs", &s.HeartbeatTimeoutSecs, 1, "> 0"},
		{"electionTimeoutMillis", &s.ElectionTimeoutMillis, 1, "> 0"}, {"catchUpTimeoutMillis", &s.CatchUpTimeoutMillis, -1, ">= -1"},
		{"catchUpTakeoverDelayMillis", &s.CatchUpTakeoverDelayMillis, -1, ">= -1"},
	}
}

func checkReplicaSettings(s *replset.Settings) error {
	for _, n := range settingNumbers(s) {
		if *n.v < n.least {
			return mongoerr.New(mongoerr.BadValue, "BSON field '%s' value must be %s, actual value '%d'", n.key, n.bound, *n.v)
		}
	}
	return nil
}

// checkKept makes sure that a configuration is what is read where it is kept: a member that could not read its own would not start again.
func checkKept(kept bson.Doc) error {
	again, err := parseReplicaConfig(kept)
	if err != nil {
		return fmt.Errorf("read the configuration again: %w", err)
	}
	if !bytes.Equal(again.Document(), kept) {
		return mongoerr.New(mongoerr.InvalidReplicaSetConfig, "the configuration would be kept as another: %s", again.Document())
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
