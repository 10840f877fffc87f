package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/launch"
)

// TestKilledMember: clients whose only member is killed under them go on with their streams, sessions and transactions where they were.
// Each has a member of its own.
func TestKilledMember(t *testing.T) {
	t.Parallel() // nothing in it is timed
	path := binary.Build(t)
	t.Run("all", func(t *testing.T) { // ends when its parallel parts have
		for _, c := range []client{
			{name: "node/killed", needs: node(), dir: "node", argv: []string{"node", "killed.mjs"}},
			python("killed", "killed.py"),
			java(javaClients, "killed", "ebb.Killed"),
			java(javaDebezium, "debezium", "ebb.Debezium"),
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.require(t)
				m := startMortal(t, path)
				c.run(t, m.server.URI(bySet), "EBB_KILL_URL="+m.killURL)
				if t.Failed() {
					t.Logf("the server's log ends with:\n%s", m.log())
				}
			})
		}
	})
}

// mortal is a member that its client can kill: a request to killURL is kill -9 and a start with the same data at the same address, and
// is answered when the new one listens.
type mortal struct {
	killURL string
	path    string
	args    []string

	mu     sync.Mutex // one kill at a time; guards server
	server *launch.Server
}

func startMortal(t *testing.T, path string) *mortal {
	t.Helper()
	m := &mortal{path: path, args: []string{"--dbpath", t.TempDir(), "--replSet", "e2e", "--replSetInitiate"}}
	m.server = binary.Start(t, path, m.args...)
	_, port, err := net.SplitHostPort(m.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	m.args = append([]string{"serve", "--nounixsocket", "--port", port}, m.args...)
	killer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := m.kill(t); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	m.killURL = killer.URL
	t.Cleanup(func() {
		killer.Close() // waits for what is under way
		if err := m.server.Stop(); err != nil {
			t.Errorf("stopping the server: %v\n%s", err, m.server.Log())
		}
	})
	return m
}

func (m *mortal) kill(t *testing.T) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Kill()
	s, err := launch.Start(t.Context(), exec.Command(m.path, m.args...))
	if err == nil {
		m.server = s
	}
	return err
}

func (m *mortal) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.Log()
}
