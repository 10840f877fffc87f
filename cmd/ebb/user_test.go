package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Users are added, listed and removed in a data directory that no server uses, and in a running server.
func TestUserVerbs(t *testing.T) {
	dir := t.TempDir()
	verb := func(input string, args ...string) *exec.Cmd {
		cmd := exec.Command(binary, append([]string{"user"}, args...)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		return cmd
	}
	says := func(cmd *exec.Cmd, want string) {
		t.Helper()
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%v: %v: %s", cmd.Args, err, out)
		}
	}
	for _, args := range [][]string{{"list"}, {"remove", "boss"}} {
		failing(t, verb("", append(args, "--dbpath", "mistyped")...), exitFailed, "mistyped is no data directory")
	}
	if _, err := os.Stat(filepath.Join(dir, "mistyped")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a data directory was made: %v", err)
	}
	says(verb("secret\n", "add", "boss"), "user boss of database admin added\n")
	says(verb("other", "add", "reader", "--db", "app", "--role", "read", "--role", "readWrite@logs"), "user reader of database app added\n")
	failing(t, verb("secret", "add", "boss"), exitFailed, "already exists")
	failing(t, verb("", "add", "nobody"), exitFailed, "no password")
	failing(t, verb("x", "add"), exitBadOptions, "accepts 1 arg")
	failing(t, verb("x", "add", "a", "--role", "@x"), exitBadOptions, "neither a role")
	says(verb("", "list"), "boss@admin: root@admin\nreader@app: read@app readWrite@logs\n")

	r := startServer(t, dir)
	failing(t, verb("", "list"), exitFailed, "--uri")
	says(verb("", "remove", "reader", "--db", "app", "--uri", "mongodb://"+r.address), "user reader of database app removed\n")
	failing(t, verb("", "remove", "reader", "--db", "app", "--uri", "mongodb://"+r.address), exitFailed, "not found")
	says(verb("", "list", "--uri", "mongodb://"+r.address), "boss@admin: root@admin\n")
	r.stop(t, syscall.SIGTERM)
}
