package ebb

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	own "github.com/ebbdb/ebb/internal/bson"
)

// TestMessagesOfTheUnknown: who has not logged in sends no large messages, where clients log in, nor what becomes one when it is decompressed.
func TestMessagesOfTheUnknown(t *testing.T) {
	for _, authorization := range []bool{false, true} {
		s, err := Open(Options{Engine: InMemory, Port: AnyPort, Authorization: authorization, Compressors: []string{"zlib"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
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

// A server that hands clients on learns from the replies who has logged in.
func TestIsLogin(t *testing.T) {
	for reply, want := range map[string]bool{
		"{conversationId: 1, done: false, ok: 1}":                 false,
		"{conversationId: 1, done: true, ok: 1}":                  true,
		"{dbname: '$external', user: 'CN=ann', ok: 1}":            true,
		"{speculativeAuthenticate: {done: false}, ok: 1}":         false,
		"{speculativeAuthenticate: {dbname: '$external'}, ok: 1}": true,
		"{isWritablePrimary: true, ok: 1}":                        false,
		"{ok: 0, code: 18}":                                       false,
	} {
		if isLogin(own.MustDoc(reply)) != want {
			t.Errorf("%s: %t", reply, !want)
		}
	}
}
