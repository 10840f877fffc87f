package ebb_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/serverlog"
)

// TestStartupWarnings: the log and getLog say that nobody is asked who he is, and that everybody can ask.
func TestStartupWarnings(t *testing.T) {
	for _, c := range []struct {
		address string
		all     bool
	}{{"127.0.0.1", false}, {"*", true}} {
		var log bytes.Buffer
		s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, Engine: ebb.InMemory, Addresses: []string{c.address}, Log: serverlog.New(&log, 0).Logger(), ScriptsInProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		written := log.String()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + strings.Replace(s.Addr(), "0.0.0.0", "127.0.0.1", 1)))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Log []string }
		err = client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "getLog", Value: "startupWarnings"}}).Decode(&got)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(got.Log, "\n")
		if !strings.Contains(all, `"msg":"Access control is not enabled for the database. Read and write access to data and configuration is unrestricted"`) ||
			strings.Contains(all, "bound to all addresses") != c.all {
			t.Errorf("%s: %s", c.address, all)
		}
		for _, line := range got.Log {
			if !strings.Contains(written, line) || !strings.Contains(line, `"tags":["startupWarnings"]`) {
				t.Errorf("%s is not in the log:\n%s", line, written)
			}
		}
		if err := client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
