package command

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestApplyOpsReplays: another server that gets all entries of an oplog by applyOps has the same documents, also when it gets them twice.
func TestApplyOpsReplays(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	h, other := member(t), newHarness(t)
	colls := []string{"a", "b"}
	for range 400 {
		c, id := colls[rng.IntN(len(colls))], rng.IntN(12)
		text := ""
		switch rng.IntN(12) {
		case 0, 1, 2:
			text = fmt.Sprintf("{insert: '%s', documents: [{_id: %d, n: 1}, {_id: %d, l: [1, 2, {x: 1}]}], ordered: false}", c, id, rng.IntN(12))
		case 3, 4, 5, 6:
			update, filters := randomUpdate(rng)
			text = fmt.Sprintf("{update: '%s', updates: [{q: {_id: %d}, u: %s, arrayFilters: [%s], upsert: %v}]}", c, id, update, filters, rng.IntN(2) == 0)
		case 7:
			text = fmt.Sprintf("{update: '%s', updates: [{q: {}, u: [{$set: {p: {$rand: {}}}}, {$unset: 'a'}], multi: true}]}", c)
		case 8:
			text = fmt.Sprintf("{delete: '%s', deletes: [{q: {_id: %d}, limit: 1}]}", c, id)
		case 9:
			text = fmt.Sprintf("{createIndexes: '%s', indexes: [{key: {n: 1}, name: 'n', sparse: true}]}", c)
		case 10:
			text = fmt.Sprintf("{dropIndexes: '%s', index: 'n'}", c)
		default:
			if rng.IntN(4) == 0 {
				text = fmt.Sprintf("{drop: '%s'}", c)
			} else {
				text = fmt.Sprintf("{update: '%s', updates: [{q: {_id: %d}, u: {w: %d}}]}", c, id, id)
			}
		}
		h.send(t.Context(), "1", "test", bson.MustDoc(text)) // many are refused
	}
	entries := h.ok(t, "local", "{find: 'oplog.rs', filter: {op: {$ne: 'n'}, ns: {$regex: '^(test|admin)[.]'}}, batchSize: 100000}").Lookup("cursor").Doc().Lookup("firstBatch").Doc()
	if entries.Count() < 100 {
		t.Fatal(entries.Count(), "entries")
	}
	for round := range 2 {
		for it := entries.Iter(); it.Next(); {
			b := bson.Build().Array("applyOps").Document("0", it.Value().Doc()).End()
			if reply := other.send(t.Context(), "1", "admin", b.Doc()).Body; !reply.Lookup("ok").Truthy() && round == 0 {
				t.Fatalf("%s: %s", it.Value(), reply)
			}
		}
		for _, c := range colls {
			for _, command := range []string{"{find: '" + c + "', sort: {_id: 1}}", "{listIndexes: '" + c + "'}"} {
				one, two := h.send(t.Context(), "1", "test", bson.MustDoc(command)).Body, other.send(t.Context(), "1", "test", bson.MustDoc(command)).Body
				if a, b := one.Lookup("cursor").Doc().Lookup("firstBatch"), two.Lookup("cursor").Doc().Lookup("firstBatch"); !bson.Identical(a, b) {
					t.Errorf("round %d, %s:\nthe first has  %s\nthe second has %s", round, command, a, b)
				}
			}
		}
	}
}

// TestApplyOpsReplaysMeasurements: what was done to measurements that share an _id is done again to the same ones, whatever their meta value has become.
func TestApplyOpsReplaysMeasurements(t *testing.T) {
	h, other := member(t), newHarness(t)
	for _, text := range []string{
		"{create: 's', timeseries: {timeField: 't', metaField: 'm'}}",
		"{insert: 's', documents: [{_id: 1, t: ISODate('2026-01-01T00:00:00Z'), m: 'a'}, {_id: 1, t: ISODate('2026-01-01T00:00:00Z'), m: 'b'}, {_id: 1, t: ISODate('2026-01-01T00:00:00Z')}]}",
		"{insert: 's', documents: [{_id: 1, t: ISODate('2026-01-01T00:00:01Z'), m: 'b'}, {_id: 1, t: ISODate('2026-01-01T00:00:02Z'), m: 'b'}]}",
		"{update: 's', updates: [{q: {m: 'a'}, u: {$set: {m: 'c'}}, multi: true}]}",
		"{insert: 's', documents: [{_id: 2, t: ISODate('2026-01-01T00:00:03Z'), m: 'd'}]}",
		"{update: 's', updates: [{q: {m: 'd'}, u: {$set: {m: {b: 1, a: 2}}}, multi: true}]}",
		"{delete: 's', deletes: [{q: {'m.b': 1}, limit: 0}]}",
		"{delete: 's', deletes: [{q: {m: 'b', t: ISODate('2026-01-01T00:00:01Z')}, limit: 0}]}",
	} {
		h.ok(t, "test", text)
	}
	entries := h.ok(t, "local", "{find: 'oplog.rs', filter: {op: {$ne: 'n'}, ns: {$regex: '^(test|admin)[.]'}}}").Lookup("cursor").Doc().Lookup("firstBatch").Doc()
	for it := entries.Iter(); it.Next(); {
		if reply := other.send(t.Context(), "1", "admin", bson.Build().Array("applyOps").Document("0", it.Value().Doc()).End().Doc()).Body; !reply.Lookup("ok").Truthy() {
			t.Fatalf("%s: %s", it.Value(), reply)
		}
	}
	const find = "{find: 's', sort: {m: 1, t: 1}}"
	want, got := h.ok(t, "test", find).Lookup("cursor").Doc().Lookup("firstBatch"), other.ok(t, "test", find).Lookup("cursor").Doc().Lookup("firstBatch")
	if !bson.Identical(want, got) || want.Doc().Count() != 4 {
		t.Errorf("is  %s\nwas %s", got, want)
	}
}
