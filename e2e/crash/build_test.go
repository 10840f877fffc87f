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

// TestCrashInBuild kills the server while indexes of a collection are built and dropped under writers: afterwards each is
// there, complete, or not at all, as was acknowledged.
//
//	go test ./e2e/crash -run InBuild -v -args -rounds 50
func TestCrashInBuild(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 0))
	path, data := binary.Build(t), t.TempDir()
	load := make([]*writer, writers)
	for i := range load {
		load[i] = newWriter(i, rand.New(rand.NewPCG(*seed, uint64(i)+1)))
	}
	books := &indexBooks{random: rand.New(rand.NewPCG(*seed, 100)), state: map[string]bool{}}

	server := binary.Start(t, path, "--dbpath", data)
	createIndexes(t, database(t, server))
	fill(t, database(t, server))
	inBuild := 0
	for round := range *rounds {
		db := database(t, server)
		alive := time.Duration(100+random.IntN(700)) * time.Millisecond
		acknowledged := runLoad(t, server, load, alive, func(ctx context.Context) { books.run(ctx, db) })
		if books.refused != nil {
			t.Errorf("the server refused a change of indexes: %v", books.refused)
		}
		if books.creating {
			inBuild++
		}

		server = binary.Start(t, path, "--dbpath", data)
		db = database(t, server)
		verify(t, db, load)
		books.verify(t, db)
		t.Logf("round %d: killed after %v, %d acknowledged writes and %d builds", round+1, alive, acknowledged, books.built)
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/crash -run InBuild -v -args -rounds %d -seed %d\nthe server's log ends with:\n%s", *rounds, *seed, server.Log())
		}
	}
	t.Logf("%d of %d deaths came in a build", inBuild, *rounds)
}

const (
	filled     = "filled" // documents that nobody changes, enough for a build to take a while
	filledSize = 20_000
)

func fill(t *testing.T, db *mongo.Database) {
	t.Helper()
	for i := 0; i < filledSize; i += 1000 {
		docs := make([]any, 1000)
		for j := range docs {
			docs[j] = bson.D{{Key: "_id", Value: i + j}, {Key: "list", Value: []int{i, j}}, {Key: "version", Value: j * 7919 % 1000}, {Key: "u", Value: i + j}}
		}
		if _, err := db.Collection(filled).InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
}

// indexBooks are which indexes there should be.
type indexBooks struct {
	random   *rand.Rand
	state    map[string]bool // "collection.index" → there
	pending  []string        // what may have changed when the server died
	creating bool            // it was being built
	built    int
	refused  error
}

// The indexes that come and go, by name; one unique.
var comingIndexes = map[string]mongo.IndexModel{
	"v": {Keys: bson.D{{Key: "version", Value: 1}}, Options: options.Index().SetName("v")},
	"l": {Keys: bson.D{{Key: "list", Value: -1}, {Key: "_id", Value: 1}}, Options: options.Index().SetName("l")},
	"n": {Keys: bson.D{{Key: "u", Value: -1}}, Options: options.Index().SetName("n").SetUnique(true)},
	"p": {Keys: bson.D{{Key: "padding", Value: 1}}, Options: options.Index().SetName("p").SetSparse(true)},
}

func (b *indexBooks) run(ctx context.Context, db *mongo.Database) {
	for ctx.Err() == nil {
		coll := []string{kept, filled}[b.random.IntN(2)]
		names := []string{"v", "l", "n", "p"}
		b.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		if err := b.change(ctx, db.Collection(coll), names[:1+b.random.IntN(3)]); err != nil {
			if isRefusal(err) {
				b.refused = err
			}
			return
		}
		b.pending = nil
	}
}

// change makes those of the indexes that are missing, or drops them where all are there.
func (b *indexBooks) change(ctx context.Context, coll *mongo.Collection, names []string) error {
	var missing []mongo.IndexModel
	b.pending = nil
	for _, name := range names {
		if !b.state[coll.Name()+"."+name] {
			missing = append(missing, comingIndexes[name])
			b.pending = append(b.pending, coll.Name()+"."+name)
		}
	}
	if b.creating = len(missing) > 0; b.creating {
		if _, err := coll.Indexes().CreateMany(ctx, missing); err != nil {
			return err
		}
		b.built++
		for _, name := range b.pending {
			b.state[name] = true
		}
		b.creating = false
		return nil
	}
	for _, name := range names {
		b.pending = []string{coll.Name() + "." + name}
		if err := coll.Indexes().DropOne(ctx, name); err != nil {
			return err
		}
		b.state[b.pending[0]] = false
	}
	return nil
}

// verify compares the indexes with the books, and the entries with the documents.
func (b *indexBooks) verify(t *testing.T, db *mongo.Database) {
	t.Helper()
	for _, coll := range []string{kept, filled} {
		specs, err := db.Collection(coll).Indexes().ListSpecifications(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name := range comingIndexes {
			there := slices.ContainsFunc(specs, func(s mongo.IndexSpecification) bool { return s.Name == name })
			full := coll + "." + name
			if there != b.state[full] && !slices.Contains(b.pending, full) {
				t.Errorf("index %s is there: %t, which was not acknowledged", full, there)
			}
			b.state[full] = there
		}
	}
	var report struct {
		Valid  bool
		Errors []string
	}
	if err := db.RunCommand(t.Context(), bson.D{{Key: "validate", Value: filled}, {Key: "full", Value: true}}).Decode(&report); err != nil || !report.Valid {
		t.Errorf("validate %s: %+v (%v)", filled, report, err)
	}
	n, err := db.Collection(filled).CountDocuments(t.Context(), bson.D{})
	if err != nil || n != filledSize {
		t.Errorf("%s has %d documents (%v)", filled, n, err)
	}
	b.pending = nil
}
