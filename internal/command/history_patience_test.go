package command

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/replset"
)

// largerGroup is the Group of a member that leads another one, which is there.
type largerGroup struct{ ledGroup }

func (largerGroup) Check(context.Context, string, replset.Member) error { return nil }

// TestHistoryInTurn: who has changed a TTL waits for the history of expiry no longer than for a commit. What he has to tell is written when those before it are,
// in the order of events.
func TestHistoryInTurn(t *testing.T) {
	notOnTiKV(t, "no set of several members is over it")
	for _, within := range []string{"maxTimeMS: 1000", "writeConcern: {w: 1, wtimeout: 1000}"} {
		t.Run(within, func(t *testing.T) {
			h := newMember(t)
			run := func(conn, db, command string) bson.Doc {
				t.Helper()
				reply := h.send(t.Context(), conn, db, bson.MustDoc(command)).Body
				if !reply.Lookup("ok").Truthy() || !reply.Lookup("writeConcernError").IsMissing() {
					t.Fatalf("%s: %s", command, reply)
				}
				return reply
			}
			run("1", "admin", `{replSetInitiate: {}}`)
			h.clock.Advance(2 * time.Second)
			h.server.ReplicaSet.Group = largerGroup{ledGroup{clock: h.clock}}
			run("1", "admin", `{replSetReconfig: {_id: "rs", version: 2, members: [{_id: 0, host: "localhost:27018"}, {_id: 1, host: "localhost:27019"}]}}`)
			ttl := func(n int) string {
				return fmt.Sprintf(`{collMod: "c", index: {name: "t", expireAfterSeconds: %d}`, n)
			}
			run("1", "d", `{createIndexes: "c", indexes: [{key: {t: 1}, name: "t", expireAfterSeconds: 1000}]}`)
			_, release, err := h.server.Query.Store.LockToChange(t.Context(), historyNS)
			if err != nil {
				t.Fatal(err)
			}
			first := make(chan bson.Doc, 1)
			go func() { first <- h.send(t.Context(), "first", "d", bson.MustDoc(ttl(1001)+"}")).Body }()
			for h.server.history.waiting() == 0 {
				wait(t)
			}
			for n := range 3 { // each waits behind the first
				done := make(chan bool)
				go func() {
					defer close(done)
					run("1", "d", ttl(1002+n)+", "+within+"}")
				}()
				for over := false; !over; {
					select {
					case <-done:
						over = true
					default:
						if h.server.history.waiting() == n+2 { // its time is over when it has changed the TTL, and not before
							h.clock.Advance(time.Second)
						}
						wait(t)
					}
				}
			}
			select {
			case reply := <-first:
				t.Errorf("the first has not waited: %s", reply)
			default:
			}
			release()
			if reply := <-first; !reply.Lookup("ok").Truthy() {
				t.Error(reply)
			}
			run("1", "d", ttl(2000)+"}") // which waits for all
			var told []string
			for it := run("1", "local", `{find: "ttl_history", sort: {$natural: 1}}`).Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
				told = append(told, it.Value().Doc().Lookup("new").String())
			}
			if got := strings.Join(told, " "); got != "1000 1001 1002 1003 1004 2000" {
				t.Errorf("the history tells of %s", got)
			}
		})
	}
}

// waiting is how many documents wait.
func (h *ttlHistory) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mu.pending)
}

// wait lets others work.
func wait(t *testing.T) {
	if clock.Wait(context.Background(), clock.Wall(), time.Millisecond) != nil {
		t.Fatal("the wait was ended")
	}
}
