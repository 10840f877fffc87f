package replset

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
)

// Limits of a configuration.
const (
	MaxMembers       = 50
	maxVotingMembers = 7
	maxMemberID      = 255
	maxPriority      = 1000
	// MaxVersion is the highest version and term of a configuration.
	MaxVersion = 1<<31 - 1
)

// Config is the configuration of a replica set.
type Config struct {
	// ID is the set's name.
	ID      string
	Version int64
	// Term is the term of the primary that made the configuration.
	Term            int64
	Members         []Member
	ProtocolVersion int64
	// MajorityJournals says whether a majority write concern means the journal where it does not say.
	MajorityJournals bool
	// ConfigServer is for servers of another kind than this one.
	ConfigServer bool
	Settings     Settings
}

// Member is one server of the set.
type Member struct {
	ID   int64
	Host string
	// Horizons are the addresses that it has for clients of other networks, in the order of their names.
	Horizons     []Horizon
	ArbiterOnly  bool
	BuildIndexes bool
	Hidden       bool
	Priority     float64
	Tags         bson.Doc
	// DelaySecs is how far a member stays behind on purpose.
	DelaySecs int64
	Votes     int64
}

// Settings are those of the whole set. Those about other members are kept and not used: there are none.
type Settings struct {
	ChainingAllowed            bool
	HeartbeatIntervalMillis    int64
	HeartbeatTimeoutSecs       int64
	ElectionTimeoutMillis      int64
	CatchUpTimeoutMillis       int64
	CatchUpTakeoverDelayMillis int64
	// Modes are write concerns by name: each says of how many different values of a tag the members have to be.
	Modes bson.Doc
	// DefaultWriteConcern is what MongoDB 5.0 took out of use, kept as it came.
	DefaultWriteConcern bson.Doc
	// ReplicaSetID tells sets of the same name apart.
	ReplicaSetID [12]byte
}

// DefaultSettings are those of a configuration that has none.
func DefaultSettings() Settings {
	return Settings{ChainingAllowed: true, HeartbeatIntervalMillis: 2000, HeartbeatTimeoutSecs: 10, ElectionTimeoutMillis: 10_000,
		CatchUpTimeoutMillis: -1, CatchUpTakeoverDelayMillis: 30_000, Modes: bson.EmptyDoc,
		DefaultWriteConcern: bson.Build().Int32("w", 1).Int32("wtimeout", 0).Doc()}
}

// NewMember is a member with the properties of one of which nothing else is said.
func NewMember(id int64, host string) Member {
	return Member{ID: id, Host: host, BuildIndexes: true, Priority: 1, Tags: bson.EmptyDoc, Votes: 1}
}

// Default is the configuration of a set of which nobody says anything but where its one member is.
func Default(name, host string, id [12]byte) *Config {
	c := &Config{ID: name, Version: 1, Members: []Member{NewMember(0, host)}, ProtocolVersion: 1, MajorityJournals: true, Settings: DefaultSettings()}
	c.Settings.ReplicaSetID = id
	return c
}

// Document is the configuration as replSetGetConfig shows it and local.system.replset keeps it.
func (c *Config) Document() bson.Doc {
	b := bson.Build().String("_id", c.ID).Number("version", c.Version).Number("term", c.Term).Array("members")
	for i, m := range c.Members {
		b.Object(bson.IndexKey(i))
		m.append(b)
		b.End()
	}
	b.End()
	if c.ConfigServer {
		b.Bool("configsvr", true)
	}
	b.Int64("protocolVersion", c.ProtocolVersion).Bool("writeConcernMajorityJournalDefault", c.MajorityJournals).Object("settings")
	c.Settings.append(b)
	return b.End().Doc()
}

func (m *Member) append(b *bson.Builder) {
	b.Number("_id", m.ID).String("host", m.Host).Bool("arbiterOnly", m.ArbiterOnly).Bool("buildIndexes", m.BuildIndexes).
		Bool("hidden", m.Hidden).Double("priority", m.Priority).Document("tags", m.Tags)
	if len(m.Horizons) > 0 {
		b.Object("horizons")
		for _, h := range m.Horizons {
			b.String(h.Name, h.Host)
		}
		b.End()
	}
	b.Int64("secondaryDelaySecs", m.DelaySecs).Number("votes", m.Votes)
}

func (s *Settings) append(b *bson.Builder) {
	b.Bool("chainingAllowed", s.ChainingAllowed).Number("heartbeatIntervalMillis", s.HeartbeatIntervalMillis).
		Number("heartbeatTimeoutSecs", s.HeartbeatTimeoutSecs).Number("electionTimeoutMillis", s.ElectionTimeoutMillis).
		Number("catchUpTimeoutMillis", s.CatchUpTimeoutMillis).Number("catchUpTakeoverDelayMillis", s.CatchUpTakeoverDelayMillis).
		Document("getLastErrorModes", s.Modes).Document("getLastErrorDefaults", s.DefaultWriteConcern).ObjectID("replicaSetId", s.ReplicaSetID)
}

// Check says what is wrong with the configuration, in MongoDB's words; nil when nothing is.
func (c *Config) Check() error {
	if len(c.Members) == 0 || len(c.Members) > MaxMembers {
		return fmt.Errorf("Replica set configuration contains %d members, but must have at least 1 and no more than  %d", len(c.Members), MaxMembers)
	}
	if err := c.checkHosts(); err != nil {
		return err
	}
	if err := c.checkHorizons(); err != nil {
		return err
	}
	voters, electable := 0, 0
	for i := range c.Members {
		m := &c.Members[i]
		if err := m.check(); err != nil {
			return err
		}
		if m.Votes > 0 {
			voters++
		}
		if !m.ArbiterOnly && m.Priority > 0 {
			electable++
		}
	}
	switch {
	case voters > maxVotingMembers:
		return fmt.Errorf("Replica set configuration contains %d voting members, but must be at least 1 and no more than %d", voters, maxVotingMembers)
	case voters == 0:
		return fmt.Errorf("Replica set configuration must contain at least one voting member")
	case electable == 0:
		return fmt.Errorf("Replica set configuration must contain at least one non-arbiter member with priority > 0")
	}
	return c.Settings.check(c.Members)
}

// checkHosts looks at what members have to be different in, and whether all can reach each other.
func (c *Config) checkHosts() error {
	local := 0
	for i, a := range c.Members {
		if isLocalhost(a.Host) {
			local++
		}
		for j, b := range c.Members[:i] {
			switch {
			case a.ID == b.ID:
				return fmt.Errorf("Found two member configurations with same _id field, members.%d._id == members.%d._id == %d", j, i, a.ID)
			case a.Host == b.Host:
				return fmt.Errorf("Found two member configurations with same host field, members.%d.host == members.%d.host == %s", j, i, a.Host)
			}
		}
	}
	if local != 0 && local != len(c.Members) {
		return fmt.Errorf("Either all host names in a replica set configuration must be localhost references, or none must be; found %d out of %d", local, len(c.Members))
	}
	return nil
}

func isLocalhost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func (m *Member) check() error {
	switch {
	case m.ID < 0 || m.ID > maxMemberID:
		return fmt.Errorf("_id field value of %d is out of range.", m.ID)
	case !(m.Priority >= 0 && m.Priority <= maxPriority): // which NaN is not
		return fmt.Errorf("priority field value of %s is out of range", strconv.FormatFloat(m.Priority, 'g', -1, 64))
	case m.Votes != 0 && m.Votes != 1:
		return fmt.Errorf("votes field value is %d but must be 0 or 1", m.Votes)
	case m.ArbiterOnly && !m.Tags.IsEmpty():
		return fmt.Errorf("Cannot set tags on arbiters.")
	case m.ArbiterOnly && m.Votes == 0:
		return fmt.Errorf("Arbiter must vote (cannot have 0 votes)")
	case m.DelaySecs < 0 || m.DelaySecs > 3600*24*366:
		return fmt.Errorf("secondaryDelaySecs field value of %d seconds is out of range", m.DelaySecs)
	case m.Priority != 0 && m.DelaySecs > 0:
		return fmt.Errorf("priority must be 0 when secondaryDelaySecs is used")
	case m.Priority != 0 && m.Hidden:
		return fmt.Errorf("priority must be 0 when hidden=true")
	case m.Priority != 0 && !m.BuildIndexes:
		return fmt.Errorf("priority must be 0 when buildIndexes=false")
	case m.Priority != 0 && m.Votes == 0:
		return fmt.Errorf("priority must be 0 when non-voting (votes:0)")
	}
	return nil
}

// CustomizesWriteConcern says whether the settings ask for another write concern than a member's for who says none. setDefaultRWConcern does now.
func (s *Settings) CustomizesWriteConcern() bool {
	w, timeout := s.DefaultWriteConcern.Lookup("w"), s.DefaultWriteConcern.Lookup("wtimeout")
	return !w.IsMissing() && !(w.IsNumber() && w.TruncInt64() == 1) || !timeout.IsMissing() && !(timeout.IsNumber() && timeout.TruncInt64() == 0) ||
		!s.DefaultWriteConcern.Lookup("j").IsMissing() || !s.DefaultWriteConcern.Lookup("fsync").IsMissing()
}

func (s *Settings) check(members []Member) error {
	for it := s.Modes.Iter(); it.Next(); {
		for tags := it.Value().Doc().Iter(); tags.Next(); {
			if !hasTag(members, tags.Key()) {
				return fmt.Errorf("No replica set tag key %s in config", tags.Key())
			}
		}
	}
	return nil
}

func hasTag(members []Member, key string) bool {
	for _, m := range members {
		if !m.Tags.Lookup(key).IsMissing() {
			return true
		}
	}
	return false
}

// CheckHost says what is wrong with a member's address, in MongoDB's words; nil when nothing is.
func CheckHost(host string) error {
	name, port := host, ""
	switch {
	case strings.HasPrefix(host, "["):
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return fmt.Errorf("Invalid IPv6 address: %q has no closing ']'", host)
		}
		name = host[1:end]
		if rest := host[end+1:]; rest != "" {
			if rest[0] != ':' {
				return fmt.Errorf("Extraneous characters between ']' and pre-port ':' in %s", host)
			}
			port = rest
		}
	case strings.Count(host, ":") > 1:
		return fmt.Errorf("More than one ':' detected. If this is an ipv6 address, it needs to be surrounded by '[' and ']'; %s", host)
	default:
		if i := strings.IndexByte(host, ':'); i >= 0 {
			name, port = host[:i], host[i:]
		}
	}
	if name == "" {
		return fmt.Errorf("Empty host component parsing HostAndPort from %q", host)
	}
	if port == "" {
		return nil
	}
	n, err := strconv.Atoi(port[1:])
	switch {
	case err != nil:
		return fmt.Errorf("Failed to parse port number in HostAndPort from %q", host)
	case n <= 0 || n > 65535:
		return fmt.Errorf("Port number %d out of range parsing HostAndPort from %q", n, host)
	}
	return nil
}

// defaultPort is that of a member whose address has none, as MongoDB has it.
const defaultPort = ":27017"

// WithPort is a member's address, which CheckHost has found nothing wrong with, as it is kept and shown: with its port.
func WithPort(host string) string {
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return host
	}
	return host + defaultPort
}

// Index is which member has an address, -1 when none has.
func (c *Config) Index(host string) int {
	for i, m := range c.Members {
		if sameHost(m.Host, host) {
			return i
		}
	}
	return -1
}

// ByID are the places of the members in the order of their _ids.
func (c *Config) ByID() []int {
	places := make([]int, len(c.Members))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(c.Members[a].ID, c.Members[b].ID) })
	return places
}

// sameHost says whether two addresses are the same server's. All names of this machine's loopback are one.
func sameHost(a, b string) bool {
	if a == b {
		return true
	}
	_, portA, errA := net.SplitHostPort(a)
	_, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && isLocalhost(a) && isLocalhost(b)
}

// CheckSuccessor says what is wrong with next as what comes after c, in MongoDB's words; nil when nothing is.
func (c *Config) CheckSuccessor(next *Config, force bool) error {
	if next.ID != c.ID {
		return fmt.Errorf("New and old configurations differ in replica set name; old was %s, and new is %s", c.ID, next.ID)
	}
	if !force && next.Version <= c.Version {
		return fmt.Errorf("New replica set configuration version must be greater than old, but %d is not greater than %d for replica set %s", next.Version, c.Version, c.ID)
	}
	if next.Settings.ReplicaSetID != c.Settings.ReplicaSetID {
		return fmt.Errorf("New and old configurations differ in replica set ID; old was %x, and new is %x", c.Settings.ReplicaSetID, next.Settings.ReplicaSetID)
	}
	for _, old := range c.Members {
		for _, m := range next.Members {
			if sameHost(old.Host, m.Host) {
				switch {
				case old.ID != m.ID:
					return fmt.Errorf("New and old configurations both have members with host of %s but in the new configuration the _id field is %d and in the old configuration it is %d for replica set %s", m.Host, m.ID, old.ID, c.ID)
				case old.BuildIndexes != m.BuildIndexes:
					return fmt.Errorf("New and old configurations differ in the setting of the buildIndexes field for member %s; to make this change, remove then re-add the member", m.Host)
				case old.ArbiterOnly != m.ArbiterOnly:
					return fmt.Errorf("New and old configurations differ in the setting of the arbiterOnly field for member %s; to make this change, remove then re-add the member", m.Host)
				}
			}
		}
	}
	return nil
}

// CheckElectable says what is wrong with c for the member that makes it and is to lead by it, in MongoDB's words; nil when nothing is.
func (c *Config) CheckElectable(self int) error {
	if m := c.Members[self]; m.Priority == 0 || m.ArbiterOnly {
		return fmt.Errorf("This node, %s, with _id MemberId(%d) is not electable under the new configuration with {version: %d, term: %d} for replica set %s", m.Host, m.ID, c.Version, c.Term, c.ID)
	}
	return nil
}

// CheckChange says what is wrong with c as what comes right after old, in MongoDB's words: only one voting member may come or go at a time.
func (c *Config) CheckChange(old *Config) error {
	changed := 0
	for _, pair := range [...][2]*Config{{c, old}, {old, c}} {
		for _, m := range pair[0].Members {
			if m.Votes > 0 && !pair[1].HasVoter(m.ID) {
				changed++
			}
		}
	}
	if changed > 1 {
		return fmt.Errorf("Non force replica set reconfig can only add or remove at most 1 voting member.")
	}
	return nil
}

// HasVoter says whether there is a member of an _id that is to vote.
func (c *Config) HasVoter(id int64) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID == id && m.Votes > 0 })
}

// Has says whether there is a member of an _id.
func (c *Config) Has(id int64) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID == id })
}

// TagValues counts the different values of a tag among the members that has picks.
func (c *Config) TagValues(key string, has func(member int64) bool) int64 {
	values := map[string]struct{}{}
	for _, m := range c.Members {
		if v := m.Tags.Lookup(key); !v.IsMissing() && has(m.ID) {
			values[v.String()] = struct{}{}
		}
	}
	return int64(len(values))
}
