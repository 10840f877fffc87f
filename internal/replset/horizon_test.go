package replset

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// away has two members with horizons, which change changes.
func away(change func(a, b *Member)) *Config {
	c := members("a:1", "b:1")
	c.Members[0].Horizons = []Horizon{{"east", "a.east:7"}, {"west", "a.west:7"}}
	c.Members[1].Horizons = []Horizon{{"east", "b.east:7"}, {"west", "b.west:7"}}
	change(&c.Members[0], &c.Members[1])
	return c
}

// TestCheckHorizons: all members are in the same horizons, and no address is there twice.
func TestCheckHorizons(t *testing.T) {
	for _, c := range []struct {
		change    func(a, b *Member)
		own, want string
	}{
		{func(*Member, *Member) {}, "", ""},
		{func(a, b *Member) { a.Horizons, b.Horizons = nil, nil }, "", ""},
		{func(a, _ *Member) { a.Horizons[0].Name = "" }, "Horizons cannot have empty names", ""},
		{func(a, _ *Member) { a.Horizons[0].Name = "__default" }, `Horizon name "__default" is reserved for internal mongodb usage`, ""},
		{func(a, _ *Member) { a.Horizons[0].Name = "west" }, `Duplicate horizon name found "west".`, ""},
		{func(a, _ *Member) { a.Horizons[0].Host = "a.west:8" }, `Duplicate horizon member found "a.west".`, ""},
		{func(a, _ *Member) { a.Horizons[0].Host = "a:8" }, `Duplicate horizon member found "a".`, ""},
		{func(_, b *Member) { b.Horizons = nil }, "",
			"Saw a replica set member with a different horizon mapping than the others.  The following horizons were not universally present: east, west"},
		{func(_, b *Member) { b.Horizons = b.Horizons[:1] }, "",
			"Saw a replica set member with a different horizon mapping than the others.  The following horizons were not universally present: west"},
		{func(_, b *Member) { b.Horizons[0].Host = "a.east:7" }, "",
			"The following hostnames are not unique across all horizons and host specifications in the replica set: a.east:7"},
		{func(_, b *Member) { b.Horizons[0].Host, b.Horizons[1].Host = "a.west:7", "a:1" }, "",
			"The following hostnames are not unique across all horizons and host specifications in the replica set: a:1, a.west:7"},
		{func(_, b *Member) { b.Horizons[0].Host = "a.east:8" }, "", ""},
		{func(_, b *Member) { b.Horizons[0].Host = "10.0.0.1:7" }, "",
			`Found split horizon configuration using IP address, which is disallowed: members.1.horizons contains entry {"east": "10.0.0.1:7"}`},
		{func(_, b *Member) { b.Horizons[0].Host = "[fd00::1]:7" }, "",
			`Found split horizon configuration using IP address, which is disallowed: members.1.horizons contains entry {"east": "[fd00::1]:7"}`},
	} {
		config := away(c.change)
		text := func(err error) string {
			if err == nil {
				return ""
			}
			return err.Error()
		}
		if got := text(config.Members[0].CheckHorizons()); got != c.own {
			t.Errorf("a member: got %q, want %q", got, c.own)
		}
		if got := text(config.Check()); c.own == "" && got != c.want {
			t.Errorf("all: got %q, want %q", got, c.want)
		}
	}
}

// TestHorizonOf: the name by which a client asks tells which addresses it is told, and only a whole name does.
func TestHorizonOf(t *testing.T) {
	c := away(func(*Member, *Member) {})
	for asked, want := range map[string]string{"": "b:1", "a": "b:1", "a.east": "b.east:7", "a.west": "b.west:7", "b.west": "b:1", "a.wes": "b:1", "a.west:7": "b:1"} {
		horizon := c.Members[0].HorizonOf(asked)
		if got := c.Members[1].HostIn(horizon); got != want {
			t.Errorf("%q: got %s, want %s", asked, got, want)
		}
		if got := c.HostIn(horizon, "b:1"); got != want {
			t.Errorf("%q: the primary is %s, want %s", asked, got, want)
		}
	}
	if got := c.HostIn("east", "z:1"); got != "z:1" {
		t.Errorf("who is no member is %s", got)
	}
	want := bson.MustDoc("{east: 'a.east:7', west: 'a.west:7'}")
	if got := c.Document().Lookup("members").Doc().Lookup("0").Doc().Lookup("horizons"); got.Doc().String() != want.String() {
		t.Errorf("got %s", got)
	}
}
