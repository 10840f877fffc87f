// Package binary builds the real ebb and runs it as its own process in tests. It knows the command line; it does not know the
// protocol.
package binary

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	// Go keeps the results of tests whose inputs have not changed; the server is one of them.
	_ "github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/e2e/launch"
)

// Build compiles cmd/ebb into a folder that goes away with the test.
func Build(tb testing.TB) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "ebb")
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	build := exec.Command("go", "build", "-o", out, "github.com/ebbdb/ebb/cmd/ebb")
	if said, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("building cmd/ebb: %v\n%s", err, said)
	}
	return out
}

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
