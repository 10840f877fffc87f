package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testseed"
)

// moment is what was in a database behind an entry of the oplog.
type moment struct {
	at    bson.Timestamp
	state map[string]string
}

// databaseState is every document of a database with its last modification, and the collections with their indexes.
func databaseState(t *testing.T, client *mongo.Client) map[string]string {
	t.Helper()
	db := client.Database("test")
	state := map[string]string{}
	names, err := db.ListCollectionNames(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "system.") {
			continue
		}
		indexes, err := db.Collection(name).Indexes().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []bson.Raw
		if err := indexes.All(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		state[name] = fmt.Sprint(all)
		cursor, err := db.Collection(name).Find(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		var docs []bson.Raw
		if err := cursor.All(t.Context(), &docs); err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			id := d.Lookup("_id")
			explained := answered(t, client, "test", bson.D{{Key: "ebbTTL", Value: name}, {Key: "explain", Value: id}})
			state[name+" "+id.String()] = d.String() + " " + explained.Lookup("lastModified").Time().UTC().Format(time.RFC3339Nano)
		}
	}
	return state
}

// change does something at random.
func change(ctx context.Context, client *mongo.Client, random *rand.Rand) error {
	db := client.Database("test")
	c := db.Collection(fmt.Sprintf("c%d", random.IntN(3)))
	id := bson.D{{Key: "_id", Value: random.IntN(30)}}
	switch random.IntN(12) {
	case 0, 1, 2:
		_, err := c.UpdateOne(ctx, id, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "$push", Value: bson.D{{Key: "list", Value: random.IntN(100)}}}}, driver.UpdateOne().SetUpsert(true))
		return err
	case 3, 4:
		_, err := c.ReplaceOne(ctx, id, bson.D{{Key: "text", Value: strings.Repeat("x", random.IntN(300))}}, driver.Replace().SetUpsert(true))
		return err
	case 5, 6:
		_, err := c.DeleteOne(ctx, id)
		return err
	case 7:
		_, err := c.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "in.a", Value: random.IntN(10)}}}, {Key: "$unset", Value: bson.D{{Key: "list", Value: 1}}}})
		return err
	case 8:
		return client.UseSession(ctx, func(ctx context.Context) error {
			_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
				for i := range 5 {
					if _, err := db.Collection("c0").UpdateOne(ctx, bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "t", Value: 1}}}}, driver.UpdateOne().SetUpsert(true)); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
			return err
		})
	case 9:
		return c.Drop(ctx)
	case 10:
		_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: fmt.Sprintf("f%d", random.IntN(3)), Value: 1}}})
		return err
	}
	_, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}}, Options: driver.Index().SetExpireAfterSeconds(100000)})
	return err
}

// TestPointInTime: with the oplog behind a backup, the data come back as they were behind each of its entries that was looked at, with the
// times of their last modification.
func TestPointInTime(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	var moments []moment
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data"), ReplicaSet: &ebb.ReplicaSet{Name: "rs", Initiate: true}}, func(uri string, client *mongo.Client) {
		f := startFollower(t, uri, repository)
		f.begins(func() {
			if err := change(t.Context(), client, random); err != nil {
				t.Fatal(err)
			}
		})
		for range 6 {
			for range 40 {
				if err := change(t.Context(), client, random); err != nil {
					t.Fatal(err)
				}
			}
			moments = append(moments, moment{lastEntry(t, client), databaseState(t, client)})
		}
		for range 20 { // which nobody shall see
			if err := change(t.Context(), client, random); err != nil {
				t.Fatal(err)
			}
		}
		f.ends(lastEntry(t, client), func() {})
	})
	for i, m := range moments {
		path := filepath.Join(dir, fmt.Sprint("back", i))
		to := fmt.Sprintf("%d:%d", m.at.T, m.at.I)
		mustVerb(t, "restore", repository, "--dbpath", path, "--to", to)
		served(t, ebb.Options{DBPath: path}, func(_ string, client *mongo.Client) {
			got := databaseState(t, client)
			for _, key := range slices.Sorted(maps.Keys(m.state)) {
				if got[key] != m.state[key] {
					t.Errorf("seed %d, moment %d, %s: %s\nis %q\nwas %q", seed, i, to, key, got[key], m.state[key])
				}
			}
			if len(got) != len(m.state) {
				t.Errorf("seed %d, moment %d: %d things, and there were %d", seed, i, len(got), len(m.state))
			}
		})
		if t.Failed() {
			return
		}
	}
	if out, err := verb(t, "restore", repository, "--dbpath", filepath.Join(dir, "far"), "--to", "2099-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), "was shipped up to") {
		t.Errorf("to a moment that is not shipped: %v, %s", err, out)
	}
	if out, err := verb(t, "restore", repository, "--dbpath", filepath.Join(dir, "early"), "--to", "2020-01-01T00:00:00Z"); err == nil || !strings.Contains(err.Error(), "is younger") {
		t.Errorf("to a moment before all: %v, %s", err, out)
	}
	if out, err := verb(t, "restore", repository, "--dbpath", filepath.Join(dir, "odd"), "--to", "yesterday"); err == nil || !strings.Contains(err.Error(), "is neither a time") {
		t.Errorf("to no moment: %v, %s", err, out)
	}
	// As a set it begins another oplog, and takes writes.
	served(t, ebb.Options{DBPath: filepath.Join(dir, "back0"), ReplicaSet: &ebb.ReplicaSet{Name: "rs"}}, func(_ string, client *mongo.Client) {
		if _, err := client.Database("test").Collection("new").InsertOne(t.Context(), bson.D{}); err != nil {
			t.Error(err)
		}
		if at := lastEntry(t, client); at.T == 0 {
			t.Error("there is no oplog")
		}
	})
}

// TestPointInTimeOfModification: what is done again counts as modified when it was, although it takes longer than it did, and although the clock was
// turned back a little meanwhile.
func TestPointInTimeOfModification(t *testing.T) {
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	fake := ebbtest.NewClock(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	var was moment
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data"), Clock: fake, ReplicaSet: &ebb.ReplicaSet{Name: "rs", Initiate: true}}, func(uri string, client *mongo.Client) {
		c := client.Database("test").Collection("c")
		if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}}, Options: driver.Index().SetExpireAfterSeconds(100000)}); err != nil {
			t.Fatal(err)
		}
		f := startFollower(t, uri, repository)
		f.begins(func() {})
		for _, step := range []time.Duration{0, time.Second, -5 * time.Millisecond, -20 * time.Millisecond, 2 * time.Millisecond} {
			fake.Step(step)
			var models []mongo.WriteModel
			for i := range 200 {
				models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: int64(i) + int64(step)}}).SetUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}).SetUpsert(true))
			}
			if _, err := c.BulkWrite(t.Context(), models); err != nil {
				t.Fatal(err)
			}
		}
		was = moment{lastEntry(t, client), databaseState(t, client)}
		f.ends(was.at, func() { fake.Advance(time.Second) }) // by which the server answers that there is nothing more
	})
	path := filepath.Join(dir, "back")
	mustVerb(t, "restore", repository, "--dbpath", path, "--to", fmt.Sprintf("%d:%d", was.at.T, was.at.I))
	served(t, ebb.Options{DBPath: path, Clock: fake}, func(_ string, client *mongo.Client) {
		got, wrong := databaseState(t, client), 0
		for key, state := range was.state {
			if got[key] != state {
				if wrong++; wrong < 10 {
					t.Errorf("%s: %s\nis %q\nwas %q", key, fake.Now(), got[key], state)
				}
			}
		}
		if len(got) != len(was.state) || wrong > 0 {
			t.Errorf("%d things, %d of them other than they were, and there were %d", len(got), wrong, len(was.state))
		}
	})
}

// TestPointInTimeOfExpiry: what had expired and was deleted before the moment does not come back, also where what hid it is gone by then; what was
// rescued is there. The oplog of one collection tells of each document that expires, that of the other of none.
func TestPointInTimeOfExpiry(t *testing.T) {
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	fake := ebbtest.NewClock(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	var was moment
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data"), Clock: fake, ReplicaSet: &ebb.ReplicaSet{Name: "rs", Initiate: true}}, func(uri string, client *mongo.Client) {
		f := startFollower(t, uri, repository)
		f.begins(func() {})
		for _, c := range []struct {
			name, events string
			keeps        bool
		}{{"documents", "documents", false}, {"none", "none", false}, {"kept", "documents", true}, {"rescued", "none", true}} {
			answered(t, client, "test", bson.D{{Key: "create", Value: c.name}, {Key: "expirationEvents", Value: c.events}})
			coll := client.Database("test").Collection(c.name)
			if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}}, Options: driver.Index().SetExpireAfterSeconds(10)}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.InsertMany(t.Context(), []any{bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "ttl", Value: -1}}}); err != nil {
				t.Fatal(err)
			}
			fake.Step(time.Minute)
			if c.name == "rescued" { // what is deleted before the rescue, by who makes an index, stays so
				answered(t, client, "test", bson.D{{Key: "createIndexes", Value: c.name}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "a_1"}}}}})
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 3}}); err != nil {
					t.Fatal(err)
				}
				fake.Step(time.Minute)
			}
			answered(t, client, "test", bson.D{{Key: "collMod", Value: c.name}, {Key: "index", Value: bson.D{{Key: "name", Value: "_ts_1"}, {Key: "expireAfterSeconds", Value: 1000}}}, {Key: "keepExpired", Value: c.keeps}})
			answered(t, client, "test", bson.D{{Key: "dropIndexes", Value: c.name}, {Key: "index", Value: "_ts_1"}})
		}
		was = moment{lastEntry(t, client), databaseState(t, client)}
		if was.state[`rescued {"$numberInt":"1"}`] != "" || was.state[`rescued {"$numberInt":"3"}`] == "" {
			t.Errorf("what was to be rescued: %q", was.state)
		}
		f.ends(was.at, func() { fake.Advance(time.Second) })
	})
	path := filepath.Join(dir, "back")
	mustVerb(t, "restore", repository, "--dbpath", path, "--to", fmt.Sprintf("%d:%d", was.at.T, was.at.I))
	served(t, ebb.Options{DBPath: path, Clock: fake}, func(_ string, client *mongo.Client) {
		if got := databaseState(t, client); !maps.Equal(got, was.state) {
			t.Errorf("is  %q\nwas %q", got, was.state)
		}
	})
}

// follower is ebb backup --follow in this process.
type follower struct {
	t          *testing.T
	repository string
	stop       context.CancelFunc
	done       chan error
	out        lockedBuffer
}

func startFollower(t *testing.T, uri, repository string) *follower {
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{t: t, repository: repository, stop: stop, done: make(chan error, 1)}
	go func() {
		cmd := root()
		cmd.SetArgs([]string{"backup", "--follow", "--uri", uri, repository})
		cmd.SetOut(&f.out)
		cmd.SetErr(&f.out)
		f.done <- cmd.ExecuteContext(ctx)
	}()
	return f
}

// begins does something again and again until the oplog is followed.
func (f *follower) begins(meanwhile func()) {
	f.t.Helper()
	for !strings.Contains(f.out.String(), "following the oplog") {
		meanwhile()
		f.goesOn()
	}
}

// ends waits until entries up to one were shipped, and has the follower end.
func (f *follower) ends(last bson.Timestamp, meanwhile func()) {
	f.t.Helper()
	for !hasTail(f.t, f.repository, last) {
		meanwhile()
		f.goesOn()
	}
	f.stop()
	if err := <-f.done; err != nil {
		f.t.Fatalf("%v: %s", err, f.out.String())
	}
}

// goesOn gives the follower, which begins and ships in its own time, a moment.
func (f *follower) goesOn() {
	f.t.Helper()
	select {
	case err := <-f.done:
		f.t.Fatalf("the follower has ended: %v: %s", err, f.out.String())
	case <-time.After(20 * time.Millisecond):
	}
}

func lastEntry(t *testing.T, client *mongo.Client) bson.Timestamp {
	t.Helper()
	var entry struct {
		TS bson.Timestamp `bson:"ts"`
	}
	if err := client.Database("local").Collection("oplog.rs").FindOne(t.Context(), bson.D{}, driver.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Decode(&entry); err != nil {
		t.Fatal(err)
	}
	return entry.TS
}

// hasTail says whether entries up to one were shipped.
func hasTail(t *testing.T, repository string, end bson.Timestamp) bool {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(repository, "log", "*", fmt.Sprintf("*-%010d.%010d.seg", end.T, end.I)))
	if err != nil {
		t.Fatal(err)
	}
	return len(segments) > 0
}

// TestFollowNeedsAnOplog: a standalone has none, and that is said.
func TestFollowNeedsAnOplog(t *testing.T) {
	dir := t.TempDir()
	served(t, ebb.Options{DBPath: filepath.Join(dir, "data")}, func(uri string, _ *mongo.Client) {
		if out, err := verb(t, "backup", "--follow", "--uri", uri, filepath.Join(dir, "repository")); err == nil || !strings.Contains(err.Error(), "has no oplog") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// lockedBuffer is written and read at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
