package replset

import (
	"math"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

func members(hosts ...string) *Config {
	c := Default("rs", hosts[0], [12]byte{1})
	for i, h := range hosts[1:] {
		c.Members = append(c.Members, NewMember(int64(i+1), h))
	}
	return c
}

// TestCheck: what is wrong with a configuration is said in MongoDB's words.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Members = nil }, "Replica set configuration contains 0 members, but must have at least 1 and no more than  50"},
		{func(c *Config) { c.Members[1].ID = 0 }, "Found two member configurations with same _id field, members.0._id == members.1._id == 0"},
		{func(c *Config) { c.Members[1].Host = "a:1" }, "Found two member configurations with same host field, members.0.host == members.1.host == a:1"},
		{func(c *Config) { c.Members[1].Host = "127.0.0.1:1" }, "Either all host names in a replica set configuration must be localhost references, or none must be; found 1 out of 2"},
		{func(c *Config) { c.Members[0].ID = 256 }, "_id field value of 256 is out of range."},
		{func(c *Config) { c.Members[0].Priority = 1000.5 }, "priority field value of 1000.5 is out of range"},
		{func(c *Config) { c.Members[0].Priority = math.NaN() }, "priority field value of NaN is out of range"},
		{func(c *Config) { c.Members[0].Votes = 2 }, "votes field value is 2 but must be 0 or 1"},
		{func(c *Config) { c.Members[0].Votes = 0 }, "priority must be 0 when non-voting (votes:0)"},
		{func(c *Config) { c.Members[0].Hidden = true }, "priority must be 0 when hidden=true"},
		{func(c *Config) { c.Members[0].BuildIndexes = false }, "priority must be 0 when buildIndexes=false"},
		{func(c *Config) { c.Members[0].DelaySecs = 5 }, "priority must be 0 when secondaryDelaySecs is used"},
		{func(c *Config) { c.Members[0].DelaySecs = -5 }, "secondaryDelaySecs field value of -5 seconds is out of range"},
		{func(c *Config) { c.Members[0].Priority, c.Members[1].Priority = 0, 0 }, "Replica set configuration must contain at least one non-arbiter member with priority > 0"},
		{func(c *Config) { c.Settings.Modes = bson.MustDoc("{m: {dc: 1}}") }, "No replica set tag key dc in config"},
		{func(c *Config) {
			c.Settings.Modes, c.Members[1].Tags = bson.MustDoc("{m: {dc: 1}}"), bson.MustDoc("{dc: 'x'}")
		}, ""},
	} {
		config := members("a:1", "b:1")
		c.change(config)
		got := ""
		if err := config.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestCheckHost(t *testing.T) {
	for host, want := range map[string]string{
		"a": "", "a:1": "", "[::1]": "", "[::1]:5": "", "127.0.0.1:27017": "",
		":::":     "More than one ':' detected. If this is an ipv6 address, it needs to be surrounded by '[' and ']'; :::",
		"":        `Empty host component parsing HostAndPort from ""`,
		":1":      `Empty host component parsing HostAndPort from ":1"`,
		"a:":      `Failed to parse port number in HostAndPort from "a:"`,
		"a:x":     `Failed to parse port number in HostAndPort from "a:x"`,
		"a:0":     `Port number 0 out of range parsing HostAndPort from "a:0"`,
		"a:65536": `Port number 65536 out of range parsing HostAndPort from "a:65536"`,
		"[::1":    `Invalid IPv6 address: "[::1" has no closing ']'`,
		"[::1]x":  "Extraneous characters between ']' and pre-port ':' in [::1]x",
	} {
		got := ""
		if err := CheckHost(host); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}

// TestCheckSuccessor: which configurations may come after another one.
func TestCheckSuccessor(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		force  bool
		want   string
	}{
		{func(c *Config) { c.Version = 2 }, false, ""},
		{func(c *Config) {}, true, ""},
		{func(c *Config) {}, false, "New replica set configuration version must be greater than old, but 1 is not greater than 1 for replica set rs"},
		{func(c *Config) { c.ID = "x" }, false, "New and old configurations differ in replica set name; old was rs, and new is x"},
		{func(c *Config) { c.Version, c.Settings.ReplicaSetID = 2, [12]byte{2} }, false,
			"New and old configurations differ in replica set ID; old was 010000000000000000000000, and new is 020000000000000000000000"},
		{func(c *Config) { c.Version, c.Members[0].ID = 2, 7 }, false,
			"New and old configurations both have members with host of a:1 but in the new configuration the _id field is 7 and in the old configuration it is 0 for replica set rs"},
		{func(c *Config) { c.Version, c.Members[0].ArbiterOnly = 2, true }, false,
			"New and old configurations differ in the setting of the arbiterOnly field for member a:1; to make this change, remove then re-add the member"},
	} {
		next := members("a:1")
		c.change(next)
		got := ""
		if err := members("a:1").CheckSuccessor(next, c.force); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestDocument: replSetGetConfig's document, field by field.
func TestDocument(t *testing.T) {
	want := bson.MustDoc(`{_id: 'rs', version: 1, term: 0, members: [{_id: 0, host: 'a:1', arbiterOnly: false, buildIndexes: true, hidden: false,
		priority: 1.0, tags: {}, secondaryDelaySecs: NumberLong(0), votes: 1}], protocolVersion: NumberLong(1), writeConcernMajorityJournalDefault: true,
		settings: {chainingAllowed: true, heartbeatIntervalMillis: 2000, heartbeatTimeoutSecs: 10, electionTimeoutMillis: 10000,
		catchUpTimeoutMillis: -1, catchUpTakeoverDelayMillis: 30000, getLastErrorModes: {}, getLastErrorDefaults: {w: 1, wtimeout: 0},
		replicaSetId: ObjectId('010000000000000000000000')}}`)
	if got := members("a:1").Document(); got.String() != want.String() {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for a, b := range map[string]string{"localhost:1": "127.0.0.1:1", "[::1]:1": "127.0.0.1:1", "a:1": "a:1"} {
		if members(a).Index(b) != 0 {
			t.Errorf("%s is not found as %s", a, b)
		}
	}
	if members("a:1").Index("a:2") >= 0 || members("localhost:1").Index("localhost:2") >= 0 {
		t.Error("another port is found")
	}
}
