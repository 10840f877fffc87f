package ebbtest_test

import (
	"context"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/bson"
)

// race runs the commands at the same time and returns how many answered ok, and the errors of the others.
func race(s *script, commands ...string) (good int, bad []string) {
	replies := make([]error, len(commands))
	var all sync.WaitGroup
	start := make(chan struct{})
	for i, text := range commands {
		all.Go(func() {
			<-start
			_, replies[i] = s.run("test", bson.MustDoc(text))
		})
	}
	close(start)
	all.Wait()
	for _, err := range replies {
		if err == nil {
			good++
		} else {
			bad = append(bad, err.Error())
		}
	}
	return good, bad
}

func (s *script) indexes(coll string) (names []string) {
	reply, err := s.run("test", bson.Build().String("listIndexes", coll).Doc())
	if err != nil {
		s.t.Fatal(err)
	}
	for it := reply.Lookup("cursor").Doc().Lookup("firstBatch").Doc().Iter(); it.Next(); {
		names = append(names, it.Value().Doc().Lookup("name").Str())
	}
	return names
}

const (
	racedOne = `{createIndexes: "c", indexes: [{key: {d: 1}, name: "d_1", expireAfterSeconds: 1}]}`
	racedTwo = `{createIndexes: "c", indexes: [{key: {d: 1}, name: "d_1", expireAfterSeconds: 2}]}`
)

// TestRacingTheSame (C11): both are right, and there is one index.
func TestRacingTheSame(t *testing.T) {
	s := newScript(t)
	for range 20 {
		if good, bad := race(s, racedOne, racedOne, racedOne); good != 3 {
			t.Fatalf("%d are right, the others say %v", good, bad)
		}
		if names := s.indexes("c"); len(names) != 2 {
			t.Fatalf("indexes are %v", names)
		}
		s.reply("test", bson.MustDoc(`{drop: "c"}`), []string{})
	}
}

// TestRacingDifferent (C12): one is right, the other is told 85.
func TestRacingDifferent(t *testing.T) {
	s := newScript(t)
	for range 20 {
		good, bad := race(s, racedOne, racedTwo)
		if good != 1 || len(bad) != 1 || bad[0][:2] != "85" {
			t.Fatalf("%d are right, the others say %v", good, bad)
		}
		s.reply("test", bson.MustDoc(`{drop: "c"}`), []string{})
	}
}

// A client of one's own, as the package comment shows it.
func TestAsDocumented(t *testing.T) {
	s := newScript(t)
	sessions := s.client.Database("app").Collection("sessions")
	s.reply("app", bson.MustDoc(`{createIndexes: "sessions", indexes: [{key: {createdAt: 1}, name: "createdAt_1", expireAfterSeconds: 3600}]}`), []string{})
	if _, err := sessions.InsertOne(context.Background(), map[string]any{"_id": 1, "createdAt": s.srv.Clock.Now()}); err != nil {
		t.Fatal(err)
	}
	s.srv.Advance(3599_999_000_000)
	if err := sessions.FindOne(context.Background(), map[string]any{"_id": 1}).Err(); err != nil {
		t.Errorf("a session of less than an hour: %v", err)
	}
	s.srv.Advance(1_000_000)
	if err := sessions.FindOne(context.Background(), map[string]any{"_id": 1}).Err(); err != mongo.ErrNoDocuments {
		t.Errorf("a session of an hour: %v", err)
	}
}
