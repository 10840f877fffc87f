package e2e

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// loginClients are those that log in. Each gets the addresses of users in its environment: EBB_URI is of one who may do everything, EBB_IN has
// those who log in, EBB_OUT those who do not, a line each; EBB_AS is one whose user and password are both called NAME, of the database NAME.
func loginClients() []client {
	return []client{
		{name: "mongosh", needs: node(), dir: "node", argv: []string{mongosh, "--quiet", "--norc", "$URI", "--file", filepath.Join("mongosh", "login.js")}},
		{name: "node", needs: node(), dir: "node", argv: []string{"node", "login.mjs"}},
		python("pymongo", "login.py"),
		java(javaClients, "driver", "ebb.Login"),
	}
}

// loginURI is an address with a user and a password. A mechanism "" leaves it to the driver.
func loginURI(s *binary.Server, user, password, mechanism, source string) string {
	options := "directConnection=true&authSource=" + source
	if mechanism != "" {
		options += "&authMechanism=" + mechanism
	}
	return strings.Replace(s.URI(options), "mongodb://", "mongodb://"+url.QueryEscape(user)+":"+url.QueryEscape(password)+"@", 1)
}

// TestLogin has clients log in to a server that asks for it: as the specification of MongoDB's drivers wants it tried, with users of either mechanism, of
// both, and with names and passwords that SASLprep changes, and as users whose roles change while they are connected.
func TestLogin(t *testing.T) {
	t.Parallel() // nothing in it is timed
	server := binary.Start(t, binary.Build(t), "--storageEngine", "inMemory", "--auth")
	run := func(client *mongo.Client, db, user, password string, roles bson.A, mechanisms ...string) error {
		command := bson.D{{Key: "createUser", Value: user}, {Key: "pwd", Value: password}, {Key: "roles", Value: roles}}
		if mechanisms != nil {
			command = append(command, bson.E{Key: "mechanisms", Value: mechanisms})
		}
		return client.Database(db).RunCommand(t.Context(), command).Err()
	}
	nobody := connect(t, server.URI("directConnection=true"))
	equal(t, run(nobody, "admin", "boss", "p@ss:/w", bson.A{"root"}), nil)
	if err := run(nobody, "admin", "second", "pw", bson.A{"root"}); err == nil {
		t.Error("a second user is made by nobody")
	}
	const sha1, sha256 = "SCRAM-SHA-1", "SCRAM-SHA-256"
	boss := loginURI(server, "boss", "p@ss:/w", "", "admin")
	root := connect(t, boss)
	for user, mechanisms := range map[string][]string{"sha1": {sha1}, "sha256": {sha256}, "both": {sha1, sha256}, "IX": {sha256}, "\u2168": {sha256}} {
		password := map[string]string{"\u2168": "\u2163"}[user]
		if password == "" {
			password = user
		}
		equal(t, run(root, "admin", user, password, bson.A{"root"}, mechanisms...), nil)
	}
	as := func(user, password, mechanism string) string {
		return loginURI(server, user, password, mechanism, "admin")
	}
	in := []string{boss, as("sha1", "sha1", ""), as("sha1", "sha1", sha1), as("sha256", "sha256", ""), as("sha256", "sha256", sha256),
		as("both", "both", ""), as("both", "both", sha1), as("both", "both", sha256),
		as("IX", "IX", sha256), as("IX", "I\u00adX", sha256), as("\u2168", "IV", sha256), as("\u2168", "I\u00adV", sha256), as("\u2168", "\u2163", sha256)}
	out := []string{as("sha1", "sha1", sha256), as("sha256", "sha256", sha1), as("both", "Both", ""), as("nobody", "nobody", ""), loginURI(server, "both", "both", "", "test")}

	t.Run("go", func(t *testing.T) {
		for _, uri := range in {
			equal(t, connect(t, uri).Database("test").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}}).Err(), nil)
		}
		for _, uri := range out {
			client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(5 * time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Ping(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "Authentication failed") {
				t.Errorf("%s: %v", uri, err)
			}
			_ = client.Disconnect(t.Context())
		}
	})
	// One who fails again and again waits, and the others here do not: so each client's wrong ones are few.
	for _, c := range loginClients() {
		t.Run(c.name, func(t *testing.T) {
			c.require(t)
			c.run(t, boss, "EBB_IN="+strings.Join(in, "\n"), "EBB_OUT="+strings.Join(out[:2], "\n"), "EBB_AS="+loginURI(server, "NAME", "NAME", "", "NAME"))
		})
	}
	if how := server.Crashed(); how != "" {
		t.Errorf("the server did not survive its clients: %s", how)
	}
	for _, secret := range []string{"p@ss:/w", "p%40ss", "Both"} {
		if strings.Contains(server.Log(), secret) {
			t.Errorf("the log tells of the password %s", secret)
		}
	}
	if !slices.ContainsFunc(strings.Split(server.Log(), "\n"), func(line string) bool {
		return strings.Contains(line, "Failed to authenticate") && strings.Contains(line, "ACCESS")
	}) {
		t.Error("the log tells of no failed login")
	}
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", server.Log())
	}
	equal(t, server.Stop(), nil)
}
