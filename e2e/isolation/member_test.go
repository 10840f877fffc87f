package isolation

import (
	"context"
	"net"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/launch"
)

const dbName = "isolation"

// member is a replica set of one that can be killed, and comes back at the same address with the same data.
type member struct {
	path string
	args []string
	uri  string
	// admin is who sets fail points.
	admin *mongo.Database

	mu     sync.Mutex // one kill at a time; guards server
	server *launch.Server
}

func startMember(t *testing.T, path string) *member {
	t.Helper()
	m := &member{path: path, args: []string{"--dbpath", t.TempDir(), "--replSet", "isolation", "--replSetInitiate", "--oplogSize", "990", "--quiet", "--setParameter", "enableTestCommands=1"}}
	m.server = binary.Start(t, path, m.args...)
	m.uri = m.server.URI("replicaSet=isolation")
	m.admin = m.connect(t, true).Client().Database("admin")
	_, port, err := net.SplitHostPort(m.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	m.args = append([]string{"serve", "--nounixsocket", "--port", port}, m.args...)
	t.Cleanup(func() {
		if err := m.server.Stop(); err != nil {
			t.Errorf("stopping the server: %v\n%s", err, m.log())
		}
	})
	return m
}

func (m *member) kill(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server.Kill()
	s, err := launch.Start(ctx, exec.Command(m.path, m.args...))
	if err == nil {
		m.server = s
	}
	return err
}

// connectAll connects clients by a driver each, every third without retryable writes: after an error of its connection a driver rests for a moment.
func (m *member) connectAll(t *testing.T) (all []*mongo.Database) {
	t.Helper()
	for i := range *clients {
		all = append(all, m.connect(t, i%3 != 0))
	}
	return all
}

func (m *member) failPoint(t *testing.T, command bson.D) {
	t.Helper()
	if err := m.admin.RunCommand(context.Background(), command).Err(); err != nil {
		t.Error(err)
	}
}

func (m *member) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server.Log()
}

// connect has the driver send writes again that got no answer, or not; reads and commits are sent again by all.
func (m *member) connect(t *testing.T, retryWrites bool) *mongo.Database {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(m.uri).SetWriteConcern(writeconcern.Majority()).SetTimeout(callLimit).SetRetryWrites(retryWrites))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its server may be dead by then, and there is nobody to say goodbye to
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c.Database(dbName)
}
