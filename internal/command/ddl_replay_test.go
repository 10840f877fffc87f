package command

import (
	"maps"
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// definitions are commands that change definitions, each in its database, in the order in which they are sent.
var definitions = [...][2]string{
	{"test", "{create: 'plain'}"},
	{"test", "{insert: 'plain', documents: [{_id: 1, a: 1, t: new Date(0)}, {_id: 2, a: 2, t: new Date(0)}, {_id: 3, a: 3}]}"},
	{"test", "{create: 'all', validator: {a: {$gt: 0}}, validationLevel: 'moderate', validationAction: 'warn', collation: {locale: 'en', strength: 2}, changeStreamPreAndPostImages: {enabled: true}, expirationEvents: 'none', ttlPaused: true}"},
	{"test", "{create: 'capped', capped: true, size: 100000, max: 10}"},
	{"test", "{create: 'clustered', clusteredIndex: {key: {_id: 1}, unique: true, name: 'k'}, expireAfterSeconds: 1000}"},
	{"test", "{create: 'series', timeseries: {timeField: 't', metaField: 'm'}, expireAfterSeconds: 1000}"},
	{"test", "{create: 'spans', timeseries: {timeField: 't', bucketMaxSpanSeconds: 60, bucketRoundingSeconds: 60}}"},
	{"test", "{insert: 'series', documents: [{_id: 1, t: new Date(1767323045000), m: 1}]}"},
	{"test", "{create: 'view', viewOn: 'plain', pipeline: [{$match: {a: 1}}], collation: {locale: 'en'}}"},
	{"test", "{create: 'encrypted', encryptedFields: {fields: [{path: 'a', bsonType: 'string', keyId: UUID('00000000-0000-0000-0000-000000000001')}]}}"},

	{"test", `{createIndexes: 'plain', indexes: [{key: {a: 1}, name: 'a'}, {key: {b: 1, c: -1}, name: 'bc', unique: true, sparse: true}, {key: {d: 1}, name: 'd', hidden: true},
		{key: {t: 1}, name: 't', expireAfterSeconds: 1000000000, hideExpired: true}, {key: {p: 1}, name: 'p', partialFilterExpression: {p: {$gt: 1}}}, {key: {x: 'text'}, name: 'x', weights: {x: 2}},
		{key: {g: '2dsphere'}, name: 'g'}, {key: {'$**': 1}, name: 'w', wildcardProjection: {a: 1}}, {key: {h: 'hashed'}, name: 'h'}, {key: {u: 1}, name: 'u', prepareUnique: true},
		{key: {v: 1}, name: 'v'}, {key: {n: 1}, name: 'n', unique: true, sparse: true}, {key: {c: 1}, name: 'c', collation: {locale: 'de'}}]}`},
	{"test", "{createIndexes: 'series', indexes: [{key: {t: -1}, name: 'back'}]}"},
	{"admin", "{setParameter: 1, ttlOnCapped: true}"},
	{"test", "{createIndexes: 'capped', indexes: [{key: {t: 1}, name: 't', expireAfterSeconds: 1000000000}, {key: {s: 1}, name: 's'}]}"},
	{"test", "{collMod: 'capped', index: {name: 's', expireAfterSeconds: 1000000000}}"},

	{"test", "{collMod: 'plain', validator: {a: {$gt: 0}}}"},
	{"test", "{collMod: 'all', validator: {}, validationLevel: 'strict', validationAction: 'error', changeStreamPreAndPostImages: {enabled: false}, expirationEvents: 'documents', ttlPaused: false}"},
	{"test", "{collMod: 'capped', cappedSize: 200000, cappedMax: 20}"},
	{"test", "{collMod: 'clustered', expireAfterSeconds: 'off'}"},
	{"test", "{collMod: 'series', timeseries: {granularity: 'hours'}}"},
	{"test", "{collMod: 'series', expireAfterSeconds: 2000}"},
	{"test", "{collMod: 'spans', timeseries: {bucketMaxSpanSeconds: 120, bucketRoundingSeconds: 120}}"},
	{"test", "{collMod: 'view', viewOn: 'all', pipeline: []}"},
	{"test", "{collMod: 'plain', index: {name: 'd', hidden: false}}"},
	{"test", "{collMod: 'plain', index: {name: 'a', hidden: true}}"},
	{"test", "{collMod: 'plain', index: {name: 't', hideExpired: false}}"},
	{"test", "{collMod: 'plain', index: {name: 't', expireAfterSeconds: 2000000000}}"},
	{"test", "{collMod: 'plain', index: {name: 'u', prepareUnique: false}}"},
	{"test", "{collMod: 'plain', index: {name: 'v', prepareUnique: true}}"},
	{"test", "{collMod: 'plain', index: {keyPattern: {v: 1}, unique: true}}"},
	{"test", "{collMod: 'plain', index: {name: 'n', forceNonUnique: true}}"},
	{"test", "{dropIndexes: 'plain', index: ['x', 'g']}"},

	{"test", "{aggregate: 'plain', pipeline: [{$out: 'out'}], cursor: {}}"},
	{"test", "{createIndexes: 'out', indexes: [{key: {a: 1}, name: 'a', unique: true}]}"},
	{"test", "{aggregate: 'plain', pipeline: [{$match: {a: {$lt: 3}}}, {$out: 'out'}], cursor: {}}"},
	{"test", "{aggregate: 'plain', pipeline: [{$match: {t: {$exists: true}}}, {$out: {db: 'test', coll: 'outSeries', timeseries: {timeField: 't'}}}], cursor: {}}"},
	{"test", "{aggregate: 'plain', pipeline: [{$match: {a: 1}}, {$out: {db: 'test', coll: 'outSeries', timeseries: {timeField: 't'}}}], cursor: {}}"},
	{"test", "{aggregate: 'plain', pipeline: [{$merge: 'merged'}], cursor: {}}"},
	{"test", "{cloneCollectionAsCapped: 'plain', toCollection: 'clone', size: 100000}"},
	{"test", "{aggregate: 'plain', pipeline: [{$out: 'converted'}], cursor: {}}"},
	{"test", "{createIndexes: 'converted', indexes: [{key: {a: 1}, name: 'a'}]}"},
	{"test", "{convertToCapped: 'converted', size: 4096}"},
	{"test", "{insert: 'converted', documents: [{_id: 4}]}"},
	{"test", "{convertToCapped: 'converted', size: 8192}"},
	{"test", "{convertToCapped: 'clustered', size: 4096}"},

	{"test", "{create: 'gone'}"},
	{"test", "{drop: 'gone'}"},
	{"test", "{create: 'goneView', viewOn: 'plain'}"},
	{"test", "{drop: 'goneView'}"},
	{"admin", "{renameCollection: 'test.merged', to: 'test.renamed'}"},
	{"admin", "{renameCollection: 'test.renamed', to: 'other.renamed'}"},
	{"other", "{insert: 'renamed', documents: [{_id: 7}]}"},
	{"test", "{create: 'inTheWay'}"},
	{"admin", "{renameCollection: 'test.clone', to: 'test.inTheWay', dropTarget: true}"},
	{"third", "{create: 'c'}"},
	{"third", "{dropDatabase: 1}"},
}

// TestDefinitionsReplay: a standalone server that gets all entries of a member's oplog by applyOps has the same
// collections, indexes and documents.
func TestDefinitionsReplay(t *testing.T) {
	h, other := member(t), newHarness(t)
	for _, c := range definitions {
		h.ok(t, c[0], c[1])
	}
	entries := h.ok(t, "local", "{find: 'oplog.rs', filter: {op: {$ne: 'n'}, ns: {$regex: '^(test|other|third|admin)[.]'}}, batchSize: 10000}").Lookup("cursor").Doc().Lookup("firstBatch").Doc()
	if entries.Count() < len(definitions) {
		t.Fatal(entries.Count(), "entries")
	}
	for it := entries.Iter(); it.Next(); {
		reply := other.send(t.Context(), "1", "admin", bson.Build().Array("applyOps").Document("0", it.Value().Doc()).End().Doc()).Body
		if !reply.Lookup("ok").Truthy() {
			t.Errorf("%s: %s", it.Value(), reply)
		}
	}
	for _, db := range [...]string{"test", "other", "third"} {
		want, got := h.defined(t, db), other.defined(t, db)
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if got[name] != want[name] {
				t.Errorf("%s.%s:\nthe first has  %s\nthe second has %s", db, name, want[name], got[name])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %v", db, slices.Sorted(maps.Keys(got)))
		}
	}
}

// defined tells of each collection of a database what it is, its indexes, and its documents.
func (h *harness) defined(t *testing.T, db string) map[string]string {
	t.Helper()
	all := map[string]string{}
	batch := func(command string) bson.Value {
		reply := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body
		if reply.Lookup("cursor").Type != bson.TypeObject { // as of a view, which has no indexes
			return reply.Lookup("code")
		}
		return reply.Lookup("cursor").Doc().Lookup("firstBatch")
	}
	for it := batch("{listCollections: 1}").Doc().Iter(); it.Next(); {
		name := it.Value().Doc().Lookup("name").Str()
		all[name] = it.Value().String() + "\n" + batch("{listIndexes: '"+name+"'}").String() + "\n" + batch("{find: '"+name+"', sort: {_id: 1}}").String()
	}
	return all
}
