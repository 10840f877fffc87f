package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestOIDCWithoutRetry has the Go driver do what the cases of mongodb-oidc-no-retry in the specification of MongoDB's drivers say. The driver's own runner of
// such files does not read that folder, and cannot fill in the properties of the mechanism, for which the file has a placeholder.
func TestOIDCWithoutRetry(t *testing.T) {
	o := startOutside(t, "--setParameter", "enableTestCommands=1")
	file := filepath.Join(t.TempDir(), "token")
	equal(t, os.WriteFile(file, []byte(o.token("programs", time.Hour)), 0o600), nil)
	t.Setenv(tokenFile, file)
	boss := connect(t, o.boss)
	const app = "mongodb-oidc-no-retry"
	fail := func(how bson.D) {
		t.Helper()
		command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
			{Key: "data", Value: append(how, bson.E{Key: "appName", Value: app})}}
		equal(t, boss.Database("admin").RunCommand(t.Context(), command).Err(), nil)
	}
	failing := func(command string, with bson.E) func() {
		return func() { fail(bson.D{{Key: "failCommands", Value: bson.A{command}}, with}) }
	}
	find := func(c *mongo.Collection) error { return c.FindOne(t.Context(), bson.D{{Key: "_id", Value: 0}}).Err() }
	insert := func(c *mongo.Collection) error {
		_, err := c.InsertOne(t.Context(), bson.D{{Key: "x", Value: 1}})
		return err
	}
	again := bson.E{Key: "errorCode", Value: 391} // ReauthenticationRequired
	refused := bson.E{Key: "errorCode", Value: 18}
	for _, c := range []struct {
		what   string
		before func()
		do     func(c *mongo.Collection) error
		want   []string
		code   int
	}{
		{what: "a read succeeds", do: find, want: []string{"started find", "succeeded find"}},
		{what: "a write succeeds", do: insert, want: []string{"started insert", "succeeded insert"}},
		{what: "a read logs in again", before: failing("find", again), do: find, want: []string{"started find", "failed find", "started find", "succeeded find"}},
		{what: "a write logs in again", before: failing("insert", again), do: insert, want: []string{"started insert", "failed insert", "started insert", "succeeded insert"}},
		{what: "who has a token logs in with hello", before: failing("insert", bson.E{Key: "closeConnection", Value: true}), do: func(c *mongo.Collection) error {
			if err := insert(c); !mongo.IsNetworkError(err) {
				t.Errorf("a connection that is closed is %v", err)
			}
			fail(bson.D{{Key: "failCommands", Value: bson.A{"saslStart"}}, refused})
			err := insert(c)
			equal(t, boss.Database("admin").RunCommand(t.Context(), bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}}).Err(), nil)
			return err
		}, want: []string{"started insert", "failed insert", "started insert", "succeeded insert"}},
		{what: "who has none does not", before: failing("saslStart", refused), do: insert, code: 18},
	} {
		t.Run(c.what, func(t *testing.T) {
			heard := &commandLog{}
			client, err := mongo.Connect(options.Client().ApplyURI(o.workload() + "&retryReads=false&retryWrites=false&appName=" + app).SetMonitor(heard.monitor()))
			equal(t, err, nil)
			defer func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) }()
			if c.before != nil {
				c.before()
			}
			err = c.do(client.Database("e2e_login").Collection("collName"))
			var server mongo.ServerError
			switch {
			case c.code != 0 && !(errors.As(err, &server) && server.HasErrorCode(c.code)):
				t.Errorf("got %v, want an error %d", err, c.code)
			case c.code == 0 && err != nil && !errors.Is(err, mongo.ErrNoDocuments):
				t.Error(err)
			}
			if !slices.Equal(heard.all(), c.want) {
				t.Errorf("got %q, want %q", heard.all(), c.want)
			}
		})
	}
}

// commandLog is what a driver says of its commands.
type commandLog struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *commandLog) add(what, command string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, what+" "+command)
}

func (l *commandLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *commandLog) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started:   func(_ context.Context, e *event.CommandStartedEvent) { l.add("started", e.CommandName) },
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { l.add("succeeded", e.CommandName) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { l.add("failed", e.CommandName) },
	}
}
