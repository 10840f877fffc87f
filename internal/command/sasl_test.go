package command

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	client "github.com/xdg-go/scram"

	"github.com/ebbdb/ebb/internal/auth"
	"github.com/ebbdb/ebb/internal/auth/patience"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
)

// logins is a server with users, and what its log of accesses says.
type logins struct {
	*harness
	log *bytes.Buffer
}

// newLogins has the users "both", "sha1" and "sha256" of admin, with a password "pw", and "near", who may come from 10.0.0.1 alone. All
// have the role read of the database test.
func newLogins(t testing.TB) *logins { return newLoginsOn(t, newHarness(t)) }

func newLoginsOn(t testing.TB, on *harness) *logins {
	t.Helper()
	h := &logins{on, &bytes.Buffer{}}
	h.server.Users = auth.New(h.server.Query)
	h.server.AccessLog = slog.New(slog.NewTextHandler(h.log, nil))
	h.server.Authorization = false
	h.store("both", scram.SHA1, scram.SHA256)
	h.store("sha1", scram.SHA1)
	h.store("sha256", scram.SHA256)
	h.store("near", scram.SHA256)
	h.run("admin", `{update: "system.users", updates: [{q: {user: "near"}, u: {$set: {authenticationRestrictions: [{clientSource: ["10.0.0.1"]}]}}}]}`)
	h.server.Authorization = true
	return h
}

func (h *logins) store(user string, mechanisms ...string) {
	h.t.Helper()
	b := bson.Build().String("insert", "system.users").Array("documents").Object("0").String("_id", "admin."+user).
		String("user", user).String("db", "admin").Binary("userId", 4, append(make([]byte, 16-len(user)), user...)).Object("credentials")
	for _, m := range mechanisms {
		d, err := scram.Make(m, user, "pw", scram.MinIterations)
		if err != nil {
			h.t.Fatal(err)
		}
		b.Document(m, d)
	}
	b.End().Array("roles").Object("0").String("role", "read").String("db", "test").End().End().End().End()
	if r := h.send(h.t.Context(), "setup", "admin", b.Doc()); r.Body.Lookup("n").AsDouble() != 1 {
		h.t.Fatal(r.Body)
	}
}

// run sends a command on a connection that nobody else uses.
func (h *logins) run(db, command string) bson.Doc {
	h.t.Helper()
	r := h.send(h.t.Context(), "setup", db, bson.MustDoc(command))
	if !r.Body.Lookup("ok").Truthy() {
		h.t.Fatal(r.Body)
	}
	return r.Body
}

// talker is a driver that logs in.
type talker struct {
	h         *logins
	conn, db  string
	mechanism string
	user, pwd string
	speculate bool
	long      bool // it leaves in the exchange of empty messages
	damage    func(message string) string
}

// digest is what is hashed of a password for SCRAM-SHA-1.
func digest(user, pwd string) string {
	sum := md5.Sum([]byte(user + ":mongo:" + pwd))
	return hex.EncodeToString(sum[:])
}

// login returns the last reply.
func (d talker) login() bson.Doc {
	d.h.t.Helper()
	hash, pwd := client.SHA256, d.pwd
	if d.mechanism == scram.SHA1 {
		hash, pwd = client.SHA1, digest(d.user, d.pwd)
	}
	c, err := hash.NewClientUnprepped(d.user, pwd, "")
	if err != nil {
		d.h.t.Fatal(err)
	}
	talk := c.NewConversation()
	if d.damage == nil {
		d.damage = func(m string) string { return m }
	}
	first, err := talk.Step("")
	if err != nil {
		d.h.t.Fatal(err)
	}
	start := bson.Build().Int32("saslStart", 1).String("mechanism", d.mechanism).Binary("payload", 0, []byte(first)).
		Object("options").Bool("skipEmptyExchange", !d.long).End()
	var reply bson.Doc
	if d.speculate {
		hello := bson.Build().Int32("hello", 1).Document("speculativeAuthenticate", start.String("db", d.db).Doc()).Doc()
		reply = d.h.send(d.h.t.Context(), d.conn, "admin", hello).Body
		if v := reply.Lookup("speculativeAuthenticate"); !v.IsMissing() {
			reply = v.Doc()
		}
	} else {
		reply = d.h.send(d.h.t.Context(), d.conn, d.db, start.Doc()).Body
	}
	for !reply.Lookup("done").Truthy() && !reply.Lookup("payload").IsMissing() {
		_, answer := reply.Lookup("payload").Binary()
		message := ""
		if !talk.Done() {
			message, err = talk.Step(string(answer))
			if err != nil {
				d.h.t.Fatal(err)
			}
			message = d.damage(message)
		}
		reply = d.h.send(d.h.t.Context(), d.conn, d.db, bson.Build().Int32("saslContinue", 1).Int32("conversationId", 1).Binary("payload", 0, []byte(message)).Doc()).Body
	}
	return reply
}

func TestLogins(t *testing.T) {
	damaged := func(m string) string { return m[:len(m)-5] + "AAAA=" }
	for _, c := range []struct {
		name string
		talker
		want string
	}{
		{"SHA-256", talker{mechanism: scram.SHA256, user: "both"}, ""},
		{"SHA-1", talker{mechanism: scram.SHA1, user: "both"}, ""},
		{"SHA-256 of a user who has it alone", talker{mechanism: scram.SHA256, user: "sha256"}, ""},
		{"with an empty exchange", talker{mechanism: scram.SHA256, user: "both", long: true}, ""},
		{"within hello", talker{mechanism: scram.SHA256, user: "both", speculate: true}, ""},
		{"within hello with an empty exchange", talker{mechanism: scram.SHA1, user: "sha1", speculate: true, long: true}, ""},
		{"wrong password", talker{mechanism: scram.SHA256, user: "both", pwd: "PW"}, "storedKey mismatch"},
		{"wrong password, SHA-1", talker{mechanism: scram.SHA1, user: "both", pwd: "PW"}, "storedKey mismatch"},
		{"unknown user", talker{mechanism: scram.SHA256, user: "nobody"}, "there is no such user"},
		{"unknown user, SHA-1", talker{mechanism: scram.SHA1, user: "nobody"}, "there is no such user"},
		{"user of another database", talker{mechanism: scram.SHA256, user: "both", db: "test"}, "there is no such user"},
		{"mechanism that the user has not", talker{mechanism: scram.SHA1, user: "sha256"}, "no credentials for the mechanism"},
		{"damaged proof", talker{mechanism: scram.SHA256, user: "both", damage: damaged}, "storedKey mismatch"},
		{"damaged nonce", talker{mechanism: scram.SHA256, user: "both", damage: func(m string) string { return strings.Replace(m, ",r=", ",r=x", 1) }}, "no SCRAM message"},
		{"from elsewhere", talker{mechanism: scram.SHA256, user: "near"}, "may not be used from here"},
		{"the server itself without a key", talker{mechanism: scram.SHA256, user: "__system", db: "local"}, "there is no such user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newLogins(t)
			c.talker.h, c.conn = h, "1"
			if c.db == "" {
				c.db = "admin"
			}
			if c.pwd == "" {
				c.pwd = "pw"
			}
			reply := c.login()
			status := h.send(t.Context(), "1", "admin", bson.MustDoc("{connectionStatus: 1}")).Body
			find := h.send(t.Context(), "1", "test", bson.MustDoc(`{find: "c"}`)).Body
			if c.want == "" {
				if !reply.Lookup("done").Truthy() || !reply.Lookup("ok").Truthy() && !c.speculate {
					t.Errorf("login: %s", reply)
				}
				if want := fmt.Sprintf(`authenticatedUsers: [ { user: "%s", db: "%s" } ], authenticatedUserRoles: [ { role: "read", db: "test" } ]`, c.user, c.db); !strings.Contains(status.String(), want) {
					t.Errorf("status: %s", status)
				}
				if !find.Lookup("ok").Truthy() {
					t.Errorf("find: %s", find)
				}
				return
			}
			if got := reply.String(); got != `{ ok: 0.0, errmsg: "Authentication failed.", code: 18, codeName: "AuthenticationFailed" }` {
				t.Errorf("login: %s", got)
			}
			if !strings.Contains(status.String(), "authenticatedUsers: []") {
				t.Errorf("status: %s", status)
			}
			if find.Lookup("code").AsDouble() != 13 {
				t.Errorf("find: %s", find)
			}
			if !strings.Contains(h.log.String(), c.want) || strings.Contains(h.log.String(), "PW") {
				t.Errorf("log: %s", h.log)
			}
		})
	}
}

// TestSASL runs the cases in testdata/login.
func TestSASL(t *testing.T) {
	h := newLogins(t)
	datadriven.RunTest(t, "testdata/login/sasl.txt", h.directive)
}

// TestFirstAnswers holds what a client learns before it has shown anything: it must be the same of users who are there and who are not.
func TestFirstAnswers(t *testing.T) {
	h := newLogins(t)
	first := func(user string) (salt, rest string) {
		r := h.send(t.Context(), "1", "admin", bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n="+user+",r=abc")).Doc()).Body
		_, p := r.Lookup("payload").Binary()
		fields := strings.Split(string(p), ",")
		if len(fields) != 3 {
			t.Fatalf("%s: %s", user, r)
		}
		return fields[1], fmt.Sprint(len(fields[0]), len(fields[1]), r.Lookup("done"))
	}
	_, there := first("both")
	salt, absent := first("nobody")
	again, _ := first("nobody")
	other, _ := first("somebody")
	if there != absent || salt != again || salt == other {
		t.Errorf("%s and %s; %s, %s, %s", there, absent, salt, again, other)
	}
}

func TestTwoUsers(t *testing.T) {
	h := newLogins(t)
	both := talker{h: h, conn: "1", db: "admin", mechanism: scram.SHA256, user: "both", pwd: "pw"}
	other := both
	other.user = "sha256"
	for range 2 { // the same again is no harm
		if r := both.login(); !r.Lookup("done").Truthy() {
			t.Fatal(r)
		}
	}
	if r := other.login(); r.Lookup("code").AsDouble() != 5626701 {
		t.Error(r)
	}
	h.send(t.Context(), "1", "admin", bson.MustDoc("{logout: 1}"))
	if r := other.login(); !r.Lookup("done").Truthy() {
		t.Error(r)
	}
}

// TestUserChanges looks at what a connection may do whose user changes.
func TestUserChanges(t *testing.T) {
	h := newLogins(t)
	for _, user := range []string{"both", "sha256", "sha1"} {
		mechanism := scram.SHA256
		if user == "sha1" {
			mechanism = scram.SHA1
		}
		talker{h: h, conn: user, db: "admin", mechanism: mechanism, user: user, pwd: "pw"}.login()
	}
	find := func(user string, want float64) {
		t.Helper()
		if r := h.send(t.Context(), user, "test", bson.MustDoc(`{find: "c"}`)).Body; r.Lookup("code").AsDouble() != want && !(want == 0 && r.Lookup("ok").Truthy()) {
			t.Errorf("%s: %s", user, r)
		}
	}
	find("both", 0)
	h.server.Authorization = false
	h.run("admin", `{update: "system.users", updates: [{q: {user: "both"}, u: {$set: {roles: []}}}, {q: {user: "sha256"}, u: {$set: {authenticationRestrictions: [{clientSource: ["10.0.0.1"]}]}}}]}`)
	h.run("admin", `{delete: "system.users", deletes: [{q: {user: "sha1"}, limit: 1}]}`)
	h.server.Authorization = true
	find("sha256", 13)
	find("sha1", 13)
	for user, want := range map[string]string{"both": `[ { user: "both", db: "admin" } ], authenticatedUserRoles: []`, "sha256": "authenticatedUsers: []", "sha1": "authenticatedUsers: []"} {
		if r := h.send(t.Context(), user, "admin", bson.MustDoc("{connectionStatus: 1}")).Body.String(); !strings.Contains(r, want) {
			t.Errorf("%s: %s", user, r)
		}
	}
}

// TestPatience: after some failures each login waits, those that would succeed too, but for who has logged in from there before.
func TestPatience(t *testing.T) {
	h := newLogins(t)
	d := talker{h: h, conn: "1", db: "admin", mechanism: scram.SHA256, user: "both", pwd: "pw"}
	d.login()
	bad := d
	bad.conn, bad.user, bad.pwd = "2", "sha256", "no"
	for range patience.Free + 1 {
		bad.login()
	}
	d.conn = "3"
	if r := d.login(); !r.Lookup("done").Truthy() {
		t.Errorf("who has logged in before: %s", r)
	}
	bad.pwd, bad.conn = "pw", "4"
	begun := h.clock.Now()
	waited := make(chan bson.Doc)
	go func() { waited <- bad.login() }()
	for {
		select {
		case r := <-waited:
			if passed := h.clock.Now().Sub(begun); !r.Lookup("done").Truthy() || passed < patience.Least {
				t.Errorf("after %v: %s", passed, r)
			}
			return
		case <-clock.Wall().NewTimer(time.Millisecond).C():
			h.clock.Advance(patience.Least / 4)
		}
	}
}

// TestFirstAnswersTakeAsLong holds the times of first answers together, by the shortest of many: a user who is there cannot be told by them.
func TestFirstAnswersTakeAsLong(t *testing.T) {
	h := newLogins(t)
	c := h.conn("1")
	shortest := func(user string) time.Duration {
		start := bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n="+user+",r=abc")).Doc()
		least := time.Hour
		for range 300 {
			begun := clock.Monotonic(clock.Wall())
			h.sendOn(t.Context(), c, "admin", start)
			least = min(least, clock.Monotonic(clock.Wall())-begun)
		}
		return least
	}
	var there, absent time.Duration
	for range 5 {
		there, absent = shortest("both"), shortest("nope")
		if there < absent*3/2 && absent < there*3/2 {
			return
		}
	}
	t.Errorf("%v for a user who is there, %v for one who is not", there, absent)
}

// cleaners is how many goroutines of a server of tests wait for something all the time; see Server.clean.
const cleaners = 1

// TestGuessesAtOnce has an address guess on many connections at once: no more of the guesses wait, and are answered, at a time than may.
func TestGuessesAtOnce(t *testing.T) {
	h := newLogins(t)
	bad := talker{h: h, conn: "0", db: "admin", mechanism: scram.SHA256, user: "both", pwd: "no"}
	for range patience.MaxFailures {
		h.server.patience.Failed(h.conn("0").who(auth.Name{Name: "both", DB: "admin"}), h.clock.Now())
	}
	const rounds = 3
	begun := h.clock.Now()
	var guessing sync.WaitGroup
	answered := make(chan time.Duration, rounds*patience.MaxWaiting)
	for i := range rounds * patience.MaxWaiting {
		h.conn(fmt.Sprint(i + 1))
	}
	for i := range rounds * patience.MaxWaiting {
		guess := bad
		guess.conn = fmt.Sprint(i + 1)
		guessing.Go(func() {
			guess.login()
			answered <- h.clock.Now().Sub(begun)
		})
	}
	for n := range rounds {
		for (h.clock.Waiting() < cleaners+patience.MaxWaiting || len(answered) < n*patience.MaxWaiting) && len(answered) < cap(answered) {
			runtime.Gosched()
		}
		h.clock.Advance(patience.Most)
	}
	guessing.Wait()
	close(answered)
	counts := map[time.Duration]int{}
	for at := range answered {
		counts[at]++
	}
	for n := range rounds {
		if at := time.Duration(n+1) * patience.Most; counts[at] != patience.MaxWaiting {
			t.Errorf("after %v %d guesses were answered, not %d: %v", at, counts[at], patience.MaxWaiting, counts)
		}
	}
}

// TestHashing: no more passwords are hashed at once than may be, and who waits may be stopped.
func TestHashing(t *testing.T) {
	h := newHarness(t)
	for range maxHashing {
		h.server.hashing <- struct{}{}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := h.server.hash(ctx, func() error { t.Error("one more is hashed"); return nil }); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
	<-h.server.hashing
	if err := h.server.hash(t.Context(), func() error { return nil }); err != nil || len(h.server.hashing) != maxHashing-1 {
		t.Error(err)
	}
}

// TestLoginCounts: serverStatus counts who logs in, and who tries.
func TestLoginCounts(t *testing.T) {
	h := newLogins(t)
	d := talker{h: h, conn: "1", db: "admin", mechanism: scram.SHA256, user: "both", pwd: "pw"}
	d.login()
	d.speculate = true
	d.login()
	d.pwd, d.mechanism, d.speculate = "no", scram.SHA1, false
	d.login()
	h.send(t.Context(), "1", "admin", bson.MustDoc(`{hello: 1, saslSupportedMechs: "admin.both"}`))
	h.send(t.Context(), "1", "admin", bson.MustDoc(`{saslStart: 1, mechanism: "NOSUCH", payload: ""}`))
	h.server.Authorization = false
	got := h.run("admin", "{serverStatus: 1}").Lookup("security").Doc().Lookup("authentication").String()
	none := "{ received: 0, successful: 0 }"
	want := "{ saslSupportedMechsReceived: 1, mechanisms: { MONGODB-X509: { speculativeAuthenticate: " + none + ", clusterAuthenticate: " + none + ", authenticate: " + none + " }, " +
		"SCRAM-SHA-1: { speculativeAuthenticate: " + none + ", clusterAuthenticate: " + none + ", authenticate: { received: 1, successful: 0 } }, " +
		"SCRAM-SHA-256: { speculativeAuthenticate: { received: 1, successful: 1 }, clusterAuthenticate: " + none + ", authenticate: { received: 2, successful: 2 } } } }"
	if got != want {
		t.Errorf("is %s, not %s", got, want)
	}
}

// TestTwoKeys: while the key of a replica set changes its members log in by the old one or the new one.
func TestTwoKeys(t *testing.T) {
	for _, mechanism := range scram.Mechanisms() {
		for key, want := range map[string]bool{"oldkey": true, "newkey": true, "wrong": false} {
			h := newLogins(t)
			alike, err := scram.MakeAlike(mechanism, "__system", []string{"newkey", "oldkey"}, scram.MinIterations)
			if err != nil {
				t.Fatal(err)
			}
			h.server.ClusterAuth = NewClusterAuth(ClusterAuthKeyFile)
			for _, d := range alike {
				h.server.ClusterKeys = append(h.server.ClusterKeys, bson.Build().Document(mechanism, d).Doc())
			}
			r := talker{h: h, conn: "1", db: "local", mechanism: mechanism, user: "__system", pwd: key}.login()
			if r.Lookup("done").Truthy() != want || h.conn("1").user.Load() != nil != want {
				t.Errorf("%s, %s: %s", mechanism, key, r)
			}
		}
	}
}

// TestReplayedMessages: what somebody has overheard of a login is good for no other one, on the same connection or on another.
func TestReplayedMessages(t *testing.T) {
	for _, mechanism := range scram.Mechanisms() {
		h := newLogins(t)
		var proof string
		heard := talker{h: h, conn: "1", db: "admin", mechanism: mechanism, user: "both", pwd: "pw", damage: func(m string) string {
			proof = m
			return m
		}}
		if r := heard.login(); !r.Lookup("done").Truthy() {
			t.Fatal(r)
		}
		h.send(t.Context(), "1", "admin", bson.MustDoc(`{logout: 1}`))
		for _, conn := range []string{"1", "2"} {
			first := bson.Build().Int32("saslStart", 1).String("mechanism", mechanism).Binary("payload", 0, []byte("n,,n=both,r=abc")).Doc()
			if r := h.send(t.Context(), conn, "admin", first).Body; !r.Lookup("ok").Truthy() {
				t.Fatal(r)
			}
			r := h.send(t.Context(), conn, "admin", bson.Build().Int32("saslContinue", 1).Int32("conversationId", 1).Binary("payload", 0, []byte(proof)).Doc()).Body
			if r.Lookup("code").AsDouble() != 18 || h.conn(conn).user.Load() != nil {
				t.Errorf("%s on connection %s: %s", mechanism, conn, r)
			}
		}
	}
}

// TestNoDowngrade: a proof for one mechanism is none for another, and who goes on talking after a refusal, or without having begun, is nobody.
func TestNoDowngrade(t *testing.T) {
	h := newLogins(t)
	send := func(conn string, d bson.Doc) bson.Doc { return h.send(t.Context(), conn, "admin", d).Body }
	next := func(payload string) bson.Doc {
		return bson.Build().Int32("saslContinue", 1).Int32("conversationId", 1).Binary("payload", 0, []byte(payload)).Doc()
	}
	var proof string
	talker{h: h, conn: "1", db: "admin", mechanism: scram.SHA1, user: "both", pwd: "pw", damage: func(m string) string {
		proof = m
		return m[:len(m)-4] + "AAA="
	}}.login()
	for name, attempt := range map[string]func(conn string) bson.Doc{
		"a proof without a conversation": func(conn string) bson.Doc { return send(conn, next(proof)) },
		"a proof after a refusal": func(conn string) bson.Doc {
			send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n=both,r=abc")).Doc())
			send(conn, next("c=biws,r=none,p=AAAA"))
			return send(conn, next(proof))
		},
		"an empty message in the place of a proof": func(conn string) bson.Doc {
			send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n=both,r=abc")).Doc())
			return send(conn, next(""))
		},
		"a mechanism that nobody offers": func(conn string) bson.Doc {
			return send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", "PLAIN").Binary("payload", 0, []byte("\x00both\x00pw")).Doc())
		},
		"an older login": func(conn string) bson.Doc {
			send(conn, bson.MustDoc(`{getnonce: 1}`))
			return send(conn, bson.MustDoc(`{authenticate: 1, mechanism: "MONGODB-CR", user: "both", nonce: "0", key: "0"}`))
		},
		"channel binding that there is none of": func(conn string) bson.Doc {
			return send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("p=tls-unique,,n=both,r=abc")).Doc())
		},
		"a message of five thousand bytes": func(conn string) bson.Doc {
			return send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n="+strings.Repeat("a", 5000)+",r=abc")).Doc())
		},
		"sixteen megabytes as text": func(conn string) bson.Doc {
			return send(conn, bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).String("payload", strings.Repeat("A", 16<<20)).Doc())
		},
	} {
		r := attempt(name)
		if r.Lookup("ok").Truthy() || h.conn(name).user.Load() != nil || len(r.String()) > 500 {
			t.Errorf("%s: %.300s", name, r)
		}
	}
}

// TestGeneration: it is the same as long as users and roles are.
func TestGeneration(t *testing.T) {
	h := newLogins(t)
	h.server.Authorization = false
	of := func() string {
		return h.run("admin", `{_getUserCacheGeneration: 1}`).Lookup("cacheGeneration").String()
	}
	first := of()
	if again := of(); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	h.run("admin", `{createUser: "new", pwd: "pw", roles: []}`)
	if now := of(); now == first {
		t.Errorf("%s after a user was made", now)
	}
}
