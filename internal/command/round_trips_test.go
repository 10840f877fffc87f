package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestRoundTrips counts what an operation asks of a TiKV cluster, of which nothing is in the server's memory, and what of PD. The cluster in memory commits
// in two phases; where TiKV commits in one (TestCommitTrips) each write asks one less of both.
func TestRoundTrips(t *testing.T) {
	c := tikvtest.New(t)
	open := func() *harness {
		e := c.Open(t, tikvkv.Options{Term: time.Hour})
		h := newHarnessOn(t, func(kv.Engine) kv.Engine { return e })
		t.Cleanup(func() { // before the store's, which lies on it
			h.server.Close()
		})
		return h
	}
	run := func(h *harness, command string) bson.Doc {
		t.Helper()
		reply := h.send(t.Context(), "c", "test", bson.MustDoc(command)).Body
		if !reply.Lookup("ok").Truthy() {
			t.Fatalf("%s: %v", command, reply)
		}
		return reply
	}
	filled := c.Open(t, tikvkv.Options{Term: time.Hour})
	h := newHarnessOn(t, func(kv.Engine) kv.Engine { return filled })
	run(h, "{createIndexes: 'c', indexes: [{key: {n: 1}, name: 'n'}]}")
	var documents []string
	for i := range 1000 {
		documents = append(documents, fmt.Sprintf("{_id: %d, n: %d, text: '%s'}", i, i, strings.Repeat("x", 100)))
	}
	run(h, "{insert: 'c', documents: ["+strings.Join(documents, ", ")+"]}")
	run(h, "{create: 'clustered', clusteredIndex: {key: {_id: 1}, unique: true}}")
	run(h, "{insert: 'clustered', documents: ["+strings.Join(documents, ", ")+"]}")
	if err := filled.Close(); err != nil {
		t.Fatal(err)
	}
	trips := c.Count()
	h = open()
	// Locks that are there still, since a large commit goes on behind its acknowledgement, are resolved by who meets them: with a request each.
	for _, scan := range []string{"{_id: {$gte: 0}}", "{n: {$gte: 0}}", "{text: {$exists: true}}"} {
		run(h, "{count: 'c', query: "+scan+"}")
	}
	run(h, "{count: 'clustered', query: {n: {$exists: true}}}")
	// What a server asks once.
	run(h, "{find: 'c', filter: {_id: 1}}")
	run(h, "{find: 'c', filter: {n: 1}}")
	run(h, "{insert: 'c', documents: [{_id: 5000, n: 5000}]}")
	run(h, "{update: 'c', updates: [{q: {_id: 2}, u: {$set: {n: -2}}}]}")
	for _, op := range []struct {
		what, command      string
		stores, timestamps int64
	}{
		{"find by _id", "{find: 'c', filter: {_id: 500}}", 2, 0},
		{"find by _id again", "{find: 'c', filter: {_id: 500}}", 0, 0},
		{"find by _id in a clustered collection", "{find: 'clustered', filter: {_id: 500}}", 1, 0},
		{"100 by _id in a clustered collection", "{find: 'clustered', filter: {_id: {$gte: 600, $lt: 700}}, batchSize: 200}", 1, 0},
		{"insert", "{insert: 'c', documents: [{_id: 6000, n: 6000}]}", 2, 2},
		{"insert of 100", "{insert: 'c', documents: [" + strings.ReplaceAll(strings.Join(documents[:100], ", "), "{_id: ", "{_id: 700") + "]}", 3, 2},
		{"update by _id", "{update: 'c', updates: [{q: {_id: 600}, u: {$set: {n: -1}}}]}", 4, 2},
		{"scan of 100 of an index", "{find: 'c', filter: {n: {$gte: 100, $lt: 200}}, batchSize: 200}", 3, 0},
		{"scan of 100 of an index alone", "{find: 'c', filter: {n: {$gte: 200, $lt: 300}}, projection: {_id: 0, n: 1}, batchSize: 200}", 1, 0},
		{"count by an index", "{count: 'c', query: {n: {$gte: 300, $lt: 400}}}", 1, 0},
		{"update by _id in a clustered collection", "{update: 'clustered', updates: [{q: {_id: 800}, u: {$set: {n: -1}}}]}", 3, 2},
		{"delete by _id", "{delete: 'c', deletes: [{q: {_id: 700}, limit: 1}]}", 4, 2},
	} {
		trips.Take()
		run(h, op.command)
		stores, timestamps := trips.Take()
		t.Logf("%s: %d of stores, %d of PD", op.what, stores, timestamps)
		if stores > op.stores || timestamps > op.timestamps {
			t.Errorf("%s: %d requests to stores and %d to PD; want %d and %d at most", op.what, stores, timestamps, op.stores, op.timestamps)
		}
	}
}
