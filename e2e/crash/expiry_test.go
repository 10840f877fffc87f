package crash

import (
	"context"
	"fmt"
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
	dated   = "dated"   // a TTL on a date, which comes, changes and goes
	sliding = "sliding" // a TTL on _ts: each change begins a new life
	flooded = "flooded" // a TTL on a date, by which everything goes now and then
	mortals = 6         // writers to the first two; of many documents at once there is one more each
	flock   = 4000      // documents of dated that nobody touches, so that making an index takes a while
	// What the TTLs are between, in seconds.
	shortest, longest = 1, 3
	// fairRounds are enough to meet everything.
	fairRounds = 20
	// sweepLimit is how long a sweep may take after a restart: less than the grace of a TTL that was changed.
	sweepLimit = 30 * time.Second
)

var mortalColls = []string{dated, sliding, flooded}

// TestCrashOfExpiry kills the server while documents expire, are swept and put into another order: afterwards what was
// acknowledged is there until its deadline, what has been gone is gone, and every index agrees.
//
//	go test ./e2e/crash -run OfExpiry -v -args -rounds 200
func TestCrashOfExpiry(t *testing.T) {
	random := rand.New(rand.NewPCG(chosenSeed(t), 300))
	path, data := binary.Build(t), t.TempDir()
	server := binary.Start(t, path, "--dbpath", data)
	makeMortals(t, database(t, server))
	rules := &times{random: rand.New(rand.NewPCG(*seed, 301))}
	load := make([]*mortal, mortals+len(mortalColls))
	for i := range load {
		load[i] = newMortal(i, rand.New(rand.NewPCG(*seed, uint64(400+i))))
	}
	inChange, met := 0, sights{}
	for round := range *rounds {
		alive := time.Duration(200+random.IntN(1800)) * time.Millisecond
		before := sum(load)
		if expireUntilKilled(t, server, load, rules, alive, &met) {
			inChange++
		}
		server = binary.Start(t, path, "--dbpath", data)
		db := database(t, server)
		rules.settle(t, db)
		due := verifyMortals(t, db, load, rules)
		t.Logf("round %d: killed after %v and %d acknowledged writes; %d expired documents were stored, by %v", round+1, alive, sum(load)-before, due, rules.now)
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/crash -run OfExpiry -v -args -rounds %d -seed %d\nthe server's log ends with:\n%s", *rounds, *seed, server.Log())
		}
	}
	t.Logf("%d of %d deaths came in one of %d changes of TTL indexes; %v", inChange, *rounds, rules.changes+inChange, &met)
	if *rounds >= fairRounds && (met.sweeps < int64(*rounds) || met.vacuumed == 0 || met.reclustered == 0 || met.deadLeft == 0 || met.unordered == 0 || met.emptied == 0) {
		t.Error("the load is of no use")
	}
}

func makeMortals(t *testing.T, db *mongo.Database) {
	t.Helper()
	secondary := []mongo.IndexModel{
		{Keys: bson.D{{Key: "u", Value: 1}}, Options: options.Index().SetName("u").SetUnique(true)},
		{Keys: bson.D{{Key: "w", Value: 1}, {Key: "v", Value: -1}}, Options: options.Index().SetName("wv")},
		{Keys: bson.D{{Key: "list", Value: 1}}, Options: options.Index().SetName("list")},
	}
	for _, coll := range mortalColls {
		if _, err := db.Collection(coll).Indexes().CreateMany(t.Context(), secondary); err != nil {
			t.Fatal(err)
		}
	}
	_, err := db.Collection(sliding).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "_ts", Value: 1}},
		Options: options.Index().SetName("ts").SetExpireAfterSeconds(longest)})
	if err != nil {
		t.Fatal(err)
	}
	if err := create(t.Context(), db.Collection(flooded), ofFlooded); err != nil {
		t.Fatal(err)
	}
	docs := make([]any, flock)
	for i := range docs {
		id := fmt.Sprintf("f-%06d", i)
		docs[i] = mortalDoc{ID: id, U: id, W: -1, List: []int32{int32(i), -int32(i)}, D: time.Now().Add(time.Duration(24+i*7919%48) * time.Hour)}
	}
	if _, err := db.Collection(dated).InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
}

func sum(load []*mortal) (n int) {
	for _, m := range load {
		n += m.acknowledged
	}
	return n
}

// expireUntilKilled says whether the server died in a change of indexes.
func expireUntilKilled(t *testing.T, server *binary.Server, load []*mortal, rules *times, alive time.Duration, met *sights) (inChange bool) {
	t.Helper()
	db := database(t, server)
	work := []func(context.Context){
		func(ctx context.Context) { rules.run(ctx, db) },
		func(ctx context.Context) { met.watch(ctx, db) },
	}
	for _, m := range load {
		work = append(work, func(ctx context.Context) { m.run(ctx, db.Collection(m.coll)) })
	}
	dead := killUnder(t, server, alive, work...)
	for _, m := range load {
		m.diedAt(dead)
		for _, p := range m.problems {
			t.Errorf("writer %d: %s", m.number, p)
		}
	}
	if rules.refused != nil {
		t.Errorf("the server refused a change of indexes: %v", rules.refused)
	}
	return rules.next != nil && rules.asked.Before(dead)
}

// sights are what servers were seen to do before they died.
type sights struct {
	sweeps, swept, reclustered, vacuumed int64
	deadLeft, unordered                  int // deaths while entries of swept records were left, and while records were not in order
	emptied                              int // looks at a collection that a sweep had left empty
}

func (s *sights) String() string {
	return fmt.Sprintf("at least %d sweeps at once of %d documents, %d records put in order, %d dead entries vacuumed; deaths with dead entries %d, with records out of order %d; a collection seen empty %d times",
		s.sweeps, s.swept, s.reclustered, s.vacuumed, s.deadLeft, s.unordered, s.emptied)
}

// sight is the server's word on expiry.
type sight struct {
	Monitor struct {
		Ebb struct{ Sweeps, SweptDocuments, ReclusteredDocuments, VacuumedEntries int64 }
	}
	Indexes []struct {
		NS          string `bson:"ns"`
		Ordered     *bool
		DeadEntries int64
		Deleted     int64
		Deadline    *time.Time `bson:"oldestDeadline"`
	}
}

// watch looks at the server until it dies, and counts the last that it saw.
func (s *sights) watch(ctx context.Context, db *mongo.Database) {
	var last sight
	for ctx.Err() == nil {
		var now sight
		if db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "ebbTTL", Value: 1}}).Decode(&now) != nil {
			break
		}
		last = now
		if now.hasEmptied(db.Name() + "." + flooded) {
			s.emptied++
		}
		time.Sleep(20 * time.Millisecond)
	}
	e := last.Monitor.Ebb
	s.sweeps, s.swept, s.reclustered, s.vacuumed = s.sweeps+e.Sweeps, s.swept+e.SweptDocuments, s.reclustered+e.ReclusteredDocuments, s.vacuumed+e.VacuumedEntries
	dead, unordered := 0, 0
	for _, ix := range last.Indexes {
		switch {
		case ix.DeadEntries > 0:
			dead = 1
		case ix.Ordered != nil && !*ix.Ordered:
			unordered = 1
		}
	}
	s.deadLeft, s.unordered = s.deadLeft+dead, s.unordered+unordered
}

// hasEmptied says whether a sweep has left nothing of a collection, no entry either.
func (s *sight) hasEmptied(ns string) bool {
	for _, ix := range s.Indexes {
		if ix.NS == ns {
			return ix.Deadline == nil && ix.Deleted > 0 && ix.DeadEntries == 0
		}
	}
	return false
}

// verifyMortals compares all collections with the books, on every way through them; it returns how many documents that
// have expired were still stored.
func verifyMortals(t *testing.T, db *mongo.Database, load []*mortal, rules *times) (due int) {
	t.Helper()
	for _, coll := range mortalColls {
		c := db.Collection(coll)
		for i, hint := range ways() {
			began := time.Now()
			found := byID(t, all[mortalDoc](t, c, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: ""}}}}, options.Find().SetHint(hint)))
			for _, m := range load {
				if m.coll != coll {
					continue
				}
				for _, p := range m.compare(found, began, time.Now(), rules.of(coll), i == 0) {
					t.Errorf("%s by %v: %s", coll, hint, p)
				}
			}
			if n := countFlock(found); coll == dated && n != flock {
				t.Errorf("%s by %v has %d documents that nobody touches, not %d", coll, hint, n, flock)
			}
		}
		countsAgree(t, c)
		valid(t, db, coll)
		setGrace(t, db, 0)
		due += waitForSweep(t, c, load, rules)
		setGrace(t, db, bySleep)
		valid(t, db, coll)
	}
	return due
}

// bySleep is the grace of a TTL that was changed which is as long as the monitor sleeps: a minute, unless somebody says otherwise.
const bySleep = -1

// setGrace ends what is left of graces where it shortens them, or the test would wait a minute for each TTL that was changed before a death.
func setGrace(t *testing.T, db *mongo.Database, seconds int) {
	t.Helper()
	if err := db.Client().Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlChangeGraceSecs", Value: seconds}}).Err(); err != nil {
		t.Fatal(err)
	}
}

// ways are the indexes that lead to every document.
func ways() []any {
	return []any{bson.D{{Key: "$natural", Value: 1}}, "_id_", "u", "wv", "list"}
}

func byID(t *testing.T, docs []mortalDoc) map[string]mortalDoc {
	t.Helper()
	found := map[string]mortalDoc{}
	for _, d := range docs {
		if _, twice := found[d.ID]; twice {
			t.Errorf("document %s came twice", d.ID)
		}
		found[d.ID] = d
	}
	return found
}

func countFlock(found map[string]mortalDoc) (n int) {
	for _, d := range found {
		if d.W == -1 {
			n++
		}
	}
	return n
}

// countsAgree counts by every index again and again: while nobody writes there can only be fewer.
func countsAgree(t *testing.T, c *mongo.Collection) {
	t.Helper()
	var counts []int64
	for range 2 {
		for _, hint := range ways() {
			n, err := c.CountDocuments(t.Context(), bson.D{}, options.Count().SetHint(hint))
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, n)
		}
		n, err := c.EstimatedDocumentCount(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	if !slices.IsSortedFunc(counts, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("%s is counted, by one index after the other, as %v", c.Name(), counts)
	}
}

// waitForSweep waits until nothing is left that has to be deleted, and returns how many documents that were.
func waitForSweep(t *testing.T, c *mongo.Collection, load []*mortal, rules *times) (due int) {
	t.Helper()
	rule := rules.of(c.Name())
	if !rule.there {
		return 0
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		asked := time.Now()
		left := 0
		for _, d := range all[mortalDoc](t, c, bson.D{}) {
			if rule.expires(d, asked) || ownerOf(load, d).gone[d.ID] {
				left++
			}
		}
		due = max(due, left)
		switch {
		case left == 0:
			return due
		case time.Since(began) > sweepLimit:
			t.Errorf("%s has %d expired documents %v after the restart", c.Name(), left, sweepLimit)
			return due
		}
	}
}
