package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

const (
	// reclaimLimit: reclaim follows expiry at once; what is waited for beyond it is a slow machine.
	reclaimLimit = 10 * time.Second
	tooSlow      = "this machine is too slow to say"
)

// goClient runs the Go driver beside the clients in other languages. It needs nothing but Go.
func goClient(t *testing.T, server *binary.Server) {
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI("directConnection=true&compressors=snappy,zstd")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.WithoutCancel(t.Context())) })
	db := client.Database("e2e_go")
	for name, test := range map[string]func(*testing.T, *mongo.Database){
		"write and read": writeAndRead,
		"cursors":        cursors,
		"aggregate":      aggregate,
		"bulk write":     bulkWrite,
		"indexes":        indexes,
		"session":        session,
		"errors":         codes,
		"GridFS":         gridFS,
		"GridFS expires": gridFSExpires,
		"TTL on _ts":     ttlOfDocuments,
		"TTL on a date":  ttlOfDates,
	} {
		t.Run("go/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

func writeAndRead(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("people")
	must(t)(coll.InsertMany(ctx, []any{bson.M{"_id": 1, "name": "Ada"}, bson.M{"_id": 2, "name": "Grace"}}))
	updated, err := coll.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$set": bson.M{"born": 1815}})
	equal(t, err, nil)
	equal(t, updated.ModifiedCount, 1)
	upserted, err := coll.UpdateOne(ctx, bson.M{"_id": 3}, bson.M{"$set": bson.M{"name": "Edsger"}}, options.UpdateOne().SetUpsert(true))
	equal(t, err, nil)
	equal(t, upserted.UpsertedID, any(int32(3)))
	var got bson.D
	equal(t, coll.FindOneAndUpdate(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"born": 1}}, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&got), nil)
	equal(t, fmt.Sprint(got), fmt.Sprint(bson.D{{Key: "_id", Value: int32(1)}, {Key: "name", Value: "Ada"}, {Key: "born", Value: int32(1816)}}))
	deleted, err := coll.DeleteMany(ctx, bson.M{"_id": bson.M{"$gt": 2}})
	equal(t, err, nil)
	equal(t, deleted.DeletedCount, 1)
	count, err := coll.CountDocuments(ctx, bson.M{})
	equal(t, err, nil)
	equal(t, count, 2)
	equal(t, coll.FindOne(ctx, bson.M{"_id": 3}).Err(), mongo.ErrNoDocuments)
}

func cursors(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("many")
	docs := make([]any, 2500)
	for i := range docs {
		docs[i] = bson.M{"_id": i}
	}
	must(t)(coll.InsertMany(ctx, docs))
	cursor, err := coll.Find(ctx, bson.M{}, options.Find().SetBatchSize(99))
	equal(t, err, nil)
	next := int32(0)
	for cursor.Next(ctx) {
		equal(t, cursor.Current.Lookup("_id").Int32(), next)
		next++
	}
	equal(t, cursor.Err(), nil)
	equal(t, next, 2500)
}

func aggregate(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("sales")
	must(t)(coll.InsertMany(ctx, []any{bson.M{"item": "a", "qty": 2}, bson.M{"item": "b", "qty": 1}, bson.M{"item": "a", "qty": 5}}))
	cursor, err := coll.Aggregate(ctx, bson.A{
		bson.M{"$group": bson.M{"_id": "$item", "qty": bson.M{"$sum": "$qty"}}},
		bson.M{"$sort": bson.M{"qty": -1}},
	})
	equal(t, err, nil)
	var rows []struct {
		Item string `bson:"_id"`
		Qty  int32
	}
	equal(t, cursor.All(ctx, &rows), nil)
	equal(t, fmt.Sprint(rows), "[{a 7} {b 1}]")
}

func bulkWrite(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("bulk")
	result, err := coll.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 2}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}).SetUpsert(true),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 1}),
	})
	equal(t, err, nil)
	equal(t, []int64{result.InsertedCount, result.UpsertedCount, result.DeletedCount}, []int64{1, 1, 1})
	_, err = coll.InsertMany(ctx, []any{bson.M{"_id": 3}, bson.M{"_id": 2}, bson.M{"_id": 4}}, options.InsertMany().SetOrdered(false))
	var bulk mongo.BulkWriteException
	equal(t, errors.As(err, &bulk), true)
	equal(t, []int{len(bulk.WriteErrors), bulk.WriteErrors[0].Index, bulk.WriteErrors[0].Code}, []int{1, 1, 11000})

	all, err := db.Client().BulkWrite(ctx, []mongo.ClientBulkWrite{
		{Database: db.Name(), Collection: "all", Model: mongo.NewClientInsertOneModel().SetDocument(bson.M{"_id": 1})},
		{Database: db.Name(), Collection: "all", Model: mongo.NewClientDeleteManyModel().SetFilter(bson.M{})},
	})
	equal(t, err, nil)
	equal(t, []int64{all.InsertedCount, all.DeletedCount}, []int64{1, 1})
}

func indexes(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("indexes")
	names, err := coll.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true)},
		{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}, Options: options.Index().SetSparse(true)},
	})
	equal(t, err, nil)
	equal(t, names, []string{"email_1", "a_1_b_-1"})
	specs, err := coll.Indexes().ListSpecifications(ctx)
	equal(t, err, nil)
	equal(t, len(specs), 3)
	must(t)(coll.InsertOne(ctx, bson.M{"email": "a@x"}))
	_, err = coll.InsertOne(ctx, bson.M{"email": "a@x"})
	equal(t, mongo.IsDuplicateKeyError(err), true)
	equal(t, coll.Indexes().DropOne(ctx, "email_1"), nil)
	must(t)(coll.InsertOne(ctx, bson.M{"email": "a@x"}))
}

func session(t *testing.T, db *mongo.Database) {
	err := db.Client().UseSession(t.Context(), func(ctx context.Context) error {
		if _, err := db.Collection("session").InsertOne(ctx, bson.M{"_id": 1}); err != nil {
			return err
		}
		return db.Collection("session").FindOne(ctx, bson.M{"_id": 1}).Err()
	})
	equal(t, err, nil)
}

func codes(t *testing.T, db *mongo.Database) {
	for _, c := range []struct {
		command bson.D
		code    int32
		name    string
	}{
		{bson.D{{Key: "noSuchCommand", Value: 1}}, 59, "CommandNotFound"},
		{bson.D{{Key: "find", Value: "x"}, {Key: "filter", Value: bson.M{"$noSuch": 1}}}, 2, "BadValue"},
		{bson.D{{Key: "find", Value: 1}}, 73, "InvalidNamespace"},
		{bson.D{{Key: "collMod", Value: "nowhere"}}, 26, "NamespaceNotFound"},
		{bson.D{{Key: "replSetGetStatus", Value: 1}}, 76, "NoReplicationEnabled"},
	} {
		target := db
		if c.code == 76 {
			target = db.Client().Database("admin")
		}
		var refused mongo.CommandError
		if err := target.RunCommand(t.Context(), c.command).Err(); !errors.As(err, &refused) || refused.Code != c.code || refused.Name != c.name {
			t.Errorf("%v: got %v, want %d %s", c.command, err, c.code, c.name)
		}
	}
}

func gridFS(t *testing.T, db *mongo.Database) {
	ctx := t.Context()
	data := make([]byte, 1_000_000)
	_, _ = rand.Read(data) // never fails
	bucket := db.GridFSBucket(options.GridFSBucket().SetName("plain"))
	id, err := bucket.UploadFromStream(ctx, "tide.bin", bytes.NewReader(data), options.GridFSUpload().SetMetadata(bson.M{"kind": "test"}))
	equal(t, err, nil)
	var back bytes.Buffer
	size, err := bucket.DownloadToStream(ctx, id, &back)
	equal(t, err, nil)
	equal(t, size, int64(len(data)))
	equal(t, bytes.Equal(back.Bytes(), data), true)
	back.Reset()
	_, err = bucket.DownloadToStreamByName(ctx, "tide.bin", &back)
	equal(t, err, nil)
	equal(t, bytes.Equal(back.Bytes(), data), true)
	equal(t, bucket.Rename(ctx, id, "ebb.bin"), nil)
	equal(t, bucket.Delete(ctx, id), nil)
	count, err := bucket.GetChunksCollection().CountDocuments(ctx, bson.M{})
	equal(t, err, nil)
	equal(t, count, 0)
}

// gridFSExpires lets whole files go: a date TTL on their entry, the modification TTL on their chunks.
func gridFSExpires(t *testing.T, db *mongo.Database) {
	ctx := t.Context()
	bucket := db.GridFSBucket(options.GridFSBucket().SetName("brief").SetChunkSizeBytes(1024))
	ttl(t, bucket.GetFilesCollection(), "uploadDate", 3)
	ttl(t, bucket.GetChunksCollection(), "_ts", 3)
	before := time.Now()
	id, err := bucket.UploadFromStream(ctx, "brief.bin", bytes.NewReader(make([]byte, 5000)))
	equal(t, err, nil)
	after := time.Now()
	var back bytes.Buffer
	_, err = bucket.DownloadToStream(ctx, id, &back)
	if time.Since(before) < 3*time.Second {
		equal(t, err, nil)
		equal(t, back.Len(), 5000)
	}
	time.Sleep(time.Until(after.Add(3*time.Second + 50*time.Millisecond)))
	chunks, err := bucket.GetChunksCollection().CountDocuments(ctx, bson.M{})
	equal(t, err, nil)
	equal(t, chunks, 0)
	eventually(t, "the file's entry goes", func() bool {
		_, err := bucket.DownloadToStream(ctx, id, &back)
		return errors.Is(err, mongo.ErrFileNotFound)
	})
}

func ttlOfDocuments(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("by_ts")
	ttl(t, coll, "_ts", 10)
	before := time.Now()
	must(t)(coll.InsertMany(ctx, []any{
		bson.M{"_id": "double", "ttl": 20.0}, bson.M{"_id": "int", "ttl": int32(20)}, bson.M{"_id": "long", "ttl": int64(20)},
		bson.M{"_id": "fraction", "ttl": 20.5}, bson.M{"_id": "large", "ttl": int64(2147483649)},
		bson.M{"_id": "never", "ttl": -1}, bson.M{"_id": "nested", "a": bson.M{"ttl": 20}}, bson.M{"_id": "upper", "TTL": 20},
	}))
	after := time.Now()

	time.Sleep(time.Until(before.Add(8 * time.Second)))
	seen := ids(t, coll)
	inTime(t, before.Add(10*time.Second))
	equal(t, len(seen), 8)

	time.Sleep(time.Until(after.Add(10*time.Second + 50*time.Millisecond)))
	seen = ids(t, coll)
	inTime(t, before.Add(20*time.Second))
	equal(t, seen, []string{"double", "int", "long", "never"})

	time.Sleep(time.Until(after.Add(20*time.Second + 50*time.Millisecond)))
	equal(t, ids(t, coll), []string{"never"})
}

func ttlOfDates(t *testing.T, db *mongo.Database) {
	ctx, coll := t.Context(), db.Collection("by_date")
	ttl(t, coll, "at", 2)
	now := time.Now()
	must(t)(coll.InsertMany(ctx, []any{
		bson.M{"_id": "now", "at": now}, bson.M{"_id": "past", "at": now.AddDate(-200, 0, 0)}, bson.M{"_id": "future", "at": now.Add(time.Hour)},
		bson.M{"_id": "number", "at": now.UnixMilli()}, bson.M{"_id": "timestamp", "at": bson.Timestamp{T: 1}},
	}))
	eventually(t, "the past goes", func() bool { return !slices.Contains(ids(t, coll), "past") })
	seen := ids(t, coll)
	if time.Since(now) < 1900*time.Millisecond {
		equal(t, slices.Contains(seen, "now"), true)
	}
	eventually(t, "after two seconds", func() bool { return !slices.Contains(ids(t, coll), "now") })
	if time.Since(now) < 2*time.Second-time.Millisecond { // BSON dates are whole milliseconds
		t.Error("gone before its time")
	}
	equal(t, ids(t, coll), []string{"future", "number", "timestamp"})
}

func ttl(t *testing.T, coll *mongo.Collection, field string, seconds int32) {
	t.Helper()
	_, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: field, Value: 1}}, Options: options.Index().SetExpireAfterSeconds(seconds)})
	equal(t, err, nil)
}

func ids(t *testing.T, coll *mongo.Collection) []string {
	t.Helper()
	cursor, err := coll.Find(t.Context(), bson.M{})
	equal(t, err, nil)
	var docs []struct {
		ID string `bson:"_id"`
	}
	equal(t, cursor.All(t.Context(), &docs), nil)
	var out []string
	for _, d := range docs {
		out = append(out, d.ID)
	}
	slices.Sort(out)
	return out
}

func inTime(t *testing.T, end time.Time) {
	t.Helper()
	if time.Now().After(end) {
		t.Fatal(tooSlow)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(reclaimLimit); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", reclaimLimit, what)
		}
	}
}

// must wants a call's error to be nil and drops its result.
func must(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
