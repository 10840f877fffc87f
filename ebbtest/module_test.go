package ebbtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Another module can build all that the public packages take and give: this one's examples, copied into it, compile there.
func TestUseFromAnotherModule(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	module := string(read(t, filepath.Join(root, "go.mod")))
	module = strings.Replace(module, "module github.com/ebbdb/ebb\n", "module example.com/outside\n", 1)
	module += "\nrequire github.com/ebbdb/ebb v0.0.0\n\nreplace github.com/ebbdb/ebb => " + root + "\n"
	write(t, filepath.Join(dir, "go.mod"), []byte(module))
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(root, "go.sum")))
	write(t, filepath.Join(dir, "embed", "example_test.go"), read(t, filepath.Join(root, "example_test.go")))
	write(t, filepath.Join(dir, "tests", "example_test.go"), read(t, "example_test.go"))
	vet := exec.CommandContext(t.Context(), "go", "vet", "./...")
	vet.Dir = dir
	vet.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
