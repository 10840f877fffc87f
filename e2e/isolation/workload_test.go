package isolation

import (
	"fmt"
	"math/rand/v2"
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
// All that is written to at one time are the lists of one group of each collection; they have other names in the next. The last stands for
// collections of one group each, which whoever is the first to append to it makes, often in a transaction.
var collections = []string{"a", "b", "c", "made"}

// made is the place of those that are made on the way, which have no index of their own.
const made = 3

const (
	groupSize = 3 // lists
	// groupAppends is after how many appends a group of lists is left for another: long lists would only be slow.
	groupAppends = 100
)

func createCollections(t *testing.T, db *mongo.Database) {
	t.Helper()
	for _, coll := range collections[:made] {
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
	place int // in collections
	group string
	id    string
}

func (l list) coll() string {
	if l.place == made {
		return collections[made] + l.group
	}
	return collections[l.place]
}

func (l list) key() string { return collections[l.place] + "/" + l.id }

// groups are those of a place so far.
func (w *workload) groups(place int) (all []string) {
	for g := range w.appends[place].Load()/groupAppends + 1 {
		all = append(all, w.group(g))
	}
	return all
}

func (w *workload) group(n int64) string { return fmt.Sprintf("%06d-%06d", w.round, n) }

func members(place int, group string) (all []list) {
	for i := range groupSize {
		all = append(all, list{place, group, fmt.Sprint(group, "-", i)})
	}
	return all
}

// choose picks a list, the first of a group as often as all others.
func (w *workload) choose(random *rand.Rand) list {
	place := random.IntN(len(collections))
	all := members(place, w.group(w.appends[place].Load()/groupAppends))
	return all[random.IntN(groupSize)*random.IntN(2)]
}

// take is another value to append to a list.
func (w *workload) take(l list) int64 {
	w.appends[l.place].Add(1)
	return w.value.Add(1)
}

// document is a list as it is stored.
type document struct {
	ID    string `bson:"_id"`
	Group string
	N     int
	List  []int64
}

// readsOf are the reads of all lists that may be in a result. A list that comes twice is read twice.
func readsOf(all []list, found []document) (ops []anomaly.Op) {
	for _, l := range all {
		there := false
		for _, d := range found {
			if d.ID == l.id {
				there = true
				ops = append(ops, anomaly.Read(l.key(), d.List))
			}
		}
		if !there {
			ops = append(ops, anomaly.Read(l.key(), nil))
		}
	}
	return ops
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
	in := mongo.NewSessionContext(t.Context(), session)
	for place := range collections {
		for _, group := range w.groups(place) {
			all := members(place, group)
			cursor, err := db.Collection(all[0].coll()).Find(in, bson.D{{Key: "group", Value: group}})
			if err != nil {
				t.Fatal(err)
			}
			var found []document
			if err := cursor.All(in, &found); err != nil {
				t.Fatal(err)
			}
			for _, d := range found {
				if d.N != len(d.List) {
					t.Errorf("%s of %s has n: %d and %d values", d.ID, all[0].coll(), d.N, len(d.List))
				}
			}
			txn.Ops = append(txn.Ops, readsOf(all, found)...)
		}
	}
	if err := session.CommitTransaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	txn.End = w.now()
	return txn
}

// forget removes what the round has written.
func (w *workload) forget(t *testing.T, db *mongo.Database) {
	t.Helper()
	for place := range made {
		if _, err := db.Collection(collections[place]).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Error(err)
		}
	}
	for _, group := range w.groups(made) {
		if err := db.Collection(members(made, group)[0].coll()).Drop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
