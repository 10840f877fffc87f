package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/ebbdb/ebb/e2e/isolation/anomaly"
)

// The lists lie in documents {_id, group, n, list} of a few collections. n is counted up by each append, so that the index {group, n} changes with each.
// All that is written to at one time are the lists of one group of each collection; they have other names in the next.
var collections = []string{"a", "b", "c"}

const (
	groupSize = 3 // lists
	// groupAppends is after how many appends a group of lists is left for another: long lists would only be slow.
	groupAppends = 100
)

func createCollections(t *testing.T, db *mongo.Database) {
	t.Helper()
	for _, coll := range collections {
		_, err := db.Collection(coll).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "group", Value: 1}, {Key: "n", Value: 1}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// workload is what the clients of one round share.
type workload struct {
	round int
	kills bool
	begin time.Time
	value atomic.Int64 // the last that was appended
	// appends are how many there were in each collection, which says what its group is.
	appends []atomic.Int64
}

func newWorkload(round int, kills bool) *workload {
	return &workload{round: round, kills: kills, begin: time.Now(), appends: make([]atomic.Int64, len(collections))}
}

func (w *workload) now() int64 { return int64(time.Since(w.begin)) }

// list is the name of one list.
type list struct {
	coll  string
	group string
	id    string
}

func (l list) key() string { return l.coll + "/" + l.id }

func (w *workload) groupOf(coll int) string {
	return fmt.Sprintf("%06d-%06d", w.round, w.appends[coll].Load()/groupAppends)
}

func members(coll, group string) (all []list) {
	for i := range groupSize {
		all = append(all, list{coll, group, fmt.Sprint(group, "-", i)})
	}
	return all
}

// choose picks a list, the first of a group as often as all others.
func (w *workload) choose(random *rand.Rand) list {
	coll := random.IntN(len(collections))
	all := members(collections[coll], w.groupOf(coll))
	return all[random.IntN(groupSize)*random.IntN(2)]
}

// take is another value to append to a list.
func (w *workload) take(l list) int64 {
	w.appends[slices.Index(collections, l.coll)].Add(1)
	return w.value.Add(1)
}

// document is a list as it is stored.
type document struct {
	ID    string `bson:"_id"`
	Group string
	N     int
	List  []int64
}

// ofRound are the documents of a round.
func (w *workload) ofRound() bson.D {
	return bson.D{{Key: "group", Value: bson.D{{Key: "$gte", Value: fmt.Sprintf("%06d-", w.round)}, {Key: "$lt", Value: fmt.Sprintf("%06d.", w.round)}}}}
}

// readAll reads all lists in one transaction, when nobody writes any more.
func (w *workload) readAll(t *testing.T, db *mongo.Database) anomaly.Txn {
	t.Helper()
	txn := anomaly.Txn{Name: "the last read", Start: w.now()}
	session, err := db.Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(t.Context())
	if err := session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())); err != nil {
		t.Fatal(err)
	}
	for i, coll := range collections {
		cursor, err := db.Collection(coll).Find(mongo.NewSessionContext(t.Context(), session), w.ofRound())
		if err != nil {
			t.Fatal(err)
		}
		var found []document
		if err := cursor.All(mongo.NewSessionContext(t.Context(), session), &found); err != nil {
			t.Fatal(err)
		}
		lists := map[string][]int64{}
		for _, d := range found {
			if d.N != len(d.List) {
				t.Errorf("%s of %s has n: %d and %d values", d.ID, coll, d.N, len(d.List))
			}
			lists[d.ID] = d.List
		}
		for g := range w.appends[i].Load()/groupAppends + 1 {
			for _, l := range members(coll, fmt.Sprintf("%06d-%06d", w.round, g)) {
				txn.Ops = append(txn.Ops, anomaly.Read(l.key(), lists[l.id]))
			}
		}
	}
	if err := session.CommitTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	txn.End = w.now()
	return txn
}

func (w *workload) forget(t *testing.T, db *mongo.Database) {
	t.Helper()
	for _, coll := range collections {
		if _, err := db.Collection(coll).DeleteMany(t.Context(), w.ofRound()); err != nil {
			t.Error(err)
		}
	}
}
