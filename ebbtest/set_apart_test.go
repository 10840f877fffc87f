package ebbtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/clock"
)

// unheardCase is a command, sent to a primary whose others do not hear of what it commits.
type unheardCase struct {
	name string
	// prepare is done before on a set that is well; an error is none.
	prepare []bson.D
	command bson.D
	// fails says that the command fails with the code of what has ended it, in the place of a writeConcernError: it would have to see what it has written, or
	// takes no write concern as MongoDB's does not.
	fails bool
	// onlyTime says that it takes no write concern.
	onlyTime bool
	// see is what the command changes, as every member shows it, or the primary alone; it is want when the others are there again.
	see     look
	primary bool
	want    string
}

// look is what a member shows.
type look func(*testing.T, *mongo.Client) string

// of is a command, to the database db.
func of(db string, command ...bson.E) bson.D { return append(command, bson.E{Key: "$db", Value: db}) }

// is is a field of a command.
func is(key string, value any) bson.E { return bson.E{Key: key, Value: value} }

// runAt sends a command to the database that it says.
func runAt(t *testing.T, c *mongo.Client, command bson.D) (bson.Raw, error) {
	last := len(command) - 1
	return c.Database(command[last].Value.(string)).RunCommand(t.Context(), command[:last]).Raw()
}

// field is what is at a path of a command's reply.
func field(path string, command bson.D) look {
	return func(t *testing.T, c *mongo.Client) string {
		reply, err := runAt(t, c, command)
		if err != nil {
			return err.Error()
		}
		v, err := reply.LookupErr(strings.Split(path, ".")...)
		if err != nil {
			return "nothing"
		}
		return v.String()
	}
}

// stored is what is at a path of the only document of a collection that has a field.
func stored(path, db, coll, key, value string) look {
	return field("cursor.firstBatch.0."+path, of(db, is("find", coll), is("filter", bson.M{key: value})))
}

// ids are those of the documents of a collection.
func ids(db, coll string) look {
	return func(t *testing.T, c *mongo.Client) string {
		var docs []struct {
			ID any `bson:"_id"`
		}
		found, err := c.Database(db).Collection(coll).Find(t.Context(), bson.M{})
		if err == nil {
			err = found.All(t.Context(), &docs)
		}
		if err != nil {
			return err.Error()
		}
		out := make([]string, len(docs))
		for i, d := range docs {
			out[i] = fmt.Sprint(d.ID)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
}

// collections are those of a database.
func collections(db string) look {
	return func(t *testing.T, c *mongo.Client) string {
		names, err := c.Database(db).ListCollectionNames(t.Context(), bson.M{})
		if err != nil {
			return err.Error()
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
}

// docs is an insert of documents of more than a kilobyte with these _ids.
func docs(db, coll string, ids ...int) bson.D {
	var out bson.A
	for _, id := range ids {
		out = append(out, bson.M{"_id": id, "pad": strings.Repeat("x", 1200)})
	}
	return of(db, is("insert", coll), is("documents", out))
}

// await is what a member shows when that is what is wanted, or after some time: what is done behind a commit is done soon.
func await(t *testing.T, c *mongo.Client, see look, want string) string {
	now := see(t, c)
	for try := 0; now != want && try < 300; try++ {
		_ = clock.Wait(t.Context(), clock.Wall(), 10*time.Millisecond)
		now = see(t, c)
	}
	return now
}

func drop(db, coll string) bson.D { return of(db, is("drop", coll)) }

// unheardCases are the commands whose commits are neither those of plain writes nor of definitions alone, of which other tests tell.
func unheardCases() []unheardCase {
	none := bson.A{}
	user := []bson.D{of("u", is("createUser", "a"), is("pwd", "secret"), is("roles", none)), of("u", is("updateUser", "a"), is("customData", bson.M{"n": 1}), is("roles", none))}
	noUser := []bson.D{user[0], of("u", is("dropAllUsersFromDatabase", 1))}
	reads := bson.A{bson.M{"resource": bson.M{"db": "r", "collection": ""}, "actions": bson.A{"find"}}}
	role := []bson.D{of("r", is("createRole", "b"), is("privileges", none), is("roles", none)), of("r", is("updateRole", "b"), is("privileges", none), is("roles", none))}
	noRole := []bson.D{role[0], of("r", is("dropAllRolesFromDatabase", 1))}
	users, roles := ids("admin", "system.users"), ids("admin", "system.roles")
	ofUser := func(path string) look { return stored(path, "admin", "system.users", "user", "a") }
	ofRole := func(path string) look { return stored(path, "admin", "system.roles", "role", "b") }
	pipe := func(db string, last bson.M) bson.D {
		return of(db, is("aggregate", "src"), is("pipeline", bson.A{last}), is("cursor", bson.M{}))
	}
	mapped := func(db string, out any) bson.D {
		return of(db, is("mapReduce", "src"), is("map", "function() { emit(this._id, 1) }"), is("reduce", "function(k, v) { return 1 }"), is("out", out))
	}
	blocks := func(on bool) bson.D { return of("admin", is("setUserWriteBlockMode", 1), is("global", on)) }
	changeStreams := func(seconds int64) bson.D {
		return of("admin", is("setClusterParameter", bson.M{"changeStreams": bson.M{"expireAfterSeconds": seconds}}))
	}
	defaults := func(level string) bson.D {
		return of("admin", is("setDefaultRWConcern", 1), is("defaultReadConcern", bson.M{"level": level}))
	}
	version := func(v string) bson.D {
		return of("admin", is("setFeatureCompatibilityVersion", v), is("confirm", true))
	}
	settings := func(framework string) bson.D {
		query := bson.D{is("find", "src"), is("filter", bson.M{"a": 1}), is("$db", "s")}
		return of("admin", is("setQuerySettings", query), is("settings", bson.M{"queryFramework": framework}))
	}
	hold := func(at any) bson.D { return of("admin", is("setParameter", 1), is("ttlHold", at)) }
	return []unheardCase{
		{"createUser, the first", nil, user[0], true, false, users, false, ""},
		{"createUser", noUser, user[0], false, false, users, false, "u.a"},
		{"updateUser", user, of("u", is("updateUser", "a"), is("customData", bson.M{"n": 2})), false, false, ofUser("customData.n"), false, `{"$numberInt":"2"}`},
		{"grantRolesToUser", user, of("u", is("grantRolesToUser", "a"), is("roles", bson.A{"read"})), false, false, ofUser("roles.0.role"), false, `"read"`},
		{"revokeRolesFromUser", append(user, of("u", is("grantRolesToUser", "a"), is("roles", bson.A{"read"}))), of("u", is("revokeRolesFromUser", "a"), is("roles", bson.A{"read"})),
			false, false, ofUser("roles.0.role"), false, "nothing"},
		{"dropUser", user, of("u", is("dropUser", "a")), false, false, users, false, ""},
		{"dropAllUsersFromDatabase", user, of("u", is("dropAllUsersFromDatabase", 1)), false, false, users, false, ""},
		{"createRole", noRole, role[0], false, false, roles, false, "r.b"},
		{"updateRole", role, of("r", is("updateRole", "b"), is("privileges", reads)), false, false, ofRole("privileges.0.actions.0"), false, `"find"`},
		{"grantPrivilegesToRole", role, of("r", is("grantPrivilegesToRole", "b"), is("privileges", reads)), false, false, ofRole("privileges.0.actions.0"), false, `"find"`},
		{"grantRolesToRole", role, of("r", is("grantRolesToRole", "b"), is("roles", bson.A{"read"})), false, false, ofRole("roles.0.role"), false, `"read"`},
		{"revokePrivilegesFromRole", append(role, of("r", is("grantPrivilegesToRole", "b"), is("privileges", reads))), of("r", is("revokePrivilegesFromRole", "b"), is("privileges", reads)),
			false, false, ofRole("privileges.0.actions.0"), false, "nothing"},
		{"revokeRolesFromRole", append(role, of("r", is("grantRolesToRole", "b"), is("roles", bson.A{"read"}))), of("r", is("revokeRolesFromRole", "b"), is("roles", bson.A{"read"})),
			false, false, ofRole("roles.0.role"), false, "nothing"},
		{"dropRole", role, of("r", is("dropRole", "b")), false, false, roles, false, ""},
		{"dropAllRolesFromDatabase", role, of("r", is("dropAllRolesFromDatabase", 1)), false, false, roles, false, ""},
		{"_mergeAuthzCollections", append(noUser, of("admin", is("insert", "restored"), is("documents", bson.A{bson.M{"_id": "u.c", "user": "c", "db": "u", "roles": none}}))),
			of("admin", is("_mergeAuthzCollections", 1), is("tempUsersCollection", "admin.restored"), is("db", ""), is("drop", false)), false, false, users, false, "u.c"},

		{"convertToCapped", []bson.D{drop("c", "c"), docs("c", "c", 1, 2, 3, 4)}, of("c", is("convertToCapped", "c"), is("size", 4096)), true, false, collections("c"), false, "c"},
		{"convertToCapped of a clustered one", []bson.D{drop("l", "c"), of("l", is("create", "c"), is("clusteredIndex", bson.M{"key": bson.M{"_id": 1}, "unique": true})), docs("l", "c", 1)},
			of("l", is("convertToCapped", "c"), is("size", 4096)), true, false, collections("l"), false, "c"},
		{"convertToCapped of one that a TTL orders", []bson.D{drop("t", "c"), of("t", is("createIndexes", "c"), is("indexes", bson.A{bson.M{"key": bson.M{"d": 1}, "name": "d", "expireAfterSeconds": 60}})), docs("t", "c", 1)},
			of("t", is("convertToCapped", "c"), is("size", 4096)), true, false, collections("t"), false, "c"},
		{"cloneCollectionAsCapped", []bson.D{docs("k", "c", 1), drop("k", "copy")}, of("k", is("cloneCollectionAsCapped", "c"), is("toCollection", "copy"), is("size", 4096)), true, false, ids("k", "copy"), false, ""},
		{"renameCollection to another database", []bson.D{drop("to", "c"), docs("from", "c", 1)}, of("admin", is("renameCollection", "from.c"), is("to", "to.c")), false, false, ids("to", "c"), false, "1"},

		{"$out", []bson.D{docs("o", "src", 1, 2), docs("o", "to", 7)}, pipe("o", bson.M{"$out": "to"}), true, false, collections("o"), false, "src to"},
		{"$merge", []bson.D{drop("m", "to"), docs("m", "src", 1, 2), docs("m", "to", 7)}, pipe("m", bson.M{"$merge": "to"}), false, false, ids("m", "to"), false, "1 2 7"},
		{"$merge into none", []bson.D{docs("n", "src", 1, 2), drop("n", "to")}, pipe("n", bson.M{"$merge": "to"}), true, false, ids("n", "to"), false, ""},
		{"mapReduce", []bson.D{docs("p", "src", 1)}, mapped("p", "to"), true, false, collections("p"), false, "src"},
		{"mapReduce into one", []bson.D{drop("q", "to"), docs("q", "src", 1), docs("q", "to", 7)}, mapped("q", bson.M{"merge": "to"}), false, false, ids("q", "to"), false, "1 7"},
		{"applyOps", []bson.D{drop("a", "c"), docs("a", "c", 7)}, of("a", is("applyOps", bson.A{bson.M{"op": "i", "ns": "a.c", "o": bson.M{"_id": 1}}})), false, false, ids("a", "c"), false, "1 7"},
		{"applyOps of a command", []bson.D{drop("b", "c")}, of("b", is("applyOps", bson.A{bson.M{"op": "c", "ns": "b.$cmd", "o": bson.M{"create": "c"}}})), false, false, collections("b"), false, "c"},
		{"appendOplogNote", nil, of("admin", is("appendOplogNote", 1), is("data", bson.M{"note": "of the test"})), false, false,
			field("cursor.firstBatch.0.o.note", of("local", is("find", "oplog.rs"), is("filter", bson.M{"o.note": "of the test"}))), false, `"of the test"`},

		{"setFeatureCompatibilityVersion", []bson.D{version("8.0"), version("8.2")}, version("8.0"), false, false,
			field("featureCompatibilityVersion.version", of("admin", is("getParameter", 1), is("featureCompatibilityVersion", 1))), true, `"8.0"`},
		{"setDefaultRWConcern", []bson.D{defaults("local")}, defaults("available"), true, false,
			field("defaultReadConcern.level", of("admin", is("getDefaultRWConcern", 1), is("inMemory", true))), true, `"available"`},
		{"setClusterParameter", []bson.D{changeStreams(100)}, changeStreams(200), true, true,
			field("clusterParameters.0.expireAfterSeconds", of("admin", is("getClusterParameter", "changeStreams"))), true, `{"$numberLong":"200"}`},
		{"setQuerySettings", []bson.D{settings("classic")}, settings("sbe"), true, true,
			field("cursor.firstBatch.0.settings.queryFramework", of("admin", is("aggregate", 1), is("pipeline", bson.A{bson.M{"$querySettings": bson.M{}}}), is("cursor", bson.M{}))), true, `"sbe"`},
		{"setUserWriteBlockMode", []bson.D{blocks(true), blocks(false)}, blocks(true), true, true, field("ok", docs("w", "c", 1)), true, "write exception: write errors: [User writes blocked, reason: Unspecified]"},
		{"setUserWriteBlockMode, no more", []bson.D{blocks(true)}, blocks(false), true, true, field("ok", docs("w", "d", 1)), true, `{"$numberDouble":"1.0"}`},
		{"setParameter ttlHold", []bson.D{hold("release")}, hold(bson.NewDateTimeFromTime(time.Unix(1_000, 0))), true, true,
			field("ttlHold", of("admin", is("getParameter", 1), is("ttlHold", 1))), true, `{"$date":{"$numberLong":"1000000"}}`},
		{"setParameter ttlHideExpired", []bson.D{hold("release"), of("admin", is("setParameter", 1), is("ttlMonitorEnabled", false)), of("admin", is("setParameter", 1), is("ttlHideExpired", true)),
			of("h", is("createIndexes", "c"), is("indexes", bson.A{bson.M{"key": bson.M{"at": 1}, "name": "at", "expireAfterSeconds": 1}})),
			of("h", is("insert", "c"), is("documents", bson.A{bson.M{"at": time.Unix(0, 0)}}))}, of("admin", is("setParameter", 1), is("ttlHideExpired", false), is("force", true)), true, true,
			field("ttlHideExpired", of("admin", is("getParameter", 1), is("ttlHideExpired", 1))), true, "true"},
	}
}

// TestSetCommandsWithoutMajority: no command keeps its client waiting beyond its wtimeout or maxTimeMS for a majority that is not there.
func TestSetCommandsWithoutMajority(t *testing.T) {
	s := startSet(t)
	for i, c := range unheardCases() {
		end, code := is("writeConcern", bson.M{"w": "majority", "wtimeout": 3_000}), int32(writeConcernTimeout)
		if i%2 == 0 || c.onlyTime {
			end, code = is("maxTimeMS", 3_000), maxTimeMSExpired
		}
		t.Run(c.name, func(t *testing.T) {
			good := func(r concernReply) bool {
				if c.fails {
					return r.OK == 0 && r.Code == code
				}
				return r.OK == 1 && r.WriteConcernError.Code == code
			}
			r := s.unheardUntil(good, func(_, try int) {
				if try > 0 && c.fails && c.prepare == nil {
					t.Skip("it is not the first any more after a try that was lost")
				}
				for _, command := range c.prepare {
					if _, err := runAt(t, s.client, command); err != nil {
						t.Log(command[0].Key, err)
					}
				}
				s.Settle()
			}, func(int) bson.D { return append(slices.Clone(c.command), end) })
			if !good(r) {
				t.Errorf("without a majority, with %s: %+v", end.Key, r)
			}
			members := s.directs[:]
			if c.primary {
				members = []*mongo.Client{s.client}
			}
			for i, member := range members {
				if now := await(t, member, c.see, c.want); now != c.want {
					t.Errorf("member %d shows %s, not %s", i, now, c.want)
				}
			}
		})
	}
}

// TestSetSettingBehindAnother: nor does a change of a setting wait longer for one before it, and then it is not made.
func TestSetSettingBehindAnother(t *testing.T) {
	s := startSet(t)
	version := func(v string) bson.D {
		return of("admin", is("setFeatureCompatibilityVersion", v), is("confirm", true), is("writeConcern", bson.M{"w": "majority", "wtimeout": 3_000}))
	}
	defaults := of("admin", is("setDefaultRWConcern", 1), is("defaultReadConcern", bson.M{"level": "local"}), is("maxTimeMS", 3_000))
	for try := 0; ; try++ {
		for _, command := range []bson.D{version("8.0"), version("8.2")} { // so that what they are stored in is there
			if r := s.send(s.Primary(), command); r.OK != 1 {
				t.Fatalf("%v: %+v", command, r)
			}
		}
		p := s.Primary()
		for _, i := range s.others(p) {
			s.Isolate(i)
		}
		var replies [3]concernReply
		for i, command := range []bson.D{version("8.0"), version("8.0"), defaults} {
			replies[i] = s.writeBy(time.Second, p, command)
		}
		s.Heal()
		s.Settle()
		if try < 5 && slices.ContainsFunc(replies[:], func(r concernReply) bool { return r.Code == interrupted || r.Code == notWritablePrimary }) {
			t.Logf("once more after %+v", replies)
			continue
		}
		if r := replies[0]; r.OK != 1 || r.WriteConcernError.Code != writeConcernTimeout {
			t.Errorf("the first: %+v", r)
		}
		if r := replies[1]; r.OK != 0 || r.Code != writeConcernTimeout {
			t.Errorf("behind it, with wtimeout: %+v", r)
		}
		if r := replies[2]; r.OK != 0 || r.Code != maxTimeMSExpired {
			t.Errorf("behind it, with maxTimeMS: %+v", r)
		}
		break
	}
	if r := s.send(s.Primary(), version("8.2")); r.OK != 1 || r.WriteConcernError.Code != 0 {
		t.Errorf("when the others are there: %+v", r)
	}
}

// TestSetStatementWithoutMajority: nor does a statement of a transaction that makes a collection, whose number nobody else may get. Its transaction is over.
func TestSetStatementWithoutMajority(t *testing.T) {
	s := startSet(t)
	statement := func(try int, command ...bson.E) bson.D {
		return append(command, is("lsid", bson.M{"id": bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("sixteen letters.")}}), is("txnNumber", int64(try+1)),
			is("autocommit", false))
	}
	last := 0
	good := func(r concernReply) bool { return r.OK == 0 && r.Code == maxTimeMSExpired }
	r := s.unheardUntil(good, func(_, try int) { last = try }, func(try int) bson.D {
		return append(statement(try, is("create", "c"), is("startTransaction", true)), is("maxTimeMS", 3_000), is("$db", "d"))
	})
	if !good(r) {
		t.Errorf("without a majority: %+v", r)
	}
	if r := s.send(s.Primary(), append(statement(last, is("commitTransaction", 1)), is("$db", "admin"))); r.Code != noSuchTransaction {
		t.Errorf("its commit: %+v", r)
	}
	if r := s.send(s.Primary(), bson.D{is("create", "c"), is("$db", "d")}); r.OK != 1 {
		t.Errorf("a collection of that name: %+v", r)
	}
}

const noSuchTransaction = 251

// TestSetProfileWithoutMajority: what is profiled is not held up by its own description: the primary still is one when two finds are answered.
func TestSetProfileWithoutMajority(t *testing.T) {
	s := startSet(t)
	if r := s.send(s.Primary(), docs("d", "c", 1)); r.N != 1 {
		t.Fatalf("%+v", r)
	}
	primary := false
	for try := 0; !primary && try < 5; try++ {
		p := s.Primary()
		profile := of("d", is("profile", 2))
		if r := s.send(p, profile); r.OK != 1 {
			t.Fatalf("%+v", r)
		}
		for _, i := range s.others(p) {
			s.Isolate(i)
		}
		for range 2 {
			if r := s.send(p, of("d", is("find", "c"))); r.OK != 1 && r.Code != notPrimaryNoSecondaryOk {
				t.Errorf("%+v", r)
			}
		}
		primary = field("isWritablePrimary", of("admin", is("hello", 1)))(t, s.directs[p]) == "true"
		s.Heal()
		s.Settle()
	}
	if !primary {
		t.Error("the primary has stepped down before two finds were answered, each time")
	}
}

// TestSetReconfigWithoutMajority: nor does a new configuration, which all of the set have when its members are there again.
func TestSetReconfigWithoutMajority(t *testing.T) {
	s := startSet(t)
	var now struct{ Config bson.M }
	good := func(r concernReply) bool { return r.OK == 0 && r.Code == maxTimeMSExpired }
	r := s.unheardUntil(good, func(int, int) {
		reply, err := runAt(t, s.client, of("admin", is("replSetGetConfig", 1)))
		if err == nil {
			err = bson.Unmarshal(reply, &now)
		}
		if err != nil {
			t.Fatal(err)
		}
		now.Config["version"] = now.Config["version"].(int32) + 1
	}, func(int) bson.D { return of("admin", is("replSetReconfig", now.Config), is("maxTimeMS", 3_000)) })
	if !good(r) {
		t.Errorf("without a majority: %+v", r)
	}
	want := fmt.Sprintf(`{"$numberInt":"%d"}`, now.Config["version"])
	for i, c := range s.directs {
		if version := await(t, c, field("config.version", of("admin", is("replSetGetConfig", 1))), want); version != want {
			t.Errorf("member %d has version %s, not %s", i, version, want)
		}
	}
}
