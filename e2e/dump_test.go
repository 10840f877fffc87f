package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestDumpUnderLoad does by the driver what mongodump --oplog and mongorestore --oplogReplay do, whose programs are not everywhere to be
// had: it copies one collection after the other while all are written to, then the oplog since before the first, puts the copies into
// another server and does there what the oplog tells of. That server then has what the first one had at the end.
func TestDumpUnderLoad(t *testing.T) {
	t.Parallel() // nothing in it is timed
	path := binary.Build(t)
	server := binary.Start(t, path, "--dbpath", t.TempDir(), "--replSet", "e2e", "--replSetInitiate")
	source := connect(t, server.URI(bySet)).Database("e2e_dump")
	load := startLoad(t, source)
	dump := takeDump(t, source, load)
	t.Logf("%d documents copied, %d entries of the oplog, %d writes", dump.documents, len(dump.entries), load.written.Load())
	for name, args := range map[string][]string{"a member": {"--replSet", "other", "--replSetInitiate"}, "a standalone": nil} {
		t.Run(name, func(t *testing.T) {
			other := binary.Start(t, path, append([]string{"--dbpath", t.TempDir(), "--setParameter", "ttlChangeGraceSecs=0"}, args...)...)
			target := connect(t, other.URI(directly)).Database(source.Name())
			dump.restore(t, target)
			for coll := range dump.colls {
				want := contents(t, source.Collection(coll))
				if coll == "visits" { // what is due is deleted on both
					eventually(t, "both have let go the same", func() bool {
						want = contents(t, source.Collection(coll))
						return len(contents(t, target.Collection(coll))) == len(want)
					})
				}
				got := contents(t, target.Collection(coll))
				for id, doc := range want {
					if got[id] != doc {
						t.Errorf("%s has %s, and in the copy it is %q", coll, doc, got[id])
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s has %d documents, and its copy %d", coll, len(want), len(got))
				}
			}
		})
	}
}

// contents are the documents of a collection by their _id.
func contents(t *testing.T, coll *mongo.Collection) map[string]string {
	t.Helper()
	cursor, err := coll.Find(t.Context(), bson.D{})
	equal(t, err, nil)
	docs := map[string]string{}
	for cursor.Next(t.Context()) {
		docs[cursor.Current.Lookup("_id").String()] = cursor.Current.String()
	}
	equal(t, cursor.Err(), nil)
	return docs
}

// dumpLoad is writers at work.
type dumpLoad struct {
	written atomic.Int64
	cancel  context.CancelFunc
	done    sync.WaitGroup
	failed  chan error
}

func startLoad(t *testing.T, db *mongo.Database) *dumpLoad {
	t.Helper()
	ctx := t.Context()
	items := mongo.IndexModel{Keys: bson.D{{Key: "sku", Value: 1}}, Options: options.Index().SetUnique(true)}
	until := mongo.IndexModel{Keys: bson.D{{Key: "until", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0)}
	must(t)(db.Collection("items").Indexes().CreateOne(ctx, items))
	must(t)(db.Collection("visits").Indexes().CreateOne(ctx, until))
	var docs []bson.M
	for i := range 3000 {
		docs = append(docs, bson.M{"_id": fmt.Sprint("old-", i), "sku": fmt.Sprint("old-", i), "n": i, "tags": bson.A{1, 2, 3}, "sub": bson.M{"a": 1, "b": bson.A{bson.M{"c": 1}, 2}}})
	}
	must(t)(db.Collection("items").InsertMany(ctx, docs))
	must(t)(db.Collection("accounts").InsertOne(ctx, bson.M{"_id": 1, "balance": 1000}))
	must(t)(db.Collection("savings").InsertOne(ctx, bson.M{"_id": 1, "balance": 0}))

	l := &dumpLoad{failed: make(chan error, 4)}
	ctx, l.cancel = context.WithCancel(ctx)
	t.Cleanup(l.stop)
	for k := range 4 {
		random := rand.New(rand.NewPCG(7, uint64(k)))
		l.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := dumpWrite(context.WithoutCancel(ctx), db, random, fmt.Sprintf("%d-%d", k, n)); err != nil {
					l.failed <- err
					return
				}
				l.written.Add(1)
			}
		})
	}
	return l
}

func (l *dumpLoad) stop() {
	l.cancel()
	l.done.Wait()
}

// dumpWrite is one write of a kind that the oplog tells of in a way of its own.
func dumpWrite(ctx context.Context, db *mongo.Database, random *rand.Rand, name string) (err error) {
	items, visits := db.Collection("items"), db.Collection("visits")
	old := bson.M{"_id": fmt.Sprint("old-", random.IntN(3000))}
	switch random.IntN(9) {
	case 0:
		_, err = items.InsertOne(ctx, bson.M{"_id": name, "sku": name, "n": random.IntN(100), "tags": bson.A{}})
	case 1:
		_, err = items.UpdateOne(ctx, old, bson.M{"$set": bson.M{"sub.b.0.c": random.IntN(100), "more": name}, "$unset": bson.M{"sub.a": 1}})
	case 2:
		_, err = items.UpdateMany(ctx, bson.M{"n": bson.M{"$lt": random.IntN(50)}}, bson.M{"$inc": bson.M{"n": 1}, "$push": bson.M{"tags": bson.M{"$each": bson.A{name}, "$slice": -3}}})
	case 3:
		_, err = items.DeleteOne(ctx, old)
	case 4:
		_, err = items.ReplaceOne(ctx, bson.M{"_id": name + "r"}, bson.M{"sku": name + "r"}, options.Replace().SetUpsert(true))
	case 5:
		err = items.FindOneAndUpdate(ctx, old, mongo.Pipeline{{{Key: "$set", Value: bson.M{"n": bson.M{"$size": bson.M{"$ifNull": bson.A{"$tags", bson.A{}}}}}}}}).Err()
		if err == mongo.ErrNoDocuments {
			err = nil
		}
	case 6:
		docs := make([]bson.M, 1+random.IntN(50))
		for i := range docs {
			docs[i] = bson.M{"until": time.Now().Add([]time.Duration{100 * time.Millisecond, time.Hour}[random.IntN(2)])}
		}
		_, err = visits.InsertMany(ctx, docs)
	default:
		err = transfer(ctx, db, 1)
		if err == errNotEnough {
			err = nil
		}
	}
	return err
}

// dump is what a server had, one collection after the other, and what its oplog tells of since before the first.
type dump struct {
	colls     map[string][]any
	indexes   map[string][]bson.Raw
	documents int
	entries   []bson.Raw
}

// takeDump ends the load, and the dump is of the moment after that.
func takeDump(t *testing.T, db *mongo.Database, load *dumpLoad) *dump {
	t.Helper()
	ctx := t.Context()
	some := func() { // each collection is of another moment
		for end := load.written.Load() + 100; load.written.Load() < end; time.Sleep(time.Millisecond) {
			select {
			case err := <-load.failed:
				t.Fatal(err)
			case <-ctx.Done():
				t.Fatal(ctx.Err())
			default:
			}
		}
	}
	some()
	d := &dump{colls: map[string][]any{}, indexes: map[string][]bson.Raw{}}
	log := db.Client().Database("local").Collection("oplog.rs")
	var last struct{ TS bson.Timestamp }
	equal(t, log.FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Decode(&last), nil)
	names, err := db.ListCollectionNames(ctx, bson.D{})
	equal(t, err, nil)
	// What is changed and deleted before its collection is copied.
	must(t)(db.Collection("items").InsertOne(ctx, bson.M{"_id": "short", "sku": "short"}))
	must(t)(db.Collection("items").UpdateOne(ctx, bson.M{"_id": "short"}, bson.M{"$set": bson.M{"n": 1}}))
	must(t)(db.Collection("items").UpdateOne(ctx, bson.M{"_id": "old-1"}, bson.M{"$set": bson.M{"n": 1}}))
	must(t)(db.Collection("items").DeleteMany(ctx, bson.M{"_id": bson.M{"$in": bson.A{"short", "old-1"}}}))
	for _, name := range names {
		some()
		cursor, err := db.Collection(name).Find(ctx, bson.D{}, options.Find().SetBatchSize(100))
		equal(t, err, nil)
		d.colls[name] = nil
		for cursor.Next(ctx) {
			d.colls[name] = append(d.colls[name], append(bson.Raw(nil), cursor.Current...))
		}
		equal(t, cursor.Err(), nil)
		d.documents += len(d.colls[name])
		indexes, err := db.Collection(name).Indexes().List(ctx)
		equal(t, err, nil)
		var all []bson.Raw
		equal(t, indexes.All(ctx, &all), nil)
		d.indexes[name] = all[1:]
	}
	must(t)(db.Collection("late").InsertOne(ctx, bson.M{"_id": 1})) // a collection that no copy has
	d.colls["late"] = nil
	some()
	load.stop()
	cursor, err := log.Find(ctx, bson.D{{Key: "ts", Value: bson.D{{Key: "$gt", Value: last.TS}}}})
	equal(t, err, nil)
	equal(t, cursor.All(ctx, &d.entries), nil)
	return d
}

// restore brings the copies, and then the entries, each operation by itself and without the number of its collection, and at last the
// indexes: what is unique may be there twice meanwhile.
func (d *dump) restore(t *testing.T, db *mongo.Database) {
	t.Helper()
	for name, docs := range d.colls {
		if len(docs) > 0 {
			must(t)(db.Collection(name).InsertMany(t.Context(), docs))
		}
	}
	for _, entry := range d.entries {
		d.replay(t, db, entry)
	}
	for name, indexes := range d.indexes {
		if len(indexes) > 0 {
			equal(t, db.RunCommand(t.Context(), bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: indexes}}).Err(), nil)
		}
	}
}

func (d *dump) replay(t *testing.T, db *mongo.Database, entry bson.Raw) {
	t.Helper()
	var op struct {
		TS     bson.Timestamp // zero in what is part of an entry
		Op     string
		NS     string
		O      bson.Raw
		O2     bson.Raw `bson:",omitempty"`
		Upsert bool     `bson:"b,omitempty"`
	}
	equal(t, bson.Unmarshal(entry, &op), nil)
	if nested, ok := op.O.Lookup("applyOps").ArrayOK(); ok && op.Op == "c" {
		values, err := nested.Values()
		equal(t, err, nil)
		for _, value := range values {
			d.replay(t, db, value.Document())
		}
		return
	}
	if op.Op == "n" || strings.HasPrefix(op.NS, "config.") {
		return
	}
	if err := db.Client().Database("admin").RunCommand(t.Context(), bson.D{{Key: "applyOps", Value: bson.A{op}}}).Err(); err != nil {
		t.Fatalf("%s: %v", entry, err)
	}
}
