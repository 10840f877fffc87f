// Package tikv tests servers whose data is in a TiKV cluster on this machine, as clients see them: real clusters, real servers, real time.
package tikv

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
	"github.com/ebbdb/ebb/e2e/tikv/cluster"
)

// The programs of a cluster take minutes to build, so all this runs only where it is asked for (make tikv).
var (
	asked  = flag.Bool("tikv", false, "run the tests over a TiKV cluster, which is built first")
	stores = flag.Int("stores", 1, "how many stores the cluster has; with three or more each region has three replicas")
)

const patience = 90 * time.Second // for what the cluster needs to come back

// open starts a cluster, and builds the server.
func open(t *testing.T) (*cluster.Cluster, string) {
	t.Helper()
	return openAs(t, cluster.Options{Stores: *stores})
}

func openAs(t *testing.T, o cluster.Options) (*cluster.Cluster, string) {
	t.Helper()
	if !*asked {
		t.Skip("needs a TiKV cluster, which takes minutes to build: make tikv")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	o.Log = os.Stderr
	c, err := cluster.Start(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	ebb := filepath.Join(t.TempDir(), "ebb")
	build := exec.Command("go", "build", "-trimpath", "-o", ebb, "./cmd/ebb")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c, ebb
}

func serve(t *testing.T, c *cluster.Cluster, ebb string) *launch.Server {
	t.Helper()
	s, err := start(t.Context(), c, ebb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the server at %s:\n%s", s.Addr, s.Log())
		}
	})
	return s
}

func start(ctx context.Context, c *cluster.Cluster, ebb string) (*launch.Server, error) {
	return launch.Start(ctx, exec.Command(ebb, "serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket"))
}

func connect(t *testing.T, s *launch.Server) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI("directConnection=true")))
	if err != nil {
		t.Fatal(err)
	}
	disconnectAtEnd(t, client)
	return client
}

// disconnectAtEnd does not wait for servers that are gone by then, to tell them that sessions have ended.
func disconnectAtEnd(t *testing.T, client *mongo.Client) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks again until there is no error, as a client does that goes on.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// TestServer: documents, indexes, aggregation, both kinds of expiry, long documents, and a restart after a crash.
func TestServer(t *testing.T) {
	c, ebb := open(t)
	s := serve(t, c, ebb)
	ctx := t.Context()
	db := connect(t, s).Database("test")
	docs := db.Collection("docs")
	var many []any
	for i := range 2000 {
		many = append(many, bson.D{{Key: "_id", Value: i}, {Key: "group", Value: i % 10}, {Key: "n", Value: i}})
	}
	_, err := docs.InsertMany(ctx, many)
	noError(t, err)
	_, err = docs.InsertOne(ctx, many[7])
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("an _id twice: %v", err)
	}
	_, err = docs.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "group", Value: 1}}})
	noError(t, err)
	updated, err := docs.UpdateMany(ctx, bson.D{{Key: "group", Value: 3}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
	noError(t, err)
	removed, err := docs.DeleteMany(ctx, bson.D{{Key: "group", Value: 4}})
	noError(t, err)
	if updated.ModifiedCount != 200 || removed.DeletedCount != 200 {
		t.Errorf("%d were updated and %d removed", updated.ModifiedCount, removed.DeletedCount)
	}
	cursor, err := docs.Aggregate(ctx, mongo.Pipeline{{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$group"}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$n"}}}}}},
		{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}}})
	noError(t, err)
	var groups []struct{ Sum int }
	noError(t, cursor.All(ctx, &groups))
	if len(groups) != 9 || groups[3].Sum != 199800 { // 3 + 13 + ... + 1993, and one more each
		t.Errorf("the groups are %v", groups)
	}
	long := strings.Repeat("x", 15<<20)
	_, err = db.Collection("long").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "text", Value: long}})
	noError(t, err)

	expires(t, db)

	s.Kill()
	again := serve(t, c, ebb) // the first request waits until the lease has run out
	db = connect(t, again).Database("test")
	n, err := db.Collection("docs").CountDocuments(ctx, bson.D{})
	noError(t, err)
	var doc struct{ Text string }
	noError(t, db.Collection("long").FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Decode(&doc))
	if n != 1800 || doc.Text != long {
		t.Errorf("after a crash there are %d documents, and a text of %d bytes", n, len(doc.Text))
	}
	var valid struct{ Valid bool }
	noError(t, db.RunCommand(ctx, bson.D{{Key: "validate", Value: "docs"}}).Decode(&valid))
	if !valid.Valid {
		t.Error("the collection is not valid")
	}
	noError(t, again.Stop())
	third := serve(t, c, ebb) // at once: the lease was given back
	noError(t, third.Stop())
}

// expires: a TTL of each kind, hidden and gone. No document is let go before its time.
func expires(t *testing.T, db *mongo.Database) {
	t.Helper()
	ctx := t.Context()
	for _, hides := range []bool{false, true} {
		name := fmt.Sprint("ttl", hides)
		ttl := db.Collection(name)
		noError(t, db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: bson.A{bson.D{
			{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 2}, {Key: "hideExpired", Value: hides}}}}}).Err())
		var many []any
		began := time.Now()
		for range 300 {
			many = append(many, bson.D{{Key: "at", Value: began}})
		}
		many = append(many, bson.D{{Key: "at", Value: began.Add(time.Hour)}})
		_, err := ttl.InsertMany(ctx, many)
		noError(t, err)
		asked := time.Now()
		n, err := ttl.CountDocuments(ctx, bson.D{})
		noError(t, err)
		if n != 301 && asked.Before(began.Add(1500*time.Millisecond)) {
			t.Errorf("%d documents are left before their time", n)
		}
		eventually(t, "documents that have expired", func() error {
			if n, err := ttl.EstimatedDocumentCount(ctx); err != nil || n != 1 {
				return fmt.Errorf("%d are there, %w", n, err)
			}
			return nil
		})
	}
}

// TestFaults: what is acknowledged survives PD and the store being killed, errors are such that clients try again, and the server goes on by itself.
func TestFaults(t *testing.T) {
	c, ebb := open(t)
	s := serve(t, c, ebb)
	docs := connect(t, s).Database("test").Collection("docs")
	next := 0
	insert := func(most time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		_, err := docs.InsertOne(ctx, bson.D{{Key: "_id", Value: next}})
		return err
	}
	var acknowledged []int
	for _, fault := range []struct {
		name    string
		kill    func()
		restart func() error
		outage  time.Duration
	}{
		{"store", func() { c.Kill("store1") }, func() error { return c.Restart("store1") }, 3 * time.Second},
		{"store for long", func() { c.Kill("store1") }, func() error { return c.Restart("store1") }, 20 * time.Second},
		{"pd", func() { c.Kill("pd1") }, func() error { return c.Restart("pd1") }, 3 * time.Second},
		{"pd for longer than the lease", func() { c.Kill("pd1") }, func() error { return c.Restart("pd1") }, 20 * time.Second},
	} {
		for range 50 {
			next++
			noError(t, insert(10*time.Second))
			acknowledged = append(acknowledged, next)
		}
		fault.kill()
		began := time.Now()
		for time.Since(began) < fault.outage {
			next++
			if err := insert(2 * time.Second); err == nil {
				acknowledged = append(acknowledged, next)
			}
		}
		noError(t, fault.restart())
		back := time.Now()
		eventually(t, fault.name, func() error {
			next++
			err := insert(5 * time.Second)
			if err == nil {
				acknowledged = append(acknowledged, next)
			}
			return err
		})
		t.Logf("%s: writes go on %v after it is back", fault.name, time.Since(back).Round(100*time.Millisecond))
	}
	for _, id := range acknowledged {
		if err := docs.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Err(); err != nil {
			t.Errorf("%d was acknowledged: %v", id, err)
		}
	}
	t.Logf("%d of %d inserts were acknowledged", len(acknowledged), next)
	noError(t, s.Stop())
}
