package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each verb that a user sees has a page, and the page of serve has its flags.
func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if out, err := exec.Command(binary, "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, verb := range root().Commands() {
		_, err := os.Stat(filepath.Join(dir, "ebb-"+verb.Name()+".1"))
		if there := err == nil; there == verb.Hidden {
			t.Errorf("ebb %s: hidden %v, and a page %v", verb.Name(), verb.Hidden, there)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "ebb-serve.1"))
	if err != nil || !strings.Contains(string(page), "dbpath") || !strings.Contains(string(page), ".TH \"EBB\" \"1\"") {
		t.Errorf("%v: %s", err, page)
	}
	failing(t, exec.Command(binary, "man"), exitBadOptions, "accepts 1 arg")
}

// The shells themselves take what completes them, where they are on the machine.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := exec.Command(binary, "completion", shell).Output()
		if err != nil || !strings.Contains(string(script), "ebb") {
			t.Errorf("%s: %v: %.200s", shell, err, script)
			continue
		}
		if path, err := exec.LookPath(shell); err == nil && shell != "powershell" {
			check := exec.Command(path, "-n", "/dev/stdin")
			check.Stdin = strings.NewReader(string(script))
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s does not take it: %v: %s", shell, err, out)
			}
		}
	}
	out, err := exec.Command(binary, "__complete", "serve", "--dbp").Output()
	if err != nil || !strings.Contains(string(out), "--dbpath") {
		t.Errorf("--dbp is not completed: %v: %s", err, out)
	}
	failing(t, exec.Command(binary, "completion", "tcsh"), exitBadOptions, "there is no completion for")
}
