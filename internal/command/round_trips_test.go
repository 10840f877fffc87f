package command

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestRoundTrips counts what an operation asks of a TiKV cluster, of which nothing is in the server's memory, and what of PD. The cluster in memory commits
// in two phases; where TiKV commits in one (TestCommitTrips) each write asks one less of both. Requests that are under way side by side are one wait.
func TestRoundTrips(t *testing.T) {
	c := tikvtest.New(t)
	var e *tikvkv.Engine
	open := func() *harness {
		e = c.Open(t, tikvkv.Options{Term: time.Hour})
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
	run(h, "{createIndexes: 'apart', indexes: [{key: {m: 1}, name: 'm'}]}")
	var apart []string
	for i := range 1000 {
		apart = append(apart, fmt.Sprintf("{_id: %d, m: %d, text: '%s'}", i, i*37%1000, strings.Repeat("x", 100)))
	}
	run(h, "{insert: 'apart', documents: ["+strings.Join(apart, ", ")+"]}")
	run(h, "{createIndexes: 'long', indexes: [{key: {m: 1}, name: 'm'}]}")
	for i := range 20 { // of which each has parts
		run(h, fmt.Sprintf("{insert: 'long', documents: [{_id: %d, m: %d, text: '%s'}]}", i, i*7%20, strings.Repeat("x", 300<<10)))
	}
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
	for _, scan := range []string{"{_id: {$gte: 0}}", "{m: {$gte: 0}}", "{text: {$exists: true}}"} {
		run(h, "{count: 'apart', query: "+scan+"}")
	}
	// What a server asks once.
	run(h, "{find: 'c', filter: {_id: 1}}")
	run(h, "{find: 'c', filter: {n: 1}}")
	run(h, "{insert: 'c', documents: [{_id: 5000, n: 5000}]}")
	run(h, "{update: 'c', updates: [{q: {_id: 2}, u: {$set: {n: -2}}}]}")
	for _, op := range []struct {
		what, command             string
		stores, timestamps, waits int64
	}{
		{"find by _id", "{find: 'c', filter: {_id: 500}}", 2, 0, 2},
		{"find by _id again", "{find: 'c', filter: {_id: 500}}", 0, 0, 0},
		{"find by _id in a clustered collection", "{find: 'clustered', filter: {_id: 500}}", 1, 0, 1},
		{"10 by _id", "{find: 'c', filter: {_id: {$in: [101, 120, 203, 310, 401, 455, 513, 520, 610, 790]}}}", 11, 0, 2},
		{"10 by _id, backwards", "{find: 'c', filter: {_id: {$in: [102, 121, 204, 311, 402, 456, 514, 521, 611, 791]}}, sort: {_id: -1}}", 11, 0, 2},
		{"40 by _id", "{find: 'c', filter: {_id: {$in: [" + everyThird(20, 40) + "]}}}", 35, 0, 4},
		{"10 by an index", "{find: 'apart', filter: {m: {$in: [401, 420, 503, 610, 701, 755, 813, 820, 910, 990]}}}", 11, 0, 2},
		{"keys of 10 by an index", "{find: 'apart', filter: {m: {$in: [401, 420, 503, 610, 701, 755, 813, 820, 910, 990]}}, projection: {_id: 0, m: 1}}", 10, 0, 1},
		{"1 of 10 by an index", "{find: 'apart', filter: {m: {$in: [402, 421, 504, 611, 702, 756, 814, 821, 911, 991]}}, limit: 1}", 2, 0, 2},
		{"3 of 10 by an index", "{find: 'apart', filter: {m: {$in: [403, 422, 505, 612, 703, 757, 815, 822, 912, 992]}}, limit: 3}", 4, 0, 2},
		{"100 apart by an index", "{find: 'apart', filter: {m: {$gte: 100, $lt: 200}}, batchSize: 200}", 3, 0, 3},
		{"20 long ones apart by an index", "{find: 'long', filter: {m: {$gte: 0}}, batchSize: 200}", 46, 0, 46},
		{"5 apart by an index", "{find: 'apart', filter: {m: {$gte: 300, $lt: 305}}, batchSize: 200}", 2, 0, 2},
		{"5 apart by an index again", "{find: 'apart', filter: {m: {$gte: 300, $lt: 305}}, batchSize: 200}", 1, 0, 1},
		{"$lookup of 10 by _id", "{aggregate: 'c', cursor: {}, pipeline: [{$match: {n: {$gte: 910, $lt: 920}}}, {$lookup: {from: 'c', as: 'other', localField: 'n', foreignField: '_id'}}]}", 22, 0, 22},
		{"100 by _id in a clustered collection", "{find: 'clustered', filter: {_id: {$gte: 600, $lt: 700}}, batchSize: 200}", 1, 0, 1},
		{"validate of 1100, with two indexes", "{validate: 'c'}", 30, 0, 30},
		{"insert", "{insert: 'c', documents: [{_id: 6000, n: 6000}]}", 2, 2, 2},
		{"insert of 100", "{insert: 'c', documents: [" + strings.ReplaceAll(strings.Join(documents[:100], ", "), "{_id: ", "{_id: 700") + "]}", 3, 2, 3},
		{"update by _id", "{update: 'c', updates: [{q: {_id: 600}, u: {$set: {n: -1}}}]}", 4, 2, 4},
		{"scan of 100 of an index", "{find: 'c', filter: {n: {$gte: 100, $lt: 200}}, batchSize: 200}", 2, 0, 2},
		{"scan of 100 of an index alone", "{find: 'c', filter: {n: {$gte: 200, $lt: 300}}, projection: {_id: 0, n: 1}, batchSize: 200}", 1, 0, 1},
		{"count by an index", "{count: 'c', query: {n: {$gte: 300, $lt: 400}}}", 1, 0, 1},
		{"update by _id in a clustered collection", "{update: 'clustered', updates: [{q: {_id: 800}, u: {$set: {n: -1}}}]}", 3, 2, 3},
		{"delete by _id", "{delete: 'c', deletes: [{q: {_id: 700}, limit: 1}]}", 4, 2, 4},
	} {
		trips.Take()
		before := e.Waits()
		run(h, op.command)
		stores, timestamps := trips.Take()
		waits := e.Waits() - before
		t.Logf("%s: %d of stores, in %d waits to read, %d of PD", op.what, stores, waits, timestamps)
		if stores > op.stores || waits > op.waits || timestamps > op.timestamps {
			t.Errorf("%s: %d requests to stores, %d waits to read and %d requests to PD; want %d, %d and %d at most", op.what, stores, waits, timestamps,
				op.stores, op.waits, op.timestamps)
		}
	}
}

// everyThird are numbers, three apart.
func everyThird(first, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(first+3*i))
	}
	return strings.Join(all, ", ")
}

// TestRoundTripsOfSmallCache: where the cache holds few of the records that are found, updated and deleted by _id, in random order, it still knows where nearly
// all of them lie, and asks once for each that it does not hold. A record that lies elsewhere since is found there.
func TestRoundTripsOfSmallCache(t *testing.T) {
	const documents, finds, writes = 5000, 10_000, 500
	for _, cache := range []int64{4 << 20, 2 << 20} {
		t.Run(fmt.Sprint(cache>>20, " MiB"), func(t *testing.T) {
			c := tikvtest.New(t)
			trips := c.Count()
			e := c.Open(t, tikvkv.Options{Term: time.Hour, RowCacheBytes: cache})
			h := newHarnessOn(t, func(kv.Engine) kv.Engine { return e })
			t.Cleanup(func() { h.server.Close() })
			text := strings.Repeat("x", 1000)
			insert := func(first, n int) {
				var list []string
				for i := range n {
					list = append(list, fmt.Sprintf("{_id: %d, n: 0, text: '%s'}", first+i, text))
				}
				h.must("c", "test", "{insert: 'c', documents: ["+strings.Join(list, ", ")+"]}")
			}
			for first := 0; first < documents; first += 1000 {
				insert(first, 1000)
			}
			rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
			updated := map[int]int64{}
			var asked [5]int
			// count runs a command about a document and counts what it asks the stores.
			count := func(command string, id int) bson.Doc {
				t.Helper()
				trips.Take()
				reply := h.must("c", "test", fmt.Sprintf(command, id))
				stores, _ := trips.Take()
				asked[min(stores, int64(len(asked)-1))]++
				return reply
			}
			find := func(id int) {
				t.Helper()
				found := count("{find: 'c', filter: {_id: %d}}", id).Lookup("cursor").Doc().Lookup("firstBatch").Doc().Lookup("0").Doc()
				if found.Lookup("_id").RoundInt64() != int64(id) || found.Lookup("n").RoundInt64() != updated[id] {
					t.Fatalf("document %d, updated %d times: %v", id, updated[id], found)
				}
			}
			// check says how many of the last so many commands asked more than limit times.
			check := func(what string, all, limit int) {
				t.Helper()
				t.Logf("of %d %s, so many asked the stores not at all, once, and so on: %d", all, what, asked)
				often := 0
				for _, n := range asked[limit+1:] {
					often += n
				}
				if often > all/50 {
					t.Errorf("%d of %d %s asked the stores more than %d times", often, all, what, limit)
				}
				clear(asked[:])
			}
			for range finds {
				find(rng.IntN(documents))
			}
			clear(asked[:]) // it holds what it can
			for range finds {
				find(rng.IntN(documents))
			}
			check("finds", finds, 1)
			for range writes {
				id := rng.IntN(documents)
				updated[id] += count("{update: 'c', updates: [{q: {_id: %d}, u: {$inc: {n: 1}}}]}", id).Lookup("nModified").RoundInt64()
			}
			check("updates", writes, 3) // of which two commit
			for range writes {
				id := rng.IntN(documents)
				count("{delete: 'c', deletes: [{q: {_id: %d}, limit: 1}]}", id)
				delete(updated, id)
				insert(id, 1)
			}
			check("deletes", writes, 3)
			for id := range documents {
				find(id)
			}
		})
	}
}
