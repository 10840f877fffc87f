package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/e2e/binary"
)

// example is one program of the folder examples, and the lines that it prints when all is as it should be.
type example struct {
	file  string
	argv  []string // before the file
	needs []need
	want  []string
}

func examples() []example {
	python := filepath.Join("python", ".venv", "bin", "python")
	pythons := []need{{command: "python3", what: "Python"}, {folder: "python/.venv/.ready", what: "the Python packages"}}
	nodes := []need{{command: "node", what: "Node.js"}, {folder: "../examples/node_modules/.ready", what: "the npm packages of the examples"}}
	return []example{
		{"sessions-express/try.mjs", []string{"node"}, nodes, []string{"logged in", "used, and kept", "run out, and deleted", "logged out"}},
		{"cache/cache.mjs", []string{"node"}, nodes, []string{"made once, and found", "news is old after a second", "home after two, or when it is dropped"}},
		{"one-time-codes/codes.py", []string{python}, pythons, []string{"a code is good once", "three wrong guesses use it up", "and after its time nobody sees it"}},
		{"iot/readings.py", []string{python}, pythons, []string{"300 readings, condensed to", "the readings are gone, the means stay"}},
		{"cosmos-migration/try.py", []string{python}, pythons, []string{"five are moved", "the database says the same", "and what is written anew"}},
		{"retention/retention.js", []string{filepath.Join("node", mongosh), "--quiet", "--norc", "$URI", "--file"}, node(),
			[]string{"ada goes in 1095 days", "bob is gone", "eve goes as all do"}},
	}
}

// TestExamples runs each against one server, at once.
func TestExamples(t *testing.T) {
	server := binary.Start(t, binary.Build(t), "--dbpath", t.TempDir())
	t.Run("all", func(t *testing.T) {
		for _, e := range examples() {
			t.Run(e.file, func(t *testing.T) {
				t.Parallel()
				client{needs: e.needs}.require(t)
				e.run(t, server.URI("directConnection=true"))
			})
		}
	})
	if t.Failed() {
		t.Logf("the server's log ends with:\n%s", server.Log())
	}
}

func (e example) run(t *testing.T, uri string) {
	ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
	defer cancel()
	var argv []string
	for _, a := range e.argv {
		argv = append(argv, strings.ReplaceAll(a, "$URI", uri))
	}
	cmd := exec.CommandContext(ctx, argv[0], append(argv[1:], filepath.Join("..", "examples", filepath.FromSlash(e.file)))...)
	cmd.Env = append(os.Environ(), "MONGODB_URI="+uri, "PYTHONDONTWRITEBYTECODE=1", "NODE_OPTIONS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, line := range e.want {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("it does not say %q:\n%s", line, out)
		}
		rest = after
	}
}

// TestEveryExampleRuns: a folder that no test runs goes stale.
func TestEveryExampleRuns(t *testing.T) {
	entries, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || name == "node_modules" {
			continue
		}
		run := false
		for _, e := range examples() {
			run = run || strings.HasPrefix(e.file, name+"/")
		}
		if !run {
			t.Errorf("nothing runs examples/%s", name)
		}
	}
}
