package command

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/testseed"
)

// TestDefinitionsBesideOthers: several clients change the definitions of the same few collections, at random, beside others that write to them, over one server after
// the other in a TiKV cluster. Each command ends well, or with an error that it may have, and what is left is valid, for the server that comes next too.
func TestDefinitionsBesideOthers(t *testing.T) {
	seed := testseed.Of(t)
	cluster := tikvtest.New(t)
	const servers, clients, commands = 3, 4, 100
	for round := range uint64(servers) {
		engine := cluster.Open(t, tikvkv.Options{Term: time.Hour})
		h := newHarnessOn(t, func(kv.Engine) kv.Engine { return engine })
		h.validateAll("test")
		var all sync.WaitGroup
		for i := range uint64(clients) {
			conn := h.conn(fmt.Sprint(i))
			random := rand.New(rand.NewPCG(seed, round*clients+i))
			all.Go(func() {
				for range commands {
					db, command := anyDefinition(random)
					reply := h.sendOn(t.Context(), conn, db, bson.MustDoc(command)).Body
					if code := reply.Lookup("code"); !code.IsMissing() && !besideOthers[mongoerr.Code(code.Int32())] {
						t.Errorf("%.200s: %s", command, reply)
					}
				}
			})
		}
		all.Wait()
		h.validateAll("test")
		h.server.Close()
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// besideOthers are the errors that commands may have since others change what they are about.
var besideOthers = map[mongoerr.Code]bool{mongoerr.NamespaceNotFound: true, mongoerr.NamespaceExists: true, mongoerr.IndexNotFound: true, mongoerr.IndexOptionsConflict: true,
	mongoerr.IndexBuildAborted: true, mongoerr.BackgroundOperationInProgressForNamespace: true, mongoerr.QueryPlanKilled: true}

// anyDefinition is a command on one of a few collections, and its database. Two of three change definitions.
func anyDefinition(random *rand.Rand) (db, command string) {
	name := func() string { return string("abc"[random.IntN(3)]) }
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	c := name()
	switch random.IntN(18) {
	case 0:
		return "test", fmt.Sprintf("{create: '%s'}", c)
	case 1:
		return "test", fmt.Sprintf("{create: '%s', clusteredIndex: {key: {_id: 1}, unique: true}}", c)
	case 2, 3, 4:
		return "test", fmt.Sprintf("{createIndexes: '%s', indexes: [%s]}", c, one("{key: {n: 1}, name: 'n'}", "{key: {m: 1}, name: 'm'}, {key: {n: -1, m: 1}, name: 'nm'}",
			"{key: {d: 1}, name: 'd', expireAfterSeconds: 1000000}", "{key: {n: 1, _id: 1}, name: 'u', unique: true}", "{key: {x: 'text'}, name: 'x'}", "{key: {n: 1}, name: 'other', sparse: true}"))
	case 5, 6:
		return "test", fmt.Sprintf("{dropIndexes: '%s', index: '%s'}", c, one("n", "m", "nm", "d", "u", "x", "*"))
	case 7:
		return "test", fmt.Sprintf("{collMod: '%s', index: {name: 'd', expireAfterSeconds: %d}}", c, 1_000_000+random.IntN(10))
	case 8:
		return "test", fmt.Sprintf("{collMod: '%s', %s}", c, one("validator: {n: {$gte: 0}}", "validator: {}", "index: {name: 'n', hidden: true}", "index: {name: 'n', hidden: false}", "index: {name: 'nm', prepareUnique: true}"))
	case 9, 10:
		return "admin", fmt.Sprintf("{renameCollection: 'test.%s', to: 'test.%s', dropTarget: %t}", c, one(strings.ReplaceAll("abc", c, "")[:1], strings.ReplaceAll("abc", c, "")[1:]), random.IntN(2) == 0)
	case 11:
		return "test", fmt.Sprintf("{drop: '%s'}", c)
	case 12:
		return "test", fmt.Sprintf("{update: '%s', updates: [{q: {n: {$gt: %d}}, u: {$inc: {n: 1}}, multi: true}]}", c, random.IntN(50))
	case 13:
		return "test", fmt.Sprintf("{delete: '%s', deletes: [{q: {n: %d}, limit: 0}]}", c, random.IntN(50))
	default:
		var documents []string
		for range random.IntN(40) + 1 {
			text := ""
			if random.IntN(200) == 0 { // it is stored in parts
				text = strings.Repeat("x", 300<<10)
			}
			documents = append(documents, fmt.Sprintf("{_id: %d, n: %d, m: [%d, %d], d: ISODate('2026-01-02T03:00:00Z'), x: 'so many words', t: '%s'}",
				random.IntN(300), random.IntN(50), random.IntN(9), random.IntN(9), text))
		}
		return "test", fmt.Sprintf("{insert: '%s', documents: [%s], ordered: false}", c, strings.Join(documents, ", "))
	}
}

// validateAll validates all collections of a database.
func (h *harness) validateAll(db string) {
	h.t.Helper()
	batch := h.must("validates", db, "{listCollections: 1, nameOnly: true}").Lookup("cursor").Doc().Lookup("firstBatch").Doc()
	for _, c := range batch.Values(nil) {
		name := c.Doc().Lookup("name").Str()
		if reply := h.must("validates", db, fmt.Sprintf("{validate: '%s', full: true}", name)); !reply.Lookup("valid").Truthy() {
			h.t.Errorf("%s: %s", name, reply)
		}
	}
}
