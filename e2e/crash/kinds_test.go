package crash

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

const (
	capped      = "capped"
	cappedMost  = 500
	series      = "series"
	kindsBatch  = 20
	seriesMetas = 7
)

// TestCrashOfKinds kills the server while a capped collection and a time series grow: afterwards the capped one ends with
// what was acknowledged, in order, a tailable cursor goes through all of it, and no measurement is missing.
func TestCrashOfKinds(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 200))
	path, data := binary.Build(t), t.TempDir()
	server := binary.Start(t, path, "--dbpath", data)
	db := database(t, server)
	makeKinds(t, db)
	next, kept := 0, [][2]int{}
	for round := range *rounds {
		acknowledged := 0
		killUnder(t, server, time.Duration(200+random.IntN(600))*time.Millisecond, func(ctx context.Context) { acknowledged = growKinds(ctx, db, next) })
		kept = append(kept, [2]int{next, acknowledged})
		server = binary.Start(t, path, "--dbpath", data)
		db = database(t, server)
		last := verifyCapped(t, db, acknowledged)
		verifySeries(t, db, kept)
		t.Logf("round %d: %d acknowledged", round+1, acknowledged-next)
		if t.Failed() {
			t.Fatalf("the server's log ends with:\n%s", server.Log())
		}
		next = max(acknowledged, last+1)
		next += kindsBatch - next%kindsBatch
	}
}

func makeKinds(t *testing.T, db *mongo.Database) {
	t.Helper()
	err := db.CreateCollection(t.Context(), capped, options.CreateCollection().SetCapped(true).SetSizeInBytes(1<<20).SetMaxDocuments(cappedMost))
	if err != nil {
		t.Fatal(err)
	}
	of := options.TimeSeries().SetTimeField("at").SetMetaField("of")
	if err := db.CreateCollection(t.Context(), series, options.CreateCollection().SetTimeSeriesOptions(of)); err != nil {
		t.Fatal(err)
	}
}

// growKinds inserts numbered documents into both until the server is gone, and returns the first number not acknowledged.
func growKinds(ctx context.Context, db *mongo.Database, from int) int {
	for n := from; ; n += kindsBatch {
		rows, measurements := make([]any, kindsBatch), make([]any, kindsBatch)
		for i := range kindsBatch {
			rows[i] = bson.D{{Key: "_id", Value: n + i}}
			measurements[i] = bson.D{{Key: "at", Value: time.UnixMilli(int64(n+i) * 1000)}, {Key: "of", Value: (n + i) % seriesMetas}, {Key: "v", Value: n + i}}
		}
		if _, err := db.Collection(series).InsertMany(ctx, measurements); err != nil {
			return n
		}
		if _, err := db.Collection(capped).InsertMany(ctx, rows); err != nil {
			return n
		}
	}
}

// verifyCapped returns the last number in the capped collection, -1 when it is empty.
func verifyCapped(t *testing.T, db *mongo.Database, acknowledged int) int {
	t.Helper()
	cursor, err := db.Collection(capped).Find(t.Context(), bson.D{}, options.Find().SetCursorType(options.Tailable))
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close(t.Context())
	var ids []int
	for cursor.TryNext(t.Context()) {
		ids = append(ids, int(cursor.Current.Lookup("_id").AsInt64()))
	}
	if len(ids) == 0 {
		return -1
	}
	if len(ids) > cappedMost || !slices.IsSorted(ids) || ids[len(ids)-1] < acknowledged-1 {
		t.Errorf("the capped collection has %d documents, from %d to %d; %d were acknowledged", len(ids), ids[0], ids[len(ids)-1], acknowledged)
	}
	valid(t, db, capped)
	return ids[len(ids)-1]
}

// verifySeries looks for every number that was acknowledged, from the first to before the second of each pair.
func verifySeries(t *testing.T, db *mongo.Database, acknowledged [][2]int) {
	t.Helper()
	there := map[int]bool{}
	for _, m := range all[struct{ V int }](t, db.Collection(series), bson.D{}) {
		if there[m.V] {
			t.Errorf("measurement %d is there twice", m.V)
		}
		there[m.V] = true
	}
	for _, span := range acknowledged {
		for v := span[0]; v < span[1]; v++ {
			if !there[v] {
				t.Errorf("measurement %d is lost", v)
			}
		}
	}
	valid(t, db, series)
}

func valid(t *testing.T, db *mongo.Database, coll string) {
	t.Helper()
	var report struct {
		Valid        bool
		Errors       []string
		IndexDetails bson.M `bson:"indexDetails"`
	}
	if err := db.RunCommand(t.Context(), bson.D{{Key: "validate", Value: coll}, {Key: "full", Value: true}}).Decode(&report); err != nil || !report.Valid {
		t.Errorf("validate %s: %+v (%v)", coll, report, err)
	}
}
