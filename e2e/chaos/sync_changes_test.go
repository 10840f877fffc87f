package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestInitialSyncOfChanges has a new member copy a set while much of that expires, by rules of each kind, and while indexes and collections come, go and
// get other names. Its disk is full at first, then it is killed, twice, and so is who sends it the copy. In the end it has what the primary has, each index
// entry and each counter of it, and nothing that has expired.
func TestInitialSyncOfChanges(test *testing.T) {
	t := report(test)
	m := build(t, binary.Build(t))
	first, second, third := m.all[0], m.all[1], m.all[2] // the third has a disk that can be full
	for _, v := range m.all {
		if err := v.start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, time.Minute, "the set begins", func() error {
		for _, v := range m.all {
			if err := v.client().Ping(t.Context(), nil); err != nil {
				return err
			}
		}
		return first.client().Database("admin").RunCommand(t.Context(), bson.M{"replSetInitiate": bson.M{"_id": "rs0", "members": bson.A{
			bson.M{"_id": 0, "host": first.host()}, bson.M{"_id": 1, "host": second.host()}}}}).Err()
	})
	client := connect(t, fmt.Sprintf("mongodb://%s,%s/?replicaSet=rs0&timeoutMS=90000", first.host(), second.host()))
	loadForSync(t, client.Database("d").Collection("big"), *syncMegabytes<<20/syncDocument)
	c := &syncChanges{t: t, db: client.Database("d")}
	c.expiring(40 * time.Second)
	ctx, end := context.WithCancel(t.Context())
	c.work.Go(func() { c.change(ctx, rand.New(rand.NewPCG(*syncSeed, 2))) })

	if err := third.leave(32 << 20); err != nil {
		t.Fatal(err)
	}
	reconfigure(t, client, func(members bson.A) bson.A {
		return append(members, bson.M{"_id": third.index, "host": third.host()})
	})
	until(t, time.Minute, "the new member says that it has no room, and leaves what there is", func() error {
		text, err := os.ReadFile(third.log)
		if err == nil && !strings.Contains(string(text), "The copy of the set's data could not be kept") {
			err = errors.New("its log does not tell")
		}
		if _, missing := os.Stat(filepath.Join(third.dir, "incoming")); err == nil && !errors.Is(missing, fs.ErrNotExist) {
			err = fmt.Errorf("the half of the copy is there: %w", missing)
		}
		return err
	})
	t.Logf("with a full disk the new member %s", syncState(t, third))
	if err := third.drain(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(*syncSeed, 1))
	for _, who := range []string{"receiver", "sender", "receiver"} {
		pause(t.Context(), time.Duration(1000+random.IntN(2000))*time.Millisecond)
		v := third
		if who == "sender" {
			if v = first; syncState(t, second) == "is a primary" {
				v = second
			}
		}
		t.Logf("the %s, member %d, is killed; the new member %s", who, v.index, syncState(t, third))
		v.kill()
		if err := v.start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, syncLimit, "the new member has all", func() error {
		if state := syncState(t, third); state != "is a secondary" && state != "is a primary" {
			return errors.New("it " + state)
		}
		return nil
	})
	pause(t.Context(), 2*time.Second) // changes go on
	end()
	c.work.Wait()
	t.Logf("%d changes were made meanwhile, %d were refused", c.made, c.refused)
	until(t, 2*time.Minute, "all that was to expire has", func() error {
		for _, name := range syncExpiring {
			if n, err := c.db.Collection(name).CountDocuments(t.Context(), bson.M{}); err != nil || n != syncStaying {
				return fmt.Errorf("%s has %d, %w", name, n, err)
			}
		}
		return nil
	})
	until(t, time.Minute, "all are the same", func() error {
		want, err := syncContents(t.Context(), first)
		if err != nil {
			return err
		}
		for _, v := range []*machine{second, third} {
			got, err := syncContents(t.Context(), v)
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("member %d:\n%s\nmember 0:\n%s", v.index, got, want)
			}
		}
		return nil
	})
}

// leave fills the machine's disk but for some bytes.
func (v *machine) leave(room int64) error {
	if err := v.fill(); err != nil {
		return err
	}
	filler := filepath.Join(v.dir, "filler")
	info, err := os.Stat(filler)
	if err != nil {
		return err
	}
	return os.Truncate(filler, info.Size()-room)
}

// syncExpiring are collections whose documents expire but for syncStaying.
var syncExpiring = []string{"dates", "visits", "hidden", "range"}

const (
	syncStaying = 10
	syncExpires = 20_000
)

type syncChanges struct {
	t             testing.TB
	db            *mongo.Database
	work          sync.WaitGroup
	made, refused int // when work is over
}

// expiring makes those collections, whose documents expire from now on until a time.
func (c *syncChanges) expiring(within time.Duration) {
	c.t.Helper()
	run := func(command bson.D) {
		c.t.Helper()
		if err := c.db.RunCommand(c.t.Context(), command).Err(); err != nil {
			c.t.Fatal(err)
		}
	}
	rule := func(name, field string, seconds int, more ...bson.E) {
		c.t.Helper()
		spec := append(bson.D{{Key: "key", Value: bson.M{field: 1}}, {Key: "name", Value: field}, {Key: "expireAfterSeconds", Value: seconds}}, more...)
		run(bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: bson.A{spec, bson.D{{Key: "key", Value: bson.M{"n": 1}}, {Key: "name", Value: "n"}}}}})
	}
	run(bson.D{{Key: "create", Value: "range"}, {Key: "expirationEvents", Value: "none"}}) // whole ranges go
	rule("dates", "at", 0)
	rule("visits", "_ts", int(within/time.Second))
	rule("hidden", "at", 0, bson.E{Key: "hideExpired", Value: true})
	rule("range", "at", 0)
	begin := time.Now()
	for _, name := range syncExpiring {
		for n := 0; n < syncExpires; n += syncBatch {
			var batch []any
			for i := n; i < n+syncBatch; i++ {
				at := begin.Add(within / 2) // half at one moment, half one after the other
				if i%2 == 0 {
					at = begin.Add(within * time.Duration(i) / syncExpires)
				}
				doc := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 100}, {Key: "at", Value: at}}
				if i < syncStaying {
					doc = bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 100}, {Key: "ttl", Value: -1}}
				}
				batch = append(batch, doc)
			}
			if _, err := c.db.Collection(name).InsertMany(c.t.Context(), batch, options.InsertMany().SetOrdered(false)); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// change makes and drops indexes and collections, renames those, and writes to them, until ctx ends.
func (c *syncChanges) change(ctx context.Context, random *rand.Rand) {
	names := []string{"x", "y", "z"}
	for n := 0; ctx.Err() == nil; n++ {
		name, other := names[random.IntN(3)], names[random.IntN(3)]
		coll := c.db.Collection(name)
		var err error
		switch random.IntN(8) {
		case 0, 1, 2:
			var docs []any
			for i := range 50 {
				docs = append(docs, bson.D{{Key: "a", Value: i}, {Key: "b", Value: bson.A{n, i}}, {Key: "at", Value: time.Now().Add(time.Duration(random.IntN(20)-5) * time.Second)}})
			}
			_, err = coll.InsertMany(c.t.Context(), docs)
		case 3:
			_, err = coll.Indexes().CreateOne(c.t.Context(), mongo.IndexModel{Keys: bson.D{{Key: []string{"a", "b"}[random.IntN(2)], Value: 1}}})
		case 4:
			_, err = coll.Indexes().CreateOne(c.t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(5)})
		case 5:
			err = coll.Indexes().DropAll(c.t.Context())
		case 6:
			err = c.db.Client().Database("admin").RunCommand(c.t.Context(), bson.D{{Key: "renameCollection", Value: "d." + name}, {Key: "to", Value: "d." + other}, {Key: "dropTarget", Value: true}}).Err()
		case 7:
			if random.IntN(4) == 0 {
				err = coll.Drop(c.t.Context())
			}
			_, _ = c.db.Collection("big").Indexes().CreateOne(c.t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "none", Value: 1}}})
			_ = c.db.Collection("big").Indexes().DropOne(c.t.Context(), "none_1")
		}
		if c.made++; err != nil {
			c.refused++ // there is no such collection, or nobody leads
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// syncContents tells what a member has: the documents, and what there is of each index and each rule.
func syncContents(ctx context.Context, v *machine) (string, error) {
	db := v.client().Database("d")
	names, err := db.ListCollectionNames(ctx, bson.M{})
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	var out strings.Builder
	var hash struct{ MD5 string }
	if err := db.RunCommand(ctx, bson.M{"dbHash": 1}).Decode(&hash); err != nil {
		return "", err
	}
	fmt.Fprintln(&out, hash.MD5)
	for _, name := range names {
		var valid struct {
			Valid        bool
			NRecords     int64
			KeysPerIndex bson.D
			Errors       []string
		}
		if err := db.RunCommand(ctx, bson.D{{Key: "validate", Value: name}, {Key: "full", Value: true}}).Decode(&valid); err != nil {
			return "", err
		}
		var stats struct{ Count, Size, NIndexes int64 }
		if err := db.RunCommand(ctx, bson.M{"collStats": name}).Decode(&stats); err != nil {
			return "", err
		}
		var rules struct {
			Indexes []struct {
				Index          string
				Backlog        int64
				OldestDeadline any
			}
		}
		if err := db.RunCommand(ctx, bson.M{"ebbTTL": name}).Decode(&rules); err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s: %+v %+v %+v\n", name, valid, stats, rules)
		if !valid.Valid {
			return "", fmt.Errorf("member %d: %s", v.index, out.String())
		}
	}
	return out.String(), nil
}
