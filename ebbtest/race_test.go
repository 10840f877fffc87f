package ebbtest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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
			_, replies[i] = s.runIn(context.Background(), "test", bson.MustDoc(text)) // the driver has no two use one session
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

// TestScansOfWhatMoves: a cursor without an index meets each document once, in either direction, while writers move them.
func TestScansOfWhatMoves(t *testing.T) {
	const documents, scans = 300, 12
	s := newScript(t)
	s.reply("test", bson.MustDoc(`{createIndexes: "c", indexes: [{key: {d: 1}, name: "d_1", expireAfterSeconds: 3600}]}`), []string{})
	coll := s.client.Database("test").Collection("c")
	for i := range documents {
		if _, err := coll.InsertOne(t.Context(), map[string]any{"_id": i, "d": zero.Add(time.Duration(i) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for n := range 2 {
		random := rand.New(rand.NewPCG(uint64(n), 0))
		writers.Go(func() {
			for ctx.Err() == nil {
				date := map[string]any{"d": zero.Add(time.Duration(random.IntN(documents)) * time.Second)}
				if _, err := coll.UpdateByID(ctx, random.IntN(documents), map[string]any{"$set": date}); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range scans {
		way := 1 - 2*(i%2)
		cursor, err := coll.Find(ctx, map[string]any{}, options.Find().SetHint(driver.D{{Key: "$natural", Value: way}}).SetBatchSize(20))
		if err != nil {
			t.Fatal(err)
		}
		met := map[int32]int{}
		for cursor.Next(ctx) {
			met[cursor.Current.Lookup("_id").Int32()]++
		}
		if err := cursor.Err(); err != nil {
			t.Error(err)
		}
		for id := range int32(documents) {
			if met[id] != 1 {
				t.Errorf("scan %d meets document %d %d times", i, id, met[id])
			}
		}
	}
	stop()
	writers.Wait()
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
