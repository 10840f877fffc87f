package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestConfigOutlivesItsRequest: a configuration stays what it was when the memory of the request that brought it is used for another.
func TestConfigOutlivesItsRequest(t *testing.T) {
	request := bson.MustDoc(`{_id: 'rs', version: 1, members: [{_id: 0, host: 'ebb.example.org:27017', tags: {dc: 'east'}}],
		settings: {getLastErrorModes: {m: {dc: 1}}, getLastErrorDefaults: {w: 'majority', wtimeout: 5}}}`)
	c, err := parseReplicaConfig(request)
	if err != nil {
		t.Fatal(err)
	}
	want := c.Document().String()
	for i := range request {
		request[i] = 'x'
	}
	if got := c.Document().String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestConfigIsReadAsItWasKept: each number that a configuration may have is the same after a restart, and one that it may not have, which an older
// version has kept, ends no server.
func TestConfigIsReadAsItWasKept(t *testing.T) {
	for _, key := range []string{"heartbeatIntervalMillis", "heartbeatTimeoutSecs", "electionTimeoutMillis", "catchUpTimeoutMillis", "catchUpTakeoverDelayMillis"} {
		for _, n := range []int64{1, 1<<31 - 1, 1 << 32, 1<<63 - 1} {
			settings := bson.Build().Int64(key, n).Doc()
			given := bson.Build().Fields(bson.MustDoc(`{_id: 'rs', version: 1, members: [{_id: 0, host: 'ebb.example.org:27017'}]}`)).Document("settings", settings).Doc()
			c, err := parseReplicaConfig(given)
			if err != nil {
				t.Fatal(err)
			}
			kept := c.Document()
			if v := kept.Lookup("settings").Doc().Lookup(key); v.TruncInt64() != n {
				t.Errorf("%s: %d is kept as %s", key, n, v)
			}
			if err := checkKept(kept); err != nil {
				t.Error(err)
			}
		}
	}
	odd := bson.MustDoc(`{_id: 'rs', version: 1, members: [{_id: 0, host: 'ebb.example.org:27017'}], settings: {heartbeatIntervalMillis: 0}}`)
	if _, err := parseReplicaConfig(odd); err == nil {
		t.Error("an interval of 0 is taken")
	}
	if _, err := readReplicaConfig(odd); err != nil {
		t.Error(err)
	}
	if err := checkKept(odd); err == nil {
		t.Error("a configuration is kept that cannot be read again")
	}
}
