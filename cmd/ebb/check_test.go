package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A damaged directory is told by check, refused by serve, and copied by salvage; with the flag a damaged log is started without.
func TestCheckAndSalvage(t *testing.T) {
	dir := t.TempDir()
	verb := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir = dir
		return cmd
	}
	add := verb("user", "add", "boss")
	add.Stdin = strings.NewReader("secret")
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := startServer(t, dir)
	failing(t, verb("check"), exitFailed, "DBPathInUse")
	ping(t, r.address)
	r.stop(t, syscall.SIGTERM)
	out, err := verb("salvage").Output()
	if err != nil || !strings.Contains(string(out), "admin.system.users: 1 of 1 documents copied") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = verb("check").Output()
	if err != nil || !strings.Contains(string(out), "0 damaged files") {
		t.Fatalf("%v: %s", err, out)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "data", "store", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	last := logs[len(logs)-1]
	if err := os.Truncate(last, 30); err != nil {
		t.Fatal(err)
	}
	failing(t, verb("check"), exitFailed, "the store is damaged")
	failing(t, verb("serve", "--nounixsocket", "--port", "0"), exitFailed, filepath.Base(last)+" is damaged at offset 0")
	out, err = verb("salvage", "--out", "lossy").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(string(out), "lost: "+filepath.Base(last)) || !strings.Contains(string(out), "documents of") {
		t.Errorf("%v: %s", err, out)
	}
	failing(t, verb("salvage", "--out", "data"), exitFailed, "data is not empty")
	r = startServer(t, dir, "--startWithDamagedLog")
	ping(t, r.address)
	r.stop(t, syscall.SIGTERM)
	if out, err := verb("check").Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCheckOfAnotherVersion: a form that this version does not know is no damage.
func TestCheckOfAnotherVersion(t *testing.T) {
	for file, text := range map[string]string{"EBB": "Ebb data directory, format 999\n", "store/EBB-FORMAT": "ebb pebblekv 999\n"} {
		dir := t.TempDir()
		startServer(t, dir).stop(t, syscall.SIGTERM)
		if err := os.WriteFile(filepath.Join(dir, "data", filepath.FromSlash(file)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "check")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(string(out), "format 999") || !strings.Contains(string(out), "the store is of another version of Ebb") || strings.Contains(string(out), "damage:") {
			t.Errorf("%s: %v: %s", file, err, out)
		}
	}
}
