package command

import (
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// askingForACollection are commands that take collectionUUID, written for a collection called %s.
var askingForACollection = []string{
	"{find: %s, filter: {_id: 0}}",
	"{find: %s, sort: {x: 1}}",
	"{aggregate: %s, pipeline: [{$match: {x: 1}}], cursor: {}}",
	"{aggregate: %s, pipeline: [{$collStats: {count: {}}}], cursor: {}}",
	"{count: %s}",
	"{count: %s, query: {x: 1}}",
	"{distinct: %s, key: 'x'}",
	"{insert: %s, documents: [{x: 1}, {x: 2}]}",
	"{insert: %s, documents: [{x: 1}, {x: 2}], ordered: false}",
	"{update: %s, updates: [{q: {_id: 0}, u: {$set: {y: 1}}}]}",
	"{update: %s, updates: [{q: {x: 1}, u: {$set: {y: 1}}, multi: true, upsert: true}]}",
	"{update: %s, updates: [{q: {_id: 5}, u: {$set: {y: 1}}, upsert: true}]}",
	"{delete: %s, deletes: [{q: {_id: 7}, limit: 1}]}",
	"{delete: %s, deletes: [{q: {z: 7}, limit: 0}]}",
	"{findAndModify: %s, query: {_id: 5}, update: {$set: {y: 1}}, upsert: true}",
	"{findAndModify: %s, query: {_id: 9}, remove: true}",
}

func TestCollectionUUID(t *testing.T) {
	for _, text := range askingForACollection {
		t.Run(text, func(t *testing.T) {
			h := newHarness(t)
			ask := func(name string, uuid bson.Value, db string) bson.Doc {
				command := bson.MustDoc(fmt.Sprintf(text, "'"+name+"'"))
				return h.send(t.Context(), "1", db, bson.Build().Fields(command).Value("collectionUUID", uuid).Doc()).Body
			}
			run := func(db, command string) {
				if reply := h.send(t.Context(), "1", db, bson.MustDoc(command)).Body; !reply.Lookup("ok").Truthy() {
					t.Fatal(command, reply.Text())
				}
			}
			run("test", "{insert: 'one', documents: [{_id: 0, x: 1}]}")
			run("test", "{insert: 'two', documents: [{_id: 0, x: 1}]}")
			run("test", "{create: 'view', viewOn: 'one', pipeline: []}")
			run("other", "{insert: 'three', documents: [{_id: 0, x: 1}]}")
			one := uuidOf(t, h, "one")

			if reply := ask("one", one, "test"); !reply.Lookup("ok").Truthy() || !reply.Lookup("writeErrors").IsMissing() {
				t.Error("the right collection is refused: ", reply.Text())
			}
			unknown := bson.Build().Binary("", 4, make([]byte, 16)).Doc().Lookup("")
			for _, c := range []struct {
				name, db, actual string
				uuid             bson.Value
			}{
				{"one", "test", "null", unknown},
				{"two", "test", `"one"`, one},
				{"none", "test", `"one"`, one},
				{"view", "test", `"one"`, one},
				{"three", "other", "null", one},
				{"none", "nowhere", "null", one},
			} {
				reply := ask(c.name, c.uuid, c.db)
				for _, e := range errorsIn(reply) {
					if e.Lookup("code").Int32() != 361 || e.Lookup("expectedCollection").Str() != c.name || e.Lookup("actualCollection").Text() != c.actual ||
						e.Lookup("db").Str() != c.db || !bson.Identical(e.Lookup("collectionUUID"), c.uuid) {
						t.Errorf("%s.%s: %s", c.db, c.name, e.Text())
					}
				}
			}
			if n := h.send(t.Context(), "1", "test", bson.MustDoc("{count: 'two'}")).Body.Lookup("n"); n.Int32() != 1 {
				t.Error("another collection was written to: ", n.Text())
			}
			if all := h.server.Query.Store.Catalog().Collections("test"); len(all) != 3 {
				t.Error("a collection was made: ", len(all))
			}
		})
	}
}

// errorsIn are the errors of a reply: its own or those of its statements.
func errorsIn(reply bson.Doc) (found []bson.Doc) {
	if !reply.Lookup("ok").Truthy() {
		return []bson.Doc{reply}
	}
	if errors := reply.Lookup("writeErrors"); !errors.IsMissing() {
		for it := errors.Doc().Iter(); it.Next(); {
			found = append(found, it.Value().Doc())
		}
		return found
	}
	return []bson.Doc{bson.MustDoc("{code: 0, expectedCollection: 'nothing was refused'}")}
}

func uuidOf(t *testing.T, h *harness, name string) bson.Value {
	reply := h.send(t.Context(), "1", "test", bson.MustDoc("{listCollections: 1, filter: {name: '"+name+"'}}")).Body
	uuid := at(reply.Value(), "cursor.firstBatch.0.info.uuid")
	if uuid.IsMissing() {
		t.Fatal(reply.Text())
	}
	return uuid.Clone()
}
