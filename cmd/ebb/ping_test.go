package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A server that runs is ready, to whoever has logged in or not; one that does not, or that is no member yet, is not.
func TestPing(t *testing.T) {
	verb := func(args ...string) *exec.Cmd { return exec.Command(binary, append([]string{"ping"}, args...)...) }
	r := startServer(t, t.TempDir(), "--auth")
	out, err := verb("--uri", "mongodb://"+r.address).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ready (") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := verb("--uri", "mongodb://nobody:wrong@"+r.address).CombinedOutput(); err != nil { // it logs in nowhere
		t.Errorf("%v: %s", err, out)
	}
	r.stop(t, syscall.SIGTERM)
	if out, _ := verb("--uri", "mongodb://root:secret@"+r.address, "--timeout", "200ms").CombinedOutput(); strings.Contains(string(out), "secret") {
		t.Errorf("the password is told: %s", out)
	}
	failing(t, verb("--uri", "mongodb://"+r.address, "--timeout", "200ms"), exitFailed, "does not answer")
	failing(t, verb("--uri", "nonsense"), exitBadOptions, "--uri")
	failing(t, verb("--timeout", "soon"), exitBadOptions, "timeout")
	failing(t, verb("x"), exitBadOptions, "unknown command")

	member := startServer(t, t.TempDir(), "--replSet", "rs0")
	failing(t, verb("--uri", "mongodb://"+member.address), exitFailed, "neither primary nor secondary")
	member.stop(t, syscall.SIGTERM)
}
