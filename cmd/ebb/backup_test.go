package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
)

// served runs a server in this process while do works with it.
func served(t *testing.T, o ebb.Options, do func(uri string, client *mongo.Client)) {
	t.Helper()
	o.Port = ebb.AnyPort
	server, err := ebb.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	uri := "mongodb://" + server.Addr() + "/?directConnection=true"
	client, err := mongo.Connect(driver.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	do(uri, client)
	_ = client.Disconnect(t.Context())
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

// verb runs the command line in this process.
func verb(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

func mustVerb(t *testing.T, args ...string) string {
	t.Helper()
	out, err := verb(t, args...)
	if err != nil {
		t.Fatalf("ebb %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func count(t *testing.T, client *mongo.Client, coll string) int64 {
	t.Helper()
	n, err := client.Database("test").Collection(coll).CountDocuments(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func answered(t *testing.T, client *mongo.Client, db string, command bson.D) bson.Raw {
	t.Helper()
	reply, err := client.Database(db).RunCommand(t.Context(), command).Raw()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return reply
}

// TestRestoredAWeekLater: what had not expired at the moment of the backup is there a week later, whatever hides or deletes it, until expiry
// is released; and a clone that is made to be expired at once is.
func TestRestoredAWeekLater(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	then := ebbtest.NewClock(start)
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data"), Clock: then}, func(uri string, client *mongo.Client) {
		db := client.Database("test")
		for coll, index := range map[string]bson.D{
			"dated":    {{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 60}},
			"hidden":   {{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 60}, {Key: "hideExpired", Value: true}},
			"modified": {{Key: "key", Value: bson.D{{Key: "_ts", Value: 1}}}, {Key: "name", Value: "ts"}, {Key: "expireAfterSeconds", Value: 60}},
		} {
			answered(t, client, "test", bson.D{{Key: "createIndexes", Value: coll}, {Key: "indexes", Value: bson.A{index}}})
			for i := range 100 {
				if _, err := db.Collection(coll).InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "at", Value: start}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		then.Advance(59 * time.Second)
		mustVerb(t, "backup", "--uri", uri, repository)
	})
	for _, flags := range [][]string{nil, {"--expireAtOnce"}} {
		path := filepath.Join(dir, "back", strings.Join(append([]string{"as"}, flags...), ""))
		said := mustVerb(t, append([]string{"restore", repository, "--dbpath", path}, flags...)...)
		if held := strings.Contains(said, "expiry is held at 2026-01-02T03:05:04Z"); held != (flags == nil) {
			t.Errorf("%v: it says %q", flags, said)
		}
		week := ebbtest.NewClock(start.Add(7 * 24 * time.Hour))
		server, err := ebb.Open(ebb.Options{DBPath: path, Port: ebb.AnyPort, Clock: week})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- server.Serve(ctx) }()
		client, err := mongo.Connect(driver.Client().ApplyURI("mongodb://" + server.Addr() + "/?directConnection=true"))
		if err != nil {
			t.Fatal(err)
		}
		settle := func(d time.Duration) {
			t.Helper()
			week.Advance(d)
			if err := server.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all := func(want int64) {
			t.Helper()
			for _, coll := range []string{"dated", "hidden", "modified"} {
				if n := count(t, client, coll); n != want {
					t.Errorf("%v: %s has %d documents, want %d", flags, coll, n, want)
				}
			}
		}
		settle(0)
		settle(2 * time.Hour) // long enough for the clock to be trusted
		if flags == nil {
			all(100)
			status := answered(t, client, "admin", bson.D{{Key: "ebbTTL", Value: 1}})
			if why, _ := status.Lookup("heldUpBy").StringValueOK(); !strings.Contains(why, "expiry is held at 2026-01-02T03:05:04") {
				t.Errorf("ebbTTL says %s", status)
			}
			settle(7 * 24 * time.Hour)
			all(100)
			// The operator lengthens one, and releases.
			answered(t, client, "test", bson.D{{Key: "collMod", Value: "dated"}, {Key: "index", Value: bson.D{{Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 365 * 86400}}}})
			answered(t, client, "admin", bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}})
			settle(time.Minute)
			if n := count(t, client, "dated"); n != 100 {
				t.Errorf("%d documents are left whose TTL was lengthened before the release", n)
			}
			if n := count(t, client, "hidden") + count(t, client, "modified"); n != 0 {
				t.Errorf("%d documents are left after the release", n)
			}
		} else {
			all(0)
		}
		_ = client.Disconnect(t.Context())
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeldSourceIsRestoredHeld: a store that is held before its backup comes back held where it was, and goes on where that was asked for.
func TestHeldSourceIsRestoredHeld(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := ebbtest.NewClock(start)
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data"), Clock: clock}, func(uri string, client *mongo.Client) {
		answered(t, client, "admin", bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "2026-01-02T03:00:00Z"}})
		mustVerb(t, "backup", "--uri", uri, repository)
	})
	for flag, want := range map[string]string{"": "2026-01-02T03:00:00Z", "--expireAtOnce": "release"} {
		path := filepath.Join(dir, "back"+flag)
		mustVerb(t, strings.Fields("restore "+repository+" --dbpath "+path+" "+flag)...)
		served(t, ebb.Options{DBPath: path, Clock: clock}, func(_ string, client *mongo.Client) {
			reply := answered(t, client, "admin", bson.D{{Key: "getParameter", Value: 1}, {Key: "ttlHold", Value: 1}}).Lookup("ttlHold")
			got, ok := reply.StringValueOK()
			if !ok {
				got = reply.Time().UTC().Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("%q: held at %s, want %s", flag, got, want)
			}
		})
	}
}

// TestBackupRights: who may not copy the store is refused, and with the role backup it is allowed.
func TestBackupRights(t *testing.T) {
	dir := t.TempDir()
	data, repository := filepath.Join(dir, "data"), filepath.Join(dir, "repository")
	for user, role := range map[string]string{"boss": "root@admin", "keeper": "backup@admin", "reader": "readAnyDatabase@admin", "host": "hostManager@admin"} {
		cmd := exec.Command(binary, "user", "add", user, "--dbpath", data, "--role", role)
		cmd.Stdin = strings.NewReader("secret")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	r := startServer(t, dir, "--auth", "--dbpath", data)
	for user, allowed := range map[string]bool{"boss": true, "keeper": true, "reader": false, "host": false, "": false} {
		uri := "mongodb://" + r.address + "/?directConnection=true"
		if user != "" {
			uri = "mongodb://" + user + ":secret@" + r.address + "/?directConnection=true"
		}
		out, err := verb(t, "backup", "--uri", uri, repository)
		if (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "not authorized") && !strings.Contains(err.Error(), "requires authentication") {
			t.Errorf("%q: %v, %s", user, err, out)
		}
		if strings.Contains(out, "secret") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: it tells the password: %s, %v", user, out, err)
		}
	}
	r.stop(t, syscall.SIGTERM)
	list := mustVerb(t, "backup", "list", repository)
	if strings.Contains(list, "secret") || strings.Count(list, r.address) != 2 {
		t.Errorf("the list says %s", list)
	}
}

// TestBackupVerbsRefuse: mistakes are told in words.
func TestBackupVerbsRefuse(t *testing.T) {
	empty := t.TempDir()
	for args, want := range map[string]string{
		"backup":                                 "accepts 1 arg",
		"verify " + empty:                        "is not a repository of backups",
		"restore " + empty:                       "is not a repository of backups",
		"backup list " + empty + "/missing":      "no such file",
		"backup prune " + empty + " --keep 0":    "is not a repository of backups",
		"backup --uri nothing " + empty + "/new": "scheme must be",
		"restore " + empty + " --backup ../x --dbpath " + empty + "/x": "is not a repository of backups",
	} {
		if out, err := verb(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
}
