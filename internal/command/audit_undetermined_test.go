package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestAuditOfWhatIsUndetermined: what nobody knows of whether it was done is in the audit log, and a TTL in the history: it may have been.
func TestAuditOfWhatIsUndetermined(t *testing.T) {
	c := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: c.Client, Clock: clock.NewFake(time.Unix(0, 0))}
	engine := c.OpenOver(t, way, tikvkv.Options{Term: time.Hour, Clock: way.Clock})
	h := newAudited(t, newHarnessOn(t, func(kv.Engine) kv.Engine { return engine }), audit.Options{})
	h.send(t.Context(), "boss", "test", bson.MustDoc("{insert: 'c', documents: [{_id: 1}]}"))
	h.send(t.Context(), "boss", "test", bson.MustDoc("{createIndexes: 'other', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 10}]}"))
	h.events()
	for _, test := range []struct{ db, command, told string }{
		{"admin", "{grantRolesToUser: 'boss', roles: ['readWriteAnyDatabase']}", "grantRolesToUser"},
		{"admin", "{insert: 'system.users', documents: [{_id: 'test.other', user: 'other', db: 'test', credentials: {}, roles: []}]}", "directAuthMutation"},
		{"test", "{createIndexes: 'c', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 10}]}", "createIndex"},
		{"test", "{drop: 'other'}", "dropCollection"},
	} {
		release := way.Leave(t, engine, func() error {
			reply := h.send(t.Context(), "boss", test.db, bson.MustDoc(test.command)).Body
			if !strings.Contains(reply.Text(), kv.ErrUndetermined.Error()) {
				return fmt.Errorf("the answer is %s", reply)
			}
			return kv.ErrUndetermined
		})
		var told []string
		for _, e := range h.events() {
			told = append(told, eventLine(e))
		}
		if all := strings.Join(told, "\n"); !strings.Contains(all, test.told) {
			t.Errorf("of %s the audit log tells %q", test.command, all)
		}
		release()
	}
	// The history that could not be written is written with what comes next.
	way.Until(t, func() bool {
		next := bson.MustDoc("{createIndexes: 'next', indexes: [{key: {d: 1}, name: 'd', expireAfterSeconds: 20}]}")
		return h.send(t.Context(), "boss", "test", next).Body.Lookup("ok").Truthy()
	})
	kept := h.send(t.Context(), "boss", "local", bson.MustDoc("{find: 'ttl_history'}")).Body.Text()
	for _, what := range []string{`event: "created"`, `event: "dropped"`, "new: NumberLong(20)"} {
		if !strings.Contains(kept, what) {
			t.Errorf("the history lacks %s: %s", what, kept)
		}
	}
}
