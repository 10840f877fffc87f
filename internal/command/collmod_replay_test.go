package command

import (
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// TestCollModReplays: what collMod changes, and takes away, is so on a server that gets the entries of the oplog by applyOps.
func TestCollModReplays(t *testing.T) {
	h, other := member(t), newHarness(t)
	for _, command := range []string{
		"{create: 'c'}", "{create: 'k', capped: true, size: 100000, max: 10}", "{create: 'l', clusteredIndex: {key: {_id: 1}, unique: true}}",
		"{collMod: 'c', validator: {a: {$gt: 1}}, validationLevel: 'moderate', validationAction: 'warn'}",
		"{collMod: 'c', changeStreamPreAndPostImages: {enabled: true}}", "{collMod: 'c', ttlPaused: true, expirationEvents: 'none'}",
		"{collMod: 'k', cappedSize: 200000, cappedMax: 20}", "{collMod: 'l', expireAfterSeconds: 100}", "-",
		"{collMod: 'c', validator: {}, validationLevel: 'strict', validationAction: 'error'}",
		"{collMod: 'c', changeStreamPreAndPostImages: {enabled: false}}", "{collMod: 'c', ttlPaused: false, expirationEvents: 'documents'}",
		"{collMod: 'k', cappedMax: 0}", "{collMod: 'l', expireAfterSeconds: 'off'}", "-",
	} {
		if command != "-" {
			h.ok(t, "test", command)
			continue
		}
		entries := h.ok(t, "local", "{find: 'oplog.rs', filter: {op: 'c', ns: 'test.$cmd'}}").Lookup("cursor").Doc().Lookup("firstBatch").Doc()
		for it := entries.Iter(); it.Next(); {
			other.ok(t, "admin", bson.Build().Array("applyOps").Document("0", it.Value().Doc()).End().Doc().String())
		}
		for _, name := range []string{"c", "k", "l"} {
			list := "{listCollections: 1, filter: {name: '" + name + "'}}"
			options := func(h *harness) bson.Value {
				return h.ok(t, "test", list).Lookup("cursor").Doc().Lookup("firstBatch").Doc().Index(0).Doc().Lookup("options")
			}
			if a, b := options(h), options(other); !bson.Identical(a, b) {
				t.Errorf("%s: the first has %s, the second %s", name, a, b)
			}
		}
	}
}
