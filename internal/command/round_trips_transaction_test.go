package command

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestRoundTripsInTransaction counts how often a transaction waits for what it reads by an index, of which nothing is in the server's memory, and
// sees what it has written.
func TestRoundTripsInTransaction(t *testing.T) {
	c := tikvtest.New(t)
	open := func() (*harness, *tikvkv.Engine) {
		e := c.Open(t, tikvkv.Options{Term: time.Hour})
		h := newHarnessAs(t, &ReplicaSet{Name: "rs", Host: "localhost:27018", Term: new(atomic.Int64), OplogBytes: 1 << 30}, func(kv.Engine) kv.Engine { return e })
		if err := h.server.JoinReplicaSet(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		return h, e
	}
	h, filled := open()
	h.must("c", "admin", "{replSetInitiate: 1}")
	h.must("c", "test", "{createIndexes: 'apart', indexes: [{key: {m: 1}, name: 'm'}]}")
	var apart []string
	for i := range 1000 {
		apart = append(apart, fmt.Sprintf("{_id: %d, m: %d, n: 0, text: '%s'}", i, i*37%1000, strings.Repeat("x", 100)))
	}
	h.must("c", "test", "{insert: 'apart', documents: ["+strings.Join(apart, ", ")+"]}")
	if err := filled.Close(); err != nil {
		t.Fatal(err)
	}
	h, e := open()
	t.Cleanup(func() { h.server.Close() })
	for _, scan := range []string{"{_id: {$gte: 0}}", "{m: {$gte: 0}}", "{text: {$exists: true}}"} { // which meets the locks that are left
		h.must("c", "test", "{count: 'apart', query: "+scan+"}")
	}
	h.must("c", "test", "{find: 'apart', filter: {m: 1}}")
	const transaction = ", lsid: {id: UUID('00000000-0000-4000-8000-00000000000a')}, txnNumber: NumberLong(1), autocommit: false}"
	for _, op := range []struct {
		what, command string
		waits         int64
	}{
		{"find of 100", "{find: 'apart', filter: {m: {$gte: 500, $lt: 600}}, batchSize: 200, startTransaction: true", 9},
		{"update of 100", "{update: 'apart', updates: [{q: {m: {$gte: 100, $lt: 200}}, u: {$inc: {n: 1}}, multi: true}]", 8},
		{"find of 100, half of them updated", "{find: 'apart', filter: {m: {$gte: 150, $lt: 250}}, batchSize: 200", 5},
		{"delete of 20, half of them updated", "{delete: 'apart', deletes: [{q: {m: {$gte: 190, $lt: 210}}, limit: 0}]", 1},
		{"find of 10 by _id", "{find: 'apart', filter: {_id: {$in: [801, 620, 703, 610, 401, 455, 513, 520, 10, 990]}}", 2},
	} {
		before := e.Waits()
		h.must("c", "test", op.command+transaction)
		waits := e.Waits() - before
		t.Logf("%s: %d waits", op.what, waits)
		if waits > op.waits {
			t.Errorf("%s: %d waits, want %d at most", op.what, waits, op.waits)
		}
	}
	found := h.must("c", "test", "{find: 'apart', filter: {m: {$gte: 180, $lt: 220}}, sort: {m: 1}, projection: {_id: 0, m: 1, n: 1}, batchSize: 200"+transaction)
	var want []string
	for m := 180; m < 190; m++ {
		want = append(want, fmt.Sprintf("{ m: %d, n: 1 }", m))
	}
	for m := 210; m < 220; m++ {
		want = append(want, fmt.Sprintf("{ m: %d, n: 0 }", m))
	}
	if got := found.Lookup("cursor").Doc().Lookup("firstBatch").Text(); got != "[ "+strings.Join(want, ", ")+" ]" {
		t.Errorf("found %s", got)
	}
	h.must("c", "admin", "{commitTransaction: 1"+transaction)
}
