package command

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestRetryOfWhatIsUndetermined: a write whose commit the cluster does not answer for long fails as a whole, in a way that has drivers send it again. When
// they do it is known what became of the first.
func TestRetryOfWhatIsUndetermined(t *testing.T) {
	c := tikvtest.New(t)
	way := &tikvtest.HeldBack{Client: c.Client, Clock: clock.NewFake(time.Unix(0, 0))}
	engine := c.OpenOver(t, way, tikvkv.Options{Term: time.Hour, Clock: way.Clock})
	h := newHarnessAs(t, &ReplicaSet{Name: "rs", Host: "localhost:27018", Term: new(atomic.Int64), OplogBytes: 1 << 30}, func(kv.Engine) kv.Engine { return engine })
	if err := h.server.JoinReplicaSet(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "admin", "{replSetInitiate: 1}")
	h.ok(t, "test", "{insert: 'c', documents: [{_id: 1, n: 1}]}")
	for i, test := range []struct{ db, command, again, find string }{
		{"test", "update: 'c', updates: [{q: {_id: 1}, u: {$inc: {n: 1}}}]", "nModified: 1,", "n: 2 }"},
		{"admin", "bulkWrite: 1, nsInfo: [{ns: 'test.c'}], ops: [{update: 0, filter: {_id: 1}, updateMods: {$inc: {n: 1}}}]", "nModified: 1,", "n: 3 }"},
		{"test", "delete: 'c', deletes: [{q: {_id: 1}, limit: 1}]", "n: 1,", "firstBatch: []"},
	} {
		write := bson.MustDoc("{" + test.command + ", lsid: {id: UUID('00000000-0000-0000-0000-000000000001')}, txnNumber: NumberLong(" + string('1'+rune(i)) + ")}")
		release := way.Hold(t, engine)
		first := make(chan string, 1)
		go func() { first <- h.send(t.Context(), "1", test.db, write).Body.Text() }()
		way.Until(t, func() bool { return len(first) > 0 })
		if reply := <-first; !strings.Contains(reply, "ok: 0.0") || !strings.Contains(reply, "code: 6,") || !strings.Contains(reply, `errorLabels: [ "RetryableWriteError" ]`) {
			t.Errorf("%s that is not answered is answered with %s", test.command, reply)
		}
		release()
		if reply := h.send(t.Context(), "2", test.db, write).Body.Text(); !strings.Contains(reply, "retriedStmtIds: [ 0 ]") || !strings.Contains(reply, test.again) {
			t.Errorf("%s once more is answered with %s", test.command, reply)
		}
		if reply := h.ok(t, "test", "{find: 'c'}").Text(); !strings.Contains(reply, test.find) {
			t.Errorf("%s, sent twice, has left %s", test.command, reply)
		}
	}
	if reply := h.ok(t, "config", "{count: 'transactions'}").Text(); !strings.Contains(reply, "n: 1,") {
		t.Errorf("of one session is kept: %s", reply)
	}
}
