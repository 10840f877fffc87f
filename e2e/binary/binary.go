// Package binary builds the real ebb and runs it as its own process in tests. It knows the command line; it does not know the
// protocol.
package binary

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	// Go keeps the results of tests whose inputs have not changed; the server is one of them.
	_ "github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/e2e/launch"
)

// Build compiles cmd/ebb and returns the path of the program. It is in a folder of this project that stays, since linking takes as long as many a
// test: all tests have the same, and Go makes it anew only when a source has changed.
func Build(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// build runs once in a process. `make e2e` builds the program before it runs several packages: then it is as new as its sources, and none of them
// writes what another runs.
var build = sync.OnceValues(func() (string, error) {
	file, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	out := filepath.Join(filepath.Dir(strings.TrimSpace(string(file))), "bin", "e2e", "ebb")
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	if said, err := exec.Command("go", "build", "-o", out, "github.com/ebbdb/ebb/cmd/ebb").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cmd/ebb: %w\n%s", err, said)
	}
	return out, nil
})

// Server is one running process.
type Server = launch.Server

// Start runs "ebb serve" on a free port of the loopback interface and returns once it says that it listens. The process
// is stopped when the test ends.
func Start(tb testing.TB, path string, args ...string) *Server {
	tb.Helper()
	s, err := launch.Start(tb.Context(), exec.Command(path, append([]string{"serve", "--nounixsocket", "--port", "0"}, args...)...))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stopping the server: %v\n%s", err, s.Log())
		}
	})
	return s
}
