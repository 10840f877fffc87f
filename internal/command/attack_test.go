package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/privilege"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// hunter2 is what nobody may see who was not granted it.
const hunter2 = "hunter2"

// newCastle is a server with something to steal: secrets in three databases, and those who want them.
func newCastle(t *testing.T, h *harness) *guarded {
	g := newGuarded(t, h)
	g.user("king", roleIn("__system", "admin"))
	for db, colls := range map[string][]string{"admin": {"system.users", "system.roles", "treasure"}, "own": {"c", "secret"}, "other": {"secret"}} {
		for _, coll := range colls {
			g.allowed("king", db, fmt.Sprintf(`{insert: %q, documents: [{_id: "%s.%s", key: %q}]}`, coll, db, coll, hunter2))
		}
	}
	return g
}

// never sends commands that have to be refused, and whose replies must not tell the secret. A line is a database and a command.
func (g *guarded) never(user, lines string) {
	g.t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		db, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		reply := g.as(user, db, command)
		if !isRefusal(reply) {
			g.t.Errorf("%s: %s %s is answered by %s", user, db, command, reply)
		}
		if text := reply.String(); strings.Contains(text, hunter2) && !strings.Contains(command, hunter2) {
			g.t.Errorf("%s: %s %s tells the secret: %s", user, db, command, text)
		}
	}
}

// silent sends commands that may be answered in any way but with the secret.
func (g *guarded) silent(user, lines string) {
	g.t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		db, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text := g.as(user, db, command).String(); strings.Contains(text, hunter2) {
			g.t.Errorf("%s: %s %s tells the secret: %s", user, db, command, text)
		}
	}
}

// only is a privilege on collections of the database own.
func only(coll string, as ...privilege.Action) privilege.Privilege {
	return privilege.On(privilege.Namespace(namespace.NS{DB: "own", Coll: coll}), as...)
}

func TestWhoMayOnlyReadOneCollection(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.userWith("mallory", nil, only("c", privilege.Find))
	g.allowed("mallory", "own", `{find: "c"}`)
	g.never("mallory", `
		own {find: "secret"}
		own {count: "secret", query: {key: {$regex: "^h"}}}
		own {distinct: "secret", key: "key"}
		own {aggregate: "secret", pipeline: [], cursor: {}}
		own {aggregate: "c", pipeline: [{$lookup: {from: "secret", pipeline: [], as: "x"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$lookup: {from: "secret", localField: "_id", foreignField: "_id", as: "x"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$lookup: {from: "c", pipeline: [{$unionWith: "secret"}], as: "x"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$facet: {a: [{$graphLookup: {from: "secret", startWith: "$x", connectFromField: "a", connectToField: "b", as: "x"}}]}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$graphLookup: {from: "c", from: "secret", startWith: "$x", connectFromField: "a", connectToField: "b", as: "x"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$unionWith: {coll: "secret", db: "other"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$unionWith: {coll: "treasure", db: "admin", pipeline: [{$match: {}}]}}], cursor: {}}
		own {aggregate: 1, pipeline: [{$documents: [{a: 1}]}, {$lookup: {from: "secret", pipeline: [], as: "x"}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$collStats: {storageStats: {}}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$out: "loot"}], cursor: {}}
		own {aggregate: "c", pipeline: [{$merge: {into: {db: "other", coll: "secret"}}}], cursor: {}}
		own {mapReduce: "secret", map: "function() {}", reduce: "function() {}", out: {inline: 1}}
		own {mapReduce: "c", map: "function() {}", reduce: "function() {}", out: "loot"}
		own {explain: {find: "secret", filter: {key: "hunter2"}}, verbosity: "executionStats"}
		own {explain: {aggregate: "c", pipeline: [{$lookup: {from: "secret", pipeline: [], as: "x"}}], cursor: {}}}
		own {aggregate: "secret", pipeline: [], explain: true}
		own {explain: {count: "secret", query: {key: "hunter2"}}}
		own {explain: {distinct: "secret", key: "key"}}
		own {create: "v", viewOn: "secret", pipeline: []}
		own {dataSize: "own.secret"}
		own {filemd5: 1, root: "secret"}
		own {findAndModify: "c", query: {}, remove: true}
		own {findAndModify: "c", query: {}, update: {a: 1}}
		own {planCacheListFilters: "c"}
		own {collStats: "c"}
		own {listIndexes: "c"}
		own {listCollections: 1}
		own {dbStats: 1}
		own {ebbTTL: "c"}
		own {dbHash: 1}
		own {validate: "c"}
		admin {find: "system.users"}
		admin {renameCollection: "own.secret", to: "own.c", dropTarget: true}
		admin {bulkWrite: 1, ops: [{update: 0, filter: {key: {$gt: ""}}, updateMods: {$set: {a: 1}}}], nsInfo: [{ns: "own.secret"}]}
		admin {getLog: "global"}
		admin {currentOp: 1}
		admin {aggregate: 1, pipeline: [{$currentOp: {allUsers: true}}], cursor: {}}
		admin {aggregate: 1, pipeline: [{$listCatalog: {}}], cursor: {}}
		own {profile: 2}
		own {find: "system.profile"}
		local {find: "oplog.rs"}
		config {find: "transactions"}`)
}

// A collection has more than one name: none of them is a way around.
func TestOtherNames(t *testing.T) {
	g := newCastle(t, newHarness(t))
	u := g.server.Query.Store.Catalog().Collection(namespace.NS{DB: "own", Coll: "secret"}).UUID
	g.userWith("mallory", []auth.Name{roleIn("read", "other")}, only("c", privilege.Find, privilege.ListIndexes))
	g.userWith("clerk", nil, only("c", privilege.ListIndexes), privilege.On(privilege.Cluster(), privilege.UseUUID))
	index := func(user, db string) bson.Doc {
		return g.send(t.Context(), user, db, bson.Build().Binary("listIndexes", 4, u[:]).Doc()).Body
	}
	for _, user := range []string{"mallory", "clerk"} {
		if reply := index(user, "own"); !isRefusal(reply) {
			t.Errorf("by UUID %s gets %s", user, reply)
		}
	}
	if reply := index("mallory", "other"); !isRefusal(reply) {
		t.Errorf("by UUID, from another database: %s", reply)
	}
	if reply := index("king", "own"); !reply.Lookup("ok").Truthy() {
		t.Errorf("by UUID, with all rights: %s", reply)
	}
	symbol := bson.Build().Value("find", bson.Value{Type: bson.TypeSymbol, Data: bson.String("secret").Data}).Doc()
	g.userWith("eve", []auth.Name{roleIn("read", "own")})
	for user, want := range map[string]bool{"mallory": false, "eve": true} {
		reply := g.send(t.Context(), user, "own", symbol).Body
		if isRefusal(reply) == want {
			t.Errorf("a symbol as a name, %s: %s", user, reply)
		}
	}
	symbol = bson.Build().Value("find", bson.Value{Type: bson.TypeSymbol, Data: bson.String("system.users").Data}).Doc()
	g.user("reader", roleIn("read", "admin"))
	if reply := g.send(t.Context(), "reader", "admin", symbol).Body; !isRefusal(reply) {
		t.Errorf("system.users by a symbol: %s", reply)
	}
	// The first $db, the only one that counts, is what is looked at.
	twice := bson.MustDoc(`{find: "secret", $db: "other", $db: "own"}`)
	reply := g.server.Handle(t.Context(), g.conn("mallory"), Request{Body: twice}).Body
	if text := reply.String(); reply.Lookup("ok").Truthy() && !strings.Contains(text, "other.secret") {
		t.Errorf("two databases: %s", text)
	}
	reply = g.server.Handle(t.Context(), g.conn("mallory"), Request{Body: bson.MustDoc(`{find: "secret", $db: "own", $db: "other"}`)}).Body
	if !isRefusal(reply) {
		t.Errorf("two databases the other way around: %s", reply)
	}
	g.never("mallory", `own {explain: {find: "secret", $db: "own"}}`)
	g.silent("mallory", `
		own {explain: {find: "secret", $db: "other"}}
		other {explain: {find: "secret", $db: "own"}}
		own {find: "c", find: "secret"}
		own {aggregate: "c", aggregate: "secret", pipeline: [], cursor: {}}
		own {find: "../secret"}
		own {find: "c.secret"}
		other {find: "..own.secret"}`)
}

// Readers of the admin database do not get to see who may log in.
func TestUsersAreNotRead(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("reader", roleIn("readWrite", "admin"), roleIn("dbAdmin", "admin"), roleIn("readAnyDatabase", "admin"))
	attempts := `
		admin {find: "system.users"}
		admin {aggregate: "system.users", pipeline: [], cursor: {}}
		admin {aggregate: "treasure", pipeline: [{$lookup: {from: "system.users", pipeline: [], as: "x"}}], cursor: {}}
		admin {aggregate: "treasure", pipeline: [{$unionWith: "system.users"}], cursor: {}}
		admin {aggregate: "treasure", pipeline: [{$facet: {a: [{$unionWith: {coll: "system.roles"}}]}}], cursor: {}}
		own {aggregate: "c", pipeline: [{$unionWith: {db: "admin", coll: "system.users"}}], cursor: {}}
		admin {aggregate: "system.users", pipeline: [{$out: {db: "own", coll: "loot"}}], cursor: {}}
		admin {create: "v", viewOn: "system.users", pipeline: []}
		admin {create: "v", viewOn: "treasure", pipeline: [{$unionWith: "system.users"}]}
		admin {create: "v", viewOn: "treasure", pipeline: [{$lookup: {from: "system.roles", pipeline: [], as: "x"}}]}
		admin {renameCollection: "admin.system.users", to: "admin.loot"}
		admin {renameCollection: "admin.treasure", to: "admin.system.users", dropTarget: true}
		admin {cloneCollectionAsCapped: "system.users", toCollection: "loot", size: 4096}
		admin {cloneCollectionAsCapped: "treasure", toCollection: "system.users", size: 4096}
		admin {convertToCapped: "system.users", size: 4096}
		admin {mapReduce: "system.users", map: "function() { emit(1, this) }", reduce: "function() {}", out: {inline: 1}}
		admin {distinct: "system.users", key: "key"}
		admin {insert: "system.users", documents: [{_id: "own.mallory", user: "mallory", db: "own", roles: [{role: "root", db: "admin"}]}]}
		admin {update: "system.users", updates: [{q: {}, u: {$set: {roles: [{role: "root", db: "admin"}]}}}]}
		admin {delete: "system.users", deletes: [{q: {}, limit: 0}]}
		admin {findAndModify: "system.users", query: {}, update: {$set: {roles: []}}}
		admin {drop: "system.users"}
		admin {createIndexes: "system.users", indexes: [{key: {key: 1}, name: "key_1"}]}
		admin {collMod: "system.users", validator: {}}
		admin {bulkWrite: 1, ops: [{insert: 0, document: {_id: 1}}], nsInfo: [{ns: "admin.system.users"}]}
		admin {applyOps: [{op: "i", ns: "admin.system.users", o: {_id: 1}}]}
		admin {listIndexes: "system.users"}
		admin {validate: "system.users"}
		admin {explain: {find: "system.users"}}`
	g.never("reader", attempts)
	g.silent("reader", `
		admin {aggregate: "treasure", pipeline: [{$match: {_id: 1}}, {$out: "system.users"}], cursor: {}}
		admin {listCollections: 1, filter: {name: "system.users"}}`)
}

// Who may make views but not read gets others to read for him: but not what they may not read either.
func TestViewsDoNotEscalate(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("maker", roleIn("dbAdmin", "admin"), roleIn("dbAdmin", "own"), roleIn("dbAdmin", "config"))
	g.userWith("reader", nil, only("v", privilege.Find), privilege.On(privilege.Database("admin"), privilege.Find))
	g.never("maker", `
		admin {create: "v", viewOn: "system.users", pipeline: []}
		admin {create: "v", viewOn: "treasure", pipeline: [{$lookup: {from: "system.users", pipeline: [], as: "x"}}]}
		own {create: "v", viewOn: "c", pipeline: [{$unionWith: {db: "admin", coll: "system.users"}}]}
		own {create: "v", viewOn: "c", pipeline: [{$unionWith: {coll: "c", pipeline: [{$indexStats: {}}]}}]}
		config {create: "v", viewOn: "system.sessions", pipeline: [{$listSessions: {allUsers: true}}]}`)
	g.allowed("maker", "own", `{create: "v", viewOn: "c", pipeline: []}`)
	g.never("maker", `
		own {collMod: "v", viewOn: "system.js", pipeline: []}
		own {collMod: "v", viewOn: "c", pipeline: [{$unionWith: {db: "admin", coll: "system.users"}}]}
		own {find: "v"}`)
	if reply := g.allowed("reader", "own", `{find: "v"}`).String(); !strings.Contains(reply, hunter2) {
		t.Errorf("who may read a view reads %s", reply)
	}
	g.never("reader", `
		own {find: "c"}
		own {aggregate: "v", pipeline: [{$lookup: {from: "c", pipeline: [], as: "x"}}], cursor: {}}`)
	// Who reads what he makes a view of needs the right to both.
	g.userWith("mallory", nil, only("w", privilege.CreateCollection, privilege.CollMod, privilege.Find))
	g.never("mallory", `
		own {create: "w", viewOn: "secret", pipeline: []}
		own {create: "w", viewOn: "v", pipeline: []}
		own {collMod: "w", viewOn: "secret", pipeline: []}
		own {collMod: "w", pipeline: [{$unionWith: "secret"}]}`)
}

func TestCursorsOfOthers(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.allowed("king", "own", `{insert: "c", documents: [{_id: 1}, {_id: 2}, {_id: 3}]}`)
	g.user("alice", roleIn("read", "own"))
	g.user("mallory", roleIn("readWrite", "own"))
	cursor := func(user, command string) int64 {
		t.Helper()
		return g.allowed(user, "own", command).Lookup("cursor").Doc().Lookup("id").Int64()
	}
	id := cursor("alice", `{find: "c", batchSize: 1}`)
	lists := cursor("alice", `{listCollections: 1, cursor: {batchSize: 0}}`)
	g.never("mallory", fmt.Sprintf(`
		own {getMore: Long(%[1]d), collection: "c"}
		own {getMore: Long(%[2]d), collection: "$cmd.listCollections"}
		own {killCursors: "c", cursors: [Long(%[1]d)]}
		own {killCursors: "secret", cursors: [Long(%[1]d)]}
		own {killCursors: "c", cursors: [Long(1), Long(%[2]d)]}`, id, lists))
	if text := g.allowed("mallory", "own", fmt.Sprintf(`{killCursors: "c", cursors: [Long(%d)]}`, id+1)).String(); !strings.Contains(text, "cursorsNotFound: [ ") {
		t.Errorf("a cursor that is not there: %s", text)
	}
	// A role that was taken away ends what was opened by it.
	g.allowed("alice", "own", fmt.Sprintf(`{getMore: Long(%d), collection: "c", batchSize: 1}`, id))
	g.is(auth.Name{Name: "alice", DB: "own"}, []auth.Name{roleIn("read", "other")})
	if text := g.refused("alice", "own", fmt.Sprintf(`{getMore: Long(%d), collection: "c", batchSize: 1}`, id)); !strings.Contains(text, "not authorized for getMore with cursor id") {
		t.Errorf("the cursor of a role that is gone: %s", text)
	}
	// One that was granted beside it does not.
	g.is(auth.Name{Name: "alice", DB: "own"}, []auth.Name{roleIn("read", "other"), roleIn("readWrite", "own")})
	g.allowed("alice", "own", fmt.Sprintf(`{getMore: Long(%d), collection: "c", batchSize: 1}`, id))
	// Nor does another user of the name go on, nor nobody.
	other := g.conn("alice of other")
	other.become(g.is(auth.Name{Name: "alice", DB: "other"}, []auth.Name{roleIn("readAnyDatabase", "admin")}))
	g.never("alice of other", fmt.Sprintf(`own {getMore: Long(%d), collection: "c"}`, id))
	g.never("nobody", fmt.Sprintf(`own {getMore: Long(%d), collection: "c"}`, id))
	g.allowed("alice", "own", fmt.Sprintf(`{killCursors: "c", cursors: [Long(%d)]}`, id))
	// Who may kill any cursor of a collection may.
	id = cursor("alice", `{find: "c", batchSize: 1}`)
	g.userWith("keeper", nil, only("c", privilege.KillAnyCursor))
	g.allowed("keeper", "own", fmt.Sprintf(`{killCursors: "c", cursors: [Long(%d)]}`, id))
}

func TestUsersWhoAreGone(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("alice", roleIn("read", "own"))
	g.allowed("alice", "own", `{find: "c"}`)
	delete(g.people, auth.Name{Name: "alice", DB: "own"})
	if text := g.refused("alice", "own", `{find: "c"}`); !strings.Contains(text, "requires authentication") {
		t.Error(text)
	}
	g.allowed("alice", "admin", `{hello: 1}`)
	if text := g.refused("alice", "own", `{find: "c"}`); !strings.Contains(text, "requires authentication") {
		t.Error(text)
	}
}

// What others do, and with what, is for those to see who have inprog.
func TestOperationsOfOthers(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("alice", roleIn("readWrite", "own"))
	g.user("mallory", roleIn("readWrite", "other"))
	g.allowed("alice", "own", `{insert: "c", documents: [{_id: 1}, {_id: 2}]}`)
	g.allowed("alice", "own", fmt.Sprintf(`{find: "c", filter: {key: {$ne: %q}}, batchSize: 1, comment: %q}`, hunter2, hunter2))
	g.silent("mallory", `
		admin {currentOp: 1, $ownOps: true, $all: true}
		admin {aggregate: 1, pipeline: [{$currentOp: {idleCursors: true, idleConnections: true}}], cursor: {}}
		admin {aggregate: 1, pipeline: [{$currentOp: {idleCursors: true, allUsers: false}}], cursor: {}}`)
	own := g.allowed("alice", "admin", `{aggregate: 1, pipeline: [{$currentOp: {idleCursors: true}}], cursor: {}}`).String()
	if !strings.Contains(own, hunter2) || !strings.Contains(own, `effectiveUsers: [ { user: "alice", db: "own" } ]`) {
		t.Errorf("one's own cursor is not shown: %s", own)
	}
	for _, shown := range []string{g.allowed("mallory", "admin", `{currentOp: 1, $ownOps: true, $all: true}`).String(), g.allowed("mallory", "admin", `{aggregate: 1, pipeline: [{$currentOp: {idleConnections: true}}], cursor: {}}`).String()} {
		if strings.Contains(shown, "alice") || strings.Contains(shown, "king") || !strings.Contains(shown, "mallory") {
			t.Errorf("of those who do something is shown %s", shown)
		}
	}
	g.user("monitor", roleIn("clusterMonitor", "admin"))
	if shown := g.allowed("monitor", "admin", `{currentOp: 1, $all: true}`).String(); !strings.Contains(shown, "alice") {
		t.Errorf("who has inprog sees %s", shown)
	}
	g.never("mallory", `
		admin {killOp: 1, op: 1}
		admin {currentOp: 1}
		admin {killAllSessions: []}
		admin {killAllSessionsByPattern: []}`)
	// Who may kill any session does not act as somebody else by that.
	g.user("host", roleIn("hostManager", "admin"))
	g.never("host", `
		admin {killAllSessionsByPattern: [{users: [{user: "king", db: "admin"}]}]}
		admin {killAllSessionsByPattern: [{}, {roles: []}]}`)
	g.allowed("host", "admin", `{killAllSessionsByPattern: [{}]}`)
}

func TestRefusalsTellNoSecrets(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("mallory")
	g.server.table["insert"].Sensitive = []string{"documents"}
	text := g.refused("mallory", "own", fmt.Sprintf(`{insert: "c", documents: %q}`, hunter2))
	if strings.Contains(text, hunter2) || !strings.Contains(text, `not authorized on own to execute command { insert: "c", documents: "xxx", $db: "own" }`) {
		t.Error(text)
	}
	text = g.refused("mallory", "own", fmt.Sprintf(`{find: "c", filter: {a: %q}}`, strings.Repeat("long ", 1<<20)))
	if len(text) > 2*maxRefusedBytes || !strings.Contains(text, "not authorized on own to execute command { find:") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// Beside a write that is allowed, what it brings along may not be.
func TestWritesWithMore(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.userWith("updater", nil, only("c", privilege.Update, privilege.Find))
	g.userWith("writer", []auth.Name{roleIn("readWrite", "own")})
	g.allowed("updater", "own", `{update: "c", updates: [{q: {_id: 1}, u: {$set: {a: 1}}}]}`)
	g.never("updater", `
		own {update: "c", updates: [{q: {_id: 1}, u: {$set: {a: 1}}, upsert: true}]}
		own {update: "c", updates: [{q: {_id: 1}, u: {$set: {a: 1}}}, {q: {_id: 1}, u: {$set: {a: 1}}, upsert: 1}]}
		own {update: "c", updates: [{q: {_id: 1}, u: {$set: {a: 1}}, upsert: false, upsert: true}]}
		own {findAndModify: "c", query: {_id: 5}, update: {a: 1}, upsert: true}
		own {findAndModify: "c", query: {_id: 5}, remove: 1}
		own {insert: "c", documents: [{_id: 7}]}
		own {create: "d"}
		admin {bulkWrite: 1, ops: [{update: 0, filter: {}, updateMods: {a: 1}, upsert: true}], nsInfo: [{ns: "own.c"}]}
		admin {bulkWrite: 1, ops: [{delete: 0, filter: {}}], nsInfo: [{ns: "own.c"}]}
		admin {bulkWrite: 1, ops: [{update: 0, filter: {}, updateMods: {$set: {a: 1}}}, {insert: 1, document: {}}], nsInfo: [{ns: "own.c"}, {ns: "other.secret"}]}`)
	g.never("writer", `
		own {insert: "c", documents: [{_id: 8}], bypassDocumentValidation: true}
		own {update: "c", updates: [], bypassDocumentValidation: 1}
		own {findAndModify: "c", query: {}, update: {}, bypassDocumentValidation: true}
		own {aggregate: "c", pipeline: [{$out: "d"}], cursor: {}, bypassDocumentValidation: true}
		own {createIndexes: "c", indexes: [{key: {t: 1}, name: "t_1", expireAfterSeconds: 5}], force: true}
		own {applyOps: [{op: "i", ns: "own.c", o: {_id: 9}}]}`)
	// A document sequence is looked at like the field that it stands for.
	if reply := g.sequence("updater", `{update: "c"}`, "updates", `{q: {_id: 1}, u: {a: 1}, upsert: true}`); !isRefusal(reply) {
		t.Errorf("an upsert in a sequence: %s", reply)
	}
	if reply := g.sequence("updater", `{update: "c"}`, "updates", `{q: {_id: 1}, u: {$set: {a: 1}}}`); !reply.Lookup("ok").Truthy() {
		t.Errorf("an update in a sequence: %s", reply)
	}
}

// applyOps does what its operations say with the rights of who sends it.
func TestApplyOpsDoesNotEscalate(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.userWith("mallory", []auth.Name{roleIn("readWrite", "own")}, privilege.On(privilege.Cluster(), privilege.ApplyOps))
	g.allowed("mallory", "own", `{applyOps: [{op: "i", ns: "own.c", o: {_id: 9}}, {op: "c", ns: "own.$cmd", o: {create: "made"}}]}`)
	g.never("mallory", `
		own {applyOps: [{op: "i", ns: "own.c", o: {_id: 10}}, {op: "i", ns: "admin.system.users", o: {_id: "own.mallory"}}]}
		own {applyOps: [{op: "u", ns: "other.secret", o2: {_id: "other.secret"}, o: {$set: {a: 1}}}]}
		own {applyOps: [{op: "d", ns: "other.secret", o: {_id: "other.secret"}}]}
		own {applyOps: [{op: "n", ns: "", o: {}}]}
		own {applyOps: [{op: "c", ns: "other.$cmd", o: {drop: "secret"}}]}
		own {applyOps: [{op: "c", ns: "own.$cmd", o: {renameCollection: "own.c", to: "admin.system.users"}}]}
		own {applyOps: [{op: "c", ns: "own.$cmd", o: {applyOps: [{op: "c", ns: "other.$cmd", o: {dropDatabase: 1}}]}}]}
		own {applyOps: [{op: "c", ns: "own.$cmd", o: {create: "w", viewOn: "system.users", pipeline: []}}]}
		own {applyOps: [{op: "i", ns: "own.c", o: {_id: 10}, ui: UUID("00112233-4455-6677-8899-aabbccddeeff")}]}`)
	if text := g.allowed("mallory", "own", `{count: "c", query: {_id: 10}}`).String(); !strings.Contains(text, "n: 0") {
		t.Errorf("of an applyOps that was refused, something was done: %s", text)
	}
}

// What one may see of the catalogue is what one may do something with.
func TestNamesOfOthers(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.userWith("mallory", nil, only("c", privilege.Find))
	shown := g.allowed("mallory", "admin", `{listDatabases: 1, nameOnly: true}`).String()
	if shown != `{ databases: [ { name: "own" } ], ok: 1.0 }` {
		t.Error(shown)
	}
	g.never("mallory", `
		admin {listDatabases: 1, authorizedDatabases: false}
		own {listCollections: 1}
		own {listCollections: 1, nameOnly: true}
		own {listCollections: 1, authorizedCollections: true}
		other {listCollections: 1, nameOnly: true, authorizedCollections: true}`)
	shown = g.allowed("mallory", "own", `{listCollections: 1, nameOnly: true, authorizedCollections: true}`).String()
	if !strings.Contains(shown, `name: "c"`) || strings.Contains(shown, "secret") {
		t.Error(shown)
	}
	if shown := g.allowed("king", "admin", `{listDatabases: 1, nameOnly: true}`).String(); !strings.Contains(shown, "other") {
		t.Error(shown)
	}
}

// TestRootOnSystemCollections: the role root is not everything. On collections whose names begin with "system." it has what MongoDB's roles name one by one,
// and no more: without the privilege on that very collection a command is refused, before anybody looks at whether the name would do; with it the command is
// not.
func TestRootOnSystemCollections(t *testing.T) {
	g := newCastle(t, newHarness(t))
	g.user("root", roleIn("root", "admin"))
	for i, c := range []struct {
		db, command, on string
		missing         []privilege.Action
	}{
		{"own", `{cloneCollectionAsCapped: "c", toCollection: "system.indexes", size: 100000}`, "system.indexes", []privilege.Action{privilege.Insert, privilege.CreateIndex, privilege.ConvertToCapped}},
		{"own", `{cloneCollectionAsCapped: "c", toCollection: "system.namespaces", size: 100000}`, "system.namespaces", []privilege.Action{privilege.Insert, privilege.CreateIndex, privilege.ConvertToCapped}},
		{"own", `{cloneCollectionAsCapped: "c", toCollection: "system.other", size: 100000}`, "system.other", []privilege.Action{privilege.Insert, privilege.CreateIndex, privilege.ConvertToCapped}},
		{"own", `{cloneCollectionAsCapped: "c", toCollection: "system.profile", size: 100000}`, "system.profile", []privilege.Action{privilege.Insert, privilege.CreateIndex}},
		{"own", `{cloneCollectionAsCapped: "c", toCollection: "system.views", size: 100000}`, "system.views", []privilege.Action{privilege.Insert, privilege.CreateIndex, privilege.ConvertToCapped}},
		{"own", `{collMod: "system.views", validator: {a: 1}}`, "system.views", []privilege.Action{privilege.CollMod}},
		{"own", `{compact: "system.views"}`, "system.views", []privilege.Action{privilege.Compact}},
		{"own", `{convertToCapped: "system.views", size: 100000}`, "system.views", []privilege.Action{privilege.ConvertToCapped}},
		{"own", `{create: "system.arbitrary"}`, "system.arbitrary", []privilege.Action{privilege.CreateCollection}},
		{"own", `{create: "system.views"}`, "system.views", []privilege.Action{privilege.CreateCollection}},
		{"own", `{drop: "system.views"}`, "system.views", []privilege.Action{privilege.DropCollection}},
		{"admin", `{renameCollection: "own.system.other", to: "own.loot"}`, "system.other", []privilege.Action{privilege.Find, privilege.DropCollection}},
		{"admin", `{renameCollection: "own.c", to: "own.system.other"}`, "system.other", []privilege.Action{privilege.Insert, privilege.CreateIndex}},
		{"admin", `{renameCollection: "own.c", to: "own.system.profile"}`, "system.profile", []privilege.Action{privilege.Insert, privilege.CreateIndex}},
		{"admin", `{renameCollection: "own.system.views", to: "own.loot"}`, "system.views", []privilege.Action{privilege.Find, privilege.DropCollection}},
		{"admin", `{renameCollection: "own.c", to: "own.system.views"}`, "system.views", []privilege.Action{privilege.Insert, privilege.CreateIndex}},
		{"own", `{createIndexes: "system.other", indexes: [{key: {a: 1}, name: "a_1"}]}`, "system.other", []privilege.Action{privilege.CreateIndex}},
		{"own", `{createIndexes: "system.other", indexes: [{key: {a: 1}, name: "a_1", hidden: true}]}`, "system.other", []privilege.Action{privilege.CreateIndex}},
		{"own", `{aggregate: "c", pipeline: [{$merge: {into: "system.other"}}], cursor: {}}`, "system.other", []privilege.Action{privilege.Insert, privilege.Update}},
		{"own", `{aggregate: "c", pipeline: [{$out: "system.other"}], cursor: {}}`, "system.other", []privilege.Action{privilege.Insert, privilege.Remove}},
		{"own", `{planCacheSetFilter: "system.other", query: {a: 1}, indexes: [{a: 1}]}`, "system.other", []privilege.Action{privilege.PlanCacheIndexFilter}},
	} {
		g.never("root", c.db+" "+c.command)
		may := fmt.Sprint("root and more ", i)
		g.userWith(may, []auth.Name{roleIn("root", "admin")}, only(c.on, c.missing...))
		if reply := g.as(may, c.db, c.command); isRefusal(reply) {
			t.Errorf("%s is refused with %s on %s, too: %s", c.command, c.missing, c.on, reply)
		}
		for j := range c.missing { // and it is all of them
			less := fmt.Sprint("root and less ", i, " ", j)
			g.userWith(less, []auth.Name{roleIn("root", "admin")}, only(c.on, slices.Delete(slices.Clone(c.missing), j, j+1)...))
			g.never(less, c.db+" "+c.command)
		}
	}
}
