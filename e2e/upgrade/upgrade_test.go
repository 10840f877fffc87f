// Package upgrade has today's ebb open what earlier ones wrote, and those what today's wrote. The earlier ones are built from the history of
// the repository. It knows commands and what they answer; it knows nothing of what is on disk.
package upgrade

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/launch"
)

var (
	from = flag.String("from", "", "comma-separated commits, or programs built before, that write what today's opens, and open what it wrote; from a20c286b on, for those before end with a panic where they should refuse")
	seed = flag.Uint64("seed", 0, "of the moments at which first starts are killed; 0 draws one")
)

// kills is how many first starts are killed before one is left alone.
const kills = 5

// TestUpgrade: a directory of an earlier build, killed under load, has all of its documents, indexes and deadlines under today's, whose first starts are killed,
// too. What today's has written an earlier one refuses, or reads as rightly.
func TestUpgrade(t *testing.T) {
	if *from == "" {
		t.Skip("it builds earlier commits, which takes a minute each: make upgrade FROM=commit,commit")
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	today := binary.Build(t)
	for commit := range strings.SplitSeq(*from, ",") {
		t.Run(commit, func(t *testing.T) {
			earlier := build(t, commit)
			t.Run("standalone", func(t *testing.T) { there(t, earlier, today) })
			t.Run("standalone back", func(t *testing.T) { back(t, today, earlier) })
			if member(t, earlier) {
				t.Run("member", func(t *testing.T) { there(t, earlier, today, "--replSet", "rs0", "--replSetInitiate") })
				t.Run("member back", func(t *testing.T) { back(t, today, earlier, "--replSet", "rs0", "--replSetInitiate") })
			}
		})
	}
}

// there has one build write a directory and another one open it.
func there(t *testing.T, writes, opens string, args ...string) {
	args = append([]string{"--dbpath", filepath.Join(t.TempDir(), "data"), "--setParameter", "ttlMonitorEnabled=false"}, args...)
	server := start(t, writes, args...)
	fill(t, server)
	before := read(t, server)
	server.Kill()
	random := rand.New(rand.NewPCG(*seed, 1))
	for range kills {
		killStarting(t, time.Duration(random.IntN(500))*time.Millisecond, opens, args...)
	}
	server = start(t, opens, args...)
	compare(t, before, read(t, server))
	validate(t, server)
	change(t, server)
	validate(t, server)
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", server.Log())
	}
}

// back has an earlier build open what today's has written: it refuses that by its format, or has all of it.
func back(t *testing.T, writes, opens string, args ...string) {
	args = append([]string{"--dbpath", filepath.Join(t.TempDir(), "data"), "--setParameter", "ttlMonitorEnabled=false"}, args...)
	server := start(t, writes, args...)
	fill(t, server)
	before := read(t, server)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	earlier, err := serve(t, opens, args...)
	if err != nil {
		if !strings.Contains(err.Error(), "has format") && !strings.Contains(err.Error(), "has store format") {
			t.Errorf("it does not say that the format is another one: %v", err)
		}
	} else {
		compare(t, before, read(t, earlier))
		validate(t, earlier)
		change(t, earlier)
		validate(t, earlier)
		if err := earlier.Stop(); err != nil {
			t.Error(err)
		}
	}
	server = start(t, writes, args...)
	if err != nil {
		compare(t, before, read(t, server))
	}
	validate(t, server)
}

// serve starts a build with flags that the first ones know, too.
func serve(t *testing.T, ebb string, args ...string) (*launch.Server, error) {
	return launch.Start(t.Context(), exec.Command(ebb, append([]string{"serve", "--port", "0"}, args...)...))
}

// start is serve of what must start. The server is stopped when the test ends.
func start(t *testing.T, ebb string, args ...string) *launch.Server {
	t.Helper()
	s, err := serve(t, ebb, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// build compiles the ebb of a commit; a program is there already.
func build(t *testing.T, commit string) string {
	t.Helper()
	if _, err := os.Stat(commit); err == nil {
		return commit
	}
	dir := t.TempDir()
	tree, out := filepath.Join(dir, "tree"), filepath.Join(dir, "ebb")
	run(t, "git", "worktree", "add", "--detach", tree, commit)
	t.Cleanup(func() { run(t, "git", "worktree", "remove", "--force", tree) })
	run(t, "go", "-C", tree, "build", "-o", out, "./cmd/ebb")
	return out
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if said, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
}

// member says whether a build can be a member of a replica set.
func member(t *testing.T, ebb string) bool {
	said, err := exec.Command(ebb, "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(said), "--replSetInitiate")
}

// killStarting kills a server so long after its process has begun, wherever it is then.
func killStarting(t *testing.T, after time.Duration, ebb string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	cmd := exec.CommandContext(ctx, ebb, append([]string{"serve", "--nounixsocket", "--port", "0"}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); ctx.Err() == nil {
		t.Fatalf("the server ended at its start: %v", err)
	}
}
