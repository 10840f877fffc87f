package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/auth/scram"
	"github.com/ebbdb/ebb/internal/bson"
)

// audited is a server with users whose audit log is read.
type audited struct {
	*logins
	path string
	read int // how much of it was
}

func newAudited(t testing.TB, on *harness, o audit.Options) *audited {
	t.Helper()
	h := &audited{logins: newLoginsOn(t, on), path: filepath.Join(t.TempDir(), "audit.bson")}
	o.Destination, o.Format, o.Path = audit.ToFile, audit.BSON, h.path
	log, err := audit.Open(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	h.server.Authorization = false
	h.run("admin", `{insert: "system.users", documents: [{_id: "admin.boss", user: "boss", db: "admin", userId: UUID("00112233-4455-6677-8899-aabbccddeeff"),
		credentials: {}, roles: [{role: "root", db: "admin"}]}]}`)
	h.server.Authorization, h.server.Audit = true, log
	boss, err := h.server.Users.Find(t.Context(), roleIn("boss", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	h.conn("boss").become(boss)
	return h
}

// events are those since they were asked for last.
func (h *audited) events() (events []bson.Doc) {
	h.t.Helper()
	text, err := os.ReadFile(h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	for rest := text[h.read:]; len(rest) > 0; {
		n := binary.LittleEndian.Uint32(rest)
		events = append(events, bson.Doc(rest[:n]))
		rest = rest[n:]
	}
	h.read = len(text)
	return events
}

// eventLine is an event without what every one has.
func eventLine(e bson.Doc) string {
	var users []string
	for it := e.Lookup("users").Doc().Iter(); it.Next(); {
		users = append(users, it.Value().Doc().Lookup("user").Str())
	}
	if !e.Lookup("local").Doc().Lookup("isSystemUser").IsMissing() {
		users = append(users, "(system)")
	}
	return fmt.Sprintf("%s %s %s %s", e.Lookup("atype").Str(), users, e.Lookup("param"), e.Lookup("result"))
}

// random is what differs from run to run: identifiers.
var random = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24}`)

// TestAudit runs the cases in testdata/audit: what commands are in the audit log.
func TestAudit(t *testing.T) {
	for _, file := range []string{"standalone", "member"} {
		t.Run(file, func(t *testing.T) {
			on := newHarness
			if file == "member" {
				on = newPrimary
			}
			h := newAudited(t, on(t), audit.Options{})
			datadriven.RunTest(t, "testdata/audit/"+file+".txt", func(t *testing.T, d *datadriven.TestData) string {
				var b strings.Builder
				switch d.Cmd {
				case "as":
					var user, db string
					d.ScanArgs(t, "user", &user)
					d.ScanArgs(t, "db", &db)
					for line := range strings.SplitSeq(d.Input, "\n") {
						command, err := bson.ParseDoc(line)
						if err != nil {
							d.Fatalf(t, "%s: %v", line, err)
						}
						if r := h.send(t.Context(), user, db, command).Body; !r.Lookup("ok").Truthy() {
							fmt.Fprintf(&b, "code %s: %.200s\n", r.Lookup("code"), r.Lookup("errmsg").Str())
						}
					}
				case "login":
					l := talker{h: h.logins, db: "admin", mechanism: scram.SHA256, conn: "new"}
					d.ScanArgs(t, "user", &l.user)
					d.ScanArgs(t, "pwd", &l.pwd)
					l.login()
				case "begin": // and do not go on
					h.send(t.Context(), "new", "admin", bson.Build().Int32("saslStart", 1).String("mechanism", scram.SHA256).Binary("payload", 0, []byte("n,,n=both,r=abc")).Doc())
				case "disconnect":
					h.server.Disconnect(h.conn("new"))
					delete(h.conns, "new")
				case "end":
					h.server.TellShutdown()
				}
				for _, e := range h.events() {
					fmt.Fprintln(&b, eventLine(e))
				}
				return random.ReplaceAllString(b.String(), "<random>")
			})
		})
	}
}

// newPrimary is a member of a replica set of its own.
func newPrimary(t testing.TB) *harness {
	h := newMember(t)
	if r := h.send(t.Context(), "setup", "admin", bson.MustDoc("{replSetInitiate: {}}")).Body; !r.Lookup("ok").Truthy() {
		t.Fatal(r)
	}
	return h
}

// TestAuditOfRotation: the new file begins with its event.
func TestAuditOfRotation(t *testing.T) {
	h := newAudited(t, newHarness(t), audit.Options{})
	h.send(t.Context(), "boss", "admin", bson.MustDoc(`{logApplicationMessage: "before"}`))
	kept := h.path + ".2026-01-02T03-04-05"
	h.send(t.Context(), "boss", "admin", bson.MustDoc(`{logRotate: "server"}`))
	if events := h.events(); len(events) != 1 {
		t.Errorf("rotating the log leaves %d events", len(events))
	}
	h.read = 0
	if r := h.send(t.Context(), "boss", "admin", bson.MustDoc(`{logRotate: "audit"}`)).Body; !r.Lookup("ok").Truthy() {
		t.Fatal(r)
	}
	events := h.events()
	if want := fmt.Sprintf(`rotateLog [boss] { pid: %d, osInfo: { name: %q, version: %q }, logRotationStatus: { status: "OK", rotatedLogPath: %q, errors: [] } } 0`, os.Getpid(),
		h.server.theMachine().OSName, h.server.theMachine().OSVersion, kept); len(events) != 1 || eventLine(events[0]) != want {
		t.Errorf("%s, not %s", events, want)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	// The next one would have the same name: what is there is not lost.
	if r := h.send(t.Context(), "boss", "admin", bson.MustDoc(`{logRotate: 1}`)).Body; r.Lookup("codeName").Str() != "FileRenameFailed" {
		t.Error(r)
	}
	if events := h.events(); len(events) != 1 || events[0].Lookup("result").Int32() != 0 {
		t.Error(events)
	} else {
		status := events[0].Lookup("param").Doc().Lookup("logRotationStatus").Doc()
		why := status.Lookup("errors").Doc().Lookup("0").Str()
		if !strings.HasSuffix(why, "failed; destination already exists") || status.Lookup("status").Str() != "FileRenameFailed: "+why || status.Lookup("rotatedLogPath").Str() != "" {
			t.Error(events)
		}
	}
	if err := h.server.RotateAudit(); err == nil {
		t.Error("a rotation that fails is told to nobody")
	}
}

// TestAuditFails: nobody is told that something was done which is not in the audit log, where that is to end the server.
func TestAuditFails(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("the system has no device that is always full")
	}
	for _, stop := range []bool{false, true} {
		h := newAudited(t, newHarness(t), audit.Options{})
		full, err := audit.Open(audit.Options{Destination: audit.ToFile, Format: audit.JSON, Path: "/dev/full", StopOnFailure: stop}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		var failed error
		h.server.Audit, h.server.AuditFailed = full, func(err error) { failed = err }
		r := h.send(t.Context(), "boss", "test", bson.MustDoc(`{create: "c"}`)).Body
		if r.Lookup("ok").Truthy() == stop || errors.Is(failed, audit.ErrFailed) != stop {
			t.Errorf("stop %v: %s, %v", stop, r, failed)
		}
		if find := h.send(t.Context(), "boss", "test", bson.MustDoc(`{find: "c"}`)).Body; !find.Lookup("ok").Truthy() {
			t.Error("what there is nothing to tell of fails: ", find)
		}
		status := h.send(t.Context(), "boss", "admin", bson.MustDoc(`{serverStatus: 1}`)).Body.Lookup("ebbAudit").Doc()
		if !strings.Contains(status.String(), "lost: 4, failing: true") { // the database, the collection, and its index twice
			t.Error(status)
		}
	}
}

func TestAuditOfInitiate(t *testing.T) {
	h := newMember(t)
	path := filepath.Join(t.TempDir(), "audit.bson")
	log, err := audit.Open(audit.Options{Destination: audit.ToFile, Format: audit.BSON, Path: path, Filter: bson.MustDoc(`{atype: "replSetReconfig"}`)}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h.server.Audit = log
	h.send(t.Context(), "1", "admin", bson.MustDoc("{replSetInitiate: {}}"))
	a := &audited{logins: &logins{harness: h}, path: path}
	if events := a.events(); len(events) != 1 || !strings.HasPrefix(eventLine(events[0]), `replSetReconfig [] { new: { _id: "rs", version: 1`) {
		t.Error(events)
	}
}

// TestAuditOfBuild: a build that takes its time is told of when it begins, and how it ends.
func TestAuditOfBuild(t *testing.T) {
	h := newAudited(t, newHarness(t), audit.Options{Filter: bson.MustDoc(`{atype: "createIndex"}`)})
	b := bson.Build().String("insert", "c").Array("documents")
	for i := range 3000 {
		b.Object(bson.IndexKey(i)).Int32("_id", int32(i)).Int32("a", int32(i/2)).End()
	}
	h.send(t.Context(), "boss", "test", b.End().Doc())
	h.events()
	for command, want := range map[string]string{
		`{createIndexes: "c", indexes: [{key: {a: 1}, name: "a"}]}`:                "IndexBuildStarted 0 IndexBuildSucceeded 0",
		`{createIndexes: "c", indexes: [{key: {a: -1}, name: "u", unique: true}]}`: "IndexBuildStarted 0 IndexBuildAborted 276",
	} {
		h.send(t.Context(), "boss", "test", bson.MustDoc(command))
		var got []string
		for _, e := range h.events() {
			got = append(got, e.Lookup("param").Doc().Lookup("indexBuildState").Str(), e.Lookup("result").String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s", command, got)
		}
	}
}

// TestAuditIsShort: who may do nothing does not fill the disk by what is told of it.
func TestAuditIsShort(t *testing.T) {
	h := newAudited(t, newHarness(t), audit.Options{})
	long := strings.Repeat("x", 1<<20)
	for name, command := range map[string]*bson.Builder{
		"a comment":             bson.Build().String("find", "c").String("comment", long),
		"a comment in parts":    bson.Build().String("find", "c").Object("comment").String("a", long).String("b", long).End(),
		"a filter":              bson.Build().String("find", "c").Object("filter").String("a", long).End(),
		"a field":               bson.Build().String("find", "c").Object("filter").String(long, "a").End(),
		"a name":                bson.Build().String("find", long),
		"a user":                bson.Build().Int32("authenticate", 1).String("mechanism", "MONGODB-X509").String("user", long),
		"a mechanism":           bson.Build().Int32("saslStart", 1).String("mechanism", long).Binary("payload", 0, nil),
		"a user with mechanism": bson.Build().Int32("saslStart", 1).String("mechanism", plainMechanism).Binary("payload", 0, []byte("\x00"+long+"\x00pw")),
	} {
		h.send(t.Context(), "nobody", "test", command.Doc())
		events := h.events()
		for _, e := range events {
			if len(e) > maxAuditedBytes {
				t.Errorf("%s: %d bytes: %.300s", name, len(e), eventLine(e))
			}
		}
		if len(events) == 0 && name != "a name" && name != "a user with mechanism" {
			t.Errorf("%s: nothing is told", name)
		}
	}
}
