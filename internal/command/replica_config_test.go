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
