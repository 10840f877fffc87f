package ebb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
)

// TestLoginBeside: a server that reads itself lets nobody read more than the one that works would, as soon as that would not.
func TestLoginBeside(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k3y+", 16)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &beside{t: t, clock: clock.NewFake(time.Now()), cluster: tikvtest.New(t), key: key}
	s.open()
	ctx := t.Context()
	user := func(name string, role bson.D) bson.D {
		return bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: bson.A{role}}}
	}
	s.must(s.clients[0].Database("admin").RunCommand(ctx, user("ann", bson.D{{Key: "role", Value: "root"}, {Key: "db", Value: "admin"}})).Err())
	ann := s.client(0, "ann:secret")
	s.must(ann.Database("admin").RunCommand(ctx, user("bob", bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "test"}})).Err())
	for _, db := range []string{"test", "other"} {
		_, err := ann.Database(db).Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		s.must(err)
	}
	s.open()
	bob := s.client(1, "bob:secret")
	read := func(client *mongo.Client, db string) (code, answered int) {
		var err error
		answered = s.answered(1, func() { err = client.Database(db).Collection("c").FindOne(ctx, bson.D{}).Err() })
		if err != nil && codeIn(err) == 0 {
			t.Errorf("a read fails: %v", err)
		}
		return codeIn(err), answered
	}
	for _, c := range []struct {
		who            string
		client         *mongo.Client
		db             string
		code, answered int
	}{
		{"bob in his database", bob, "test", 0, 1},
		{"bob in another one", bob, "other", 13, 1},
		{"ann", s.client(1, "ann:secret"), "other", 0, 1},
		{"nobody", s.clients[1], "test", 13, 0},
	} {
		if code, answered := read(c.client, c.db); code != c.code || answered != c.answered {
			t.Errorf("%s: code %d, and %d reads are answered; want %d and %d", c.who, code, answered, c.code, c.answered)
		}
	}
	shows := func(client *mongo.Client) int {
		t.Helper()
		cursor, err := client.Database("admin").Aggregate(ctx, mongo.Pipeline{{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: true}, {Key: "idleConnections", Value: true}}}},
			{{Key: "$match", Value: bson.D{{Key: "host", Value: s.servers[1].Addr()}, {Key: "effectiveUsers.user", Value: "bob"}}}}})
		s.must(err)
		var all []bson.M
		s.must(cursor.All(ctx, &all))
		return len(all)
	}
	if n := shows(ann); n == 0 {
		t.Error("the server that works does not show who is connected to the other")
	}
	// Who may stop his own operations alone stops them wherever they are, and nobody else's.
	for who, client := range map[string]*mongo.Client{"ann": s.client(1, "ann:secret"), "bob": bob} {
		for i := range 40 {
			_, err := ann.Database("test").Collection("many").UpdateOne(ctx, bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
			s.must(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := client.Database("test").Collection("many").Aggregate(ctx, endless("many"))
			ended <- err
		}()
		var shown []struct{ Opid string }
		until(t, "an operation of "+who, func() error {
			cursor, err := ann.Database("admin").Aggregate(ctx, mongo.Pipeline{{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: true}}}},
				{{Key: "$match", Value: bson.D{{Key: "command.aggregate", Value: "many"}, {Key: "host", Value: s.servers[1].Addr()}}}}})
			s.must(err)
			if s.must(cursor.All(ctx, &shown)); len(shown) == 0 {
				return errors.New("it is not shown")
			}
			return nil
		})
		kill := bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: shown[0].Opid}}
		if err := bob.Database("admin").RunCommand(ctx, kill).Err(); codeIn(err) != map[string]int{"ann": 13, "bob": 0}[who] {
			t.Errorf("bob stops an operation of %s: %v", who, err)
		}
		s.must(ann.Database("admin").RunCommand(ctx, kill).Err())
		if err := <-ended; codeIn(err) != 11601 {
			t.Errorf("an operation of %s that was stopped: %v", who, err)
		}
	}
	if err := s.clients[1].Database("admin").RunCommand(ctx, bson.D{{Key: "ebbBeside", Value: bson.D{{Key: "operations", Value: bson.D{}}}}}).Err(); codeIn(err) != 13 {
		t.Errorf("a client asks as if it were a server: %v", err)
	}
	if err := bob.Database("admin").RunCommand(ctx, bson.D{{Key: "ebbBeside", Value: bson.D{{Key: "operations", Value: bson.D{}}}}}).Err(); codeIn(err) != 13 {
		t.Errorf("a user asks as if he were a server: %v", err)
	}
	if err := s.client(0, "bob:secret").Database("admin").RunCommand(ctx, bson.D{{Key: "ebbFollow", Value: s.servers[0].foundation.tikv.Load().Holder().ID}, {Key: "place", Value: int64(-1)}}).Err(); codeIn(err) != 13 {
		t.Errorf("a user asks what has been committed: %v", err)
	}
	for _, change := range []bson.D{
		{{Key: "revokeRolesFromUser", Value: "bob"}, {Key: "roles", Value: bson.A{bson.D{{Key: "role", Value: "read"}, {Key: "db", Value: "test"}}}}},
		{{Key: "dropUser", Value: "bob"}},
	} {
		s.must(ann.Database("admin").RunCommand(ctx, change).Err())
		if code, _ := read(bob, "test"); code != 13 {
			t.Errorf("after %s a read of his ends with %d", change[0].Key, code)
		}
	}
	// Whoever has logged in logs in again when another server works: what the one before knew of him is gone.
	s.open()
	anns := []*mongo.Client{ann, s.client(1, "ann:secret"), s.client(2, "ann:secret")}
	for n := 1; n < 3; n++ {
		s.must(anns[n].Database("test").Collection("c").FindOne(ctx, bson.D{}).Err())
	}
	s.stops[0]()
	s.taken(1, 2)
	s.ready(1)
	s.ready(2)
	for n := 1; n < 3; n++ {
		if err := anns[n].Database("test").Collection("c").FindOne(ctx, bson.D{}).Err(); err != nil {
			t.Errorf("one who has logged in at server %d, when another one works: %v", n, err)
		}
	}
}
