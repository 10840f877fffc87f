// Package crash kills the real server with kill -9 in the middle of mixed load, starts it again on what it left, and
// compares what is there with what it had acknowledged. It knows clients' promises only, nothing of the store.
//
//	go test ./e2e/crash -v -args -rounds 200 -seed 7
package crash

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

var (
	rounds = flag.Int("rounds", 3, "how often the server is killed")
	seed   = flag.Uint64("seed", 0, "of the load and the moments of death; 0 takes one and prints it")
)

const (
	writers   = 6
	dbName    = "crash"
	kept      = "kept"  // every acknowledged write must be there
	brief     = "brief" // a TTL of one second on _ts: nothing may come back
	briefLife = time.Second
	// callLimit is how long one call may take: a machine may have much else to do.
	callLimit = time.Minute
)

func TestCrash(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 0))
	path, data := binary.Build(t), t.TempDir()

	load := make([]*writer, writers)
	for i := range load {
		load[i] = newWriter(i, rand.New(rand.NewPCG(*seed, uint64(i)+1)))
	}

	server := binary.Start(t, path, "--dbpath", data)
	createIndexes(t, database(t, server))
	for round := range *rounds {
		alive := time.Duration(100+random.IntN(900)) * time.Millisecond
		acknowledged := runLoad(t, server, load, alive)

		opening := time.Now()
		server = binary.Start(t, path, "--dbpath", data)
		opened := time.Since(opening)
		db := database(t, server)
		verify(t, db, load)
		t.Logf("round %d: killed after %v and %d acknowledged writes, back in %v", round+1, alive, acknowledged, opened.Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/crash -v -args -rounds %d -seed %d\nthe server's log ends with:\n%s", *rounds, *seed, server.Log())
		}
	}
}

// database connects without the driver's retries: a write is acknowledged or it is not.
func database(t *testing.T, server *binary.Server) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI("directConnection=true")).
		SetRetryWrites(false).SetRetryReads(false).SetServerSelectionTimeout(5 * time.Second).SetTimeout(callLimit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // its server is dead by then; there is nobody to say goodbye to
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client.Database(dbName)
}

func createIndexes(t *testing.T, db *mongo.Database) {
	t.Helper()
	_, err := db.Collection(kept).Indexes().CreateMany(t.Context(), []mongo.IndexModel{
		{Keys: bson.D{{Key: "u", Value: 1}}, Options: options.Index().SetUnique(true)},
		{Keys: bson.D{{Key: "list", Value: 1}, {Key: "version", Value: -1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Collection(brief).Indexes().CreateOne(t.Context(), mongo.IndexModel{
		Keys: bson.D{{Key: "_ts", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(int32(briefLife / time.Second)),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// chosenSeed is what all that is left to chance follows.
func chosenSeed(t *testing.T) uint64 {
	t.Helper()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d rounds", *seed, *rounds)
	return *seed
}

// killUnder lets everybody work until the server is killed under them, and says when it was dead.
func killUnder(t *testing.T, server *binary.Server, alive time.Duration, work ...func(context.Context)) (dead time.Time) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, w := range work {
		group.Go(func() { w(ctx) })
	}
	time.Sleep(alive)
	if how := server.Crashed(); how != "" {
		t.Errorf("the server ended by itself: %s\n%s", how, server.Log())
	}
	server.Kill()
	dead = time.Now()
	stop()
	group.Wait()
	return dead
}

// runLoad lets the writers write, beside others, until the server is killed under them.
func runLoad(t *testing.T, server *binary.Server, load []*writer, alive time.Duration, others ...func(context.Context)) int {
	t.Helper()
	db := database(t, server)
	before := total(load)
	for _, w := range load {
		others = append(others, func(ctx context.Context) { w.run(ctx, db) })
	}
	dead := killUnder(t, server, alive, others...)
	for _, w := range load {
		w.bornBefore(dead)
		if w.refused != nil {
			t.Errorf("writer %d: the server refused a write: %v", w.number, w.refused)
		}
	}
	return total(load) - before
}

func total(load []*writer) int {
	n := 0
	for _, w := range load {
		n += w.acknowledged
	}
	return n
}

// verify compares the store with the writers' books and brings the books up to date: what was under way when the server
// died may have happened or not, but from now on it is one of them.
func verify(t *testing.T, db *mongo.Database, load []*writer) {
	t.Helper()
	ctx := t.Context()
	found := map[string]document{}
	for _, doc := range all[document](t, db.Collection(kept), bson.D{}) {
		found[doc.ID] = doc
	}
	expected := 0
	for _, w := range load {
		for _, problem := range w.compare(found) {
			t.Error(problem)
		}
		expected += len(w.books)
	}
	if len(found) != expected {
		t.Errorf("%d documents in the store, %d in the books", len(found), expected)
	}
	for _, name := range []string{"_id_", "u_1"} {
		count, err := db.Collection(kept).CountDocuments(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$exists", Value: true}}}}, options.Count().SetHint(name))
		if err != nil || count != int64(expected) {
			t.Errorf("index %s leads to %d documents, want %d (%v)", name, count, expected, err)
		}
	}
	for _, coll := range []string{kept, brief} {
		var report struct {
			Valid  bool
			Errors []string
		}
		if err := db.RunCommand(ctx, bson.D{{Key: "validate", Value: coll}, {Key: "full", Value: true}}).Decode(&report); err != nil || !report.Valid {
			t.Errorf("validate %s: %+v (%v)", coll, report, err)
		}
	}

	asked := time.Now()
	born := map[string]time.Time{}
	for _, w := range load {
		maps.Copy(born, w.brief)
	}
	for _, doc := range all[document](t, db.Collection(brief), bson.D{}) {
		moment, sent := born[doc.ID]
		if gone := moment.Add(briefLife); !sent || !asked.Before(gone) {
			t.Errorf("expired document %s is back, %v after its time (sent by a writer: %t)", doc.ID, asked.Sub(gone), sent)
		}
	}
}

func all[T any](t *testing.T, coll *mongo.Collection, filter bson.D, how ...options.Lister[options.FindOptions]) []T {
	t.Helper()
	cursor, err := coll.Find(t.Context(), filter, how...)
	if err != nil {
		t.Fatal(fmt.Errorf("reading %s after the restart: %w", coll.Name(), err))
	}
	var out []T
	if err := cursor.All(t.Context(), &out); err != nil {
		t.Fatal(fmt.Errorf("reading %s after the restart: %w", coll.Name(), err))
	}
	return out
}
