package e2e

import (
	"bytes"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/network"
)

// whole has the console's tests run that take long.
var whole = flag.Bool("console", false, "run the console's long tests, too")

// browsers are names by which Chromium is known.
func browsers() []string { return []string{"chromium", "chromium-browser", "google-chrome"} }

// browser is a program of the console's tests.
func browser(script string) client {
	needs := []need{{command: "node", what: "Node.js"}, {folder: "console/node_modules/.ready", what: "the npm packages of the console's tests"}}
	found := ""
	for _, name := range browsers() {
		if path, err := exec.LookPath(name); err == nil && found == "" {
			found = path
		}
	}
	if found == "" {
		needs = append(needs, need{command: browsers()[0], what: "Chromium"})
	}
	return client{name: script, needs: needs, dir: "console", argv: []string{"node", script}}
}

// freePort is a port that nobody listens on for the moment.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// startConsole starts a server with a console, and returns where that is.
func startConsole(t *testing.T, args ...string) (*binary.Server, string) {
	t.Helper()
	port := freePort(t)
	server := binary.Start(t, binary.Build(t), append([]string{"--storageEngine", "inMemory", "--consolePort", port}, args...)...)
	return server, "EBB_CONSOLE=http://127.0.0.1:" + port + "/"
}

// inBrowser runs one program.
func inBrowser(t *testing.T, server *binary.Server, at, script string, env ...string) {
	t.Helper()
	c := browser(script)
	c.require(t)
	release, err := network.Still()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	c.run(t, server.URI("directConnection=true"), append(env, at)...)
	if how := server.Crashed(); how != "" {
		t.Errorf("the server did not survive: %s", how)
	}
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", server.Log())
	}
}

// TestConsole does in a real browser what the console is for.
func TestConsole(t *testing.T) {
	for _, script := range []string{"expiry.mjs", "documents.mjs", "operations.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			server, at := startConsole(t)
			inBrowser(t, server, at, script)
		})
	}
}

// TestConsoleLogin has a server ask who somebody is.
func TestConsoleLogin(t *testing.T) {
	t.Parallel()
	server, at := startConsole(t, "--auth")
	nobody := connect(t, server.URI("directConnection=true"))
	make := func(client *mongo.Client, db, user, password string, role any) {
		t.Helper()
		command := bson.D{{Key: "createUser", Value: user}, {Key: "pwd", Value: password}, {Key: "roles", Value: bson.A{role}}}
		if err := client.Database(db).RunCommand(t.Context(), command).Err(); err != nil {
			t.Fatal(err)
		}
	}
	make(nobody, "admin", "boss", "p@ss", "root")
	boss := loginURI(server, "boss", "p@ss", "", "admin")
	make(connect(t, boss), "shop", "reader", "r", "read")
	inBrowser(t, server, at, "login.mjs", "EBB_LOGIN="+boss)
}

// TestConsoleScreens looks at each screen in both themes, at a million documents, and at a thousand collections.
func TestConsoleScreens(t *testing.T) {
	if !*whole {
		t.Skip("it takes minutes; make e2e-console runs it")
	}
	for _, script := range []string{"screens.mjs", "narrow.mjs", "million.mjs", "collections.mjs"} {
		t.Run(script, func(t *testing.T) {
			server, at := startConsole(t)
			inBrowser(t, server, at, script)
		})
	}
}

// TestConsoleMembers has a member of a replica set tell of itself.
func TestConsoleMembers(t *testing.T) {
	if !*whole {
		t.Skip("make e2e-console runs it, with what takes long")
	}
	server, at := startConsole(t, "--replSet", "rs", "--replSetInitiate")
	inBrowser(t, server, at, "members.mjs")
}

// TestConsoleBundle holds the bundle in the tree to its sources.
func TestConsoleBundle(t *testing.T) {
	c := client{needs: []need{{command: "node", what: "Node.js"}, {folder: "../console/node_modules/.ready", what: "the console's npm packages"}}}
	c.require(t)
	cmd := exec.CommandContext(t.Context(), "node", "build.mjs", "--check")
	cmd.Dir = filepath.Join("..", "console")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("kB compressed")) {
		t.Errorf("%v\n%s", err, out)
	}
}
