package ebb_test

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
)

// TestMessagesOfTheUnknown: who has not logged in sends no large messages, where clients log in, nor what becomes one when it is decompressed.
func TestMessagesOfTheUnknown(t *testing.T) {
	for _, authorization := range []bool{false, true} {
		s := serve(t, ebb.Options{Engine: ebb.InMemory, Port: ebb.AnyPort, Authorization: authorization, Compressors: []string{"zlib"}})
		run := func(user, more string, command bson.D) error {
			c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + user + s.Addr() + "/?directConnection=true" + more))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Disconnect(context.Background()) }()
			return c.Database("admin").RunCommand(t.Context(), command).Err()
		}
		ping := func(user, more string, bytes int) error {
			return run(user, more, bson.D{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("x", bytes)}})
		}
		if err := run("", "", bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"root"}}}); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"", "&compressors=zlib"} {
			if err := ping("", more, 15_000); err != nil {
				t.Error(authorization, more, err)
			}
			if err := ping("", more, 17_000); (err == nil) == authorization || err != nil && !mongo.IsNetworkError(err) {
				t.Errorf("authorization %t, %q: a message of 17 KB of nobody: %v", authorization, more, err)
			}
			if err := ping("u:p@", more, 1<<20); err != nil {
				t.Error(authorization, more, err)
			}
		}
		if err := run("u:p@", "", bson.D{{Key: "setParameter", Value: 1}, {Key: "preAuthMaximumMessageSizeBytes", Value: 20_000}}); err != nil {
			t.Fatal(err)
		}
		if err := ping("", "", 17_000); err != nil {
			t.Error(err)
		}
	}
}
