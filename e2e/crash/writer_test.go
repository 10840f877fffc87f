package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

const (
	batch     = 10
	maxBooked = 400 // documents a writer keeps; past it, it deletes more than it inserts
)

type document struct {
	ID      string `bson:"_id"`
	Unique  string `bson:"u"`
	Version int32  `bson:"version"`
	List    []int32
	Padding string
}

// absent is the version of a document that is not there.
const absent = int32(-1)

// writer owns a range of ids, so that nobody else changes what it keeps books of.
type writer struct {
	number int
	random *rand.Rand
	next   int

	books   map[string]int32 // id → version that was acknowledged
	pending map[string]int32 // id → version that was sent and not answered when the server died
	order   []string         // the ids of a pending insert, in the order they were sent

	brief        map[string]time.Time // id → the latest moment at which its life of one second can have begun
	pendingBrief []string

	acknowledged int
	refused      error // an answer that is not one of a dying server
}

func newWriter(number int, random *rand.Rand) *writer {
	return &writer{number: number, random: random, books: map[string]int32{}, pending: map[string]int32{}, brief: map[string]time.Time{}}
}

func (w *writer) run(ctx context.Context, db *mongo.Database) {
	for ctx.Err() == nil {
		var err error
		switch dice := w.random.IntN(10); {
		case dice < 3 && len(w.books) < maxBooked:
			err = w.insert(ctx, db)
		case dice < 4:
			err = w.insertBrief(ctx, db)
		case dice < 8:
			err = w.update(ctx, db)
		default:
			err = w.remove(ctx, db)
		}
		if err != nil {
			w.note(err)
			return
		}
		for id, version := range w.pending {
			w.book(id, version)
		}
		clear(w.pending)
		w.order = nil
		w.acknowledged++
	}
}

// note keeps an error only when it is the server's word: one that comes from a broken connection says nothing.
func (w *writer) note(err error) {
	if isRefusal(err) {
		w.refused = err
	}
}

// isRefusal says whether an error is the word of a server that does not end.
func isRefusal(err error) bool {
	var said mongo.ServerError
	var command mongo.CommandError
	dying := []int{91, 11600, 11602} // ShutdownInProgress, InterruptedAtShutdown, InterruptedDueToReplStateChange
	switch {
	case !errors.As(err, &said), slices.ContainsFunc(dying, said.HasErrorCode), said.HasErrorLabel("NetworkError"):
		return false
	case errors.As(err, &command):
		return command.Code != 0 // without one it is the driver's: its connections were closed
	}
	return true
}

func (w *writer) book(id string, version int32) {
	if version == absent {
		delete(w.books, id)
		return
	}
	w.books[id] = version
}

func (w *writer) insert(ctx context.Context, db *mongo.Database) error {
	docs := make([]any, batch)
	for i := range docs {
		w.next++
		doc := document{ID: fmt.Sprintf("%d-%06d", w.number, w.next), Version: 0, List: []int32{int32(w.next), int32(-i)}, Padding: strings.Repeat("x", w.random.IntN(300))}
		doc.Unique = "u" + doc.ID
		docs[i] = doc
		w.pending[doc.ID] = 0
		w.order = append(w.order, doc.ID)
	}
	_, err := db.Collection(kept).InsertMany(ctx, docs)
	return err
}

// update moves a document in every index: its version, its list, and its size.
func (w *writer) update(ctx context.Context, db *mongo.Database) error {
	id, ok := w.pick()
	if !ok {
		return nil
	}
	w.pending[id] = w.books[id] + 1
	result, err := db.Collection(kept).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{
		{Key: "$inc", Value: bson.D{{Key: "version", Value: int32(1)}}},
		{Key: "$set", Value: bson.D{{Key: "list", Value: []int32{w.random.Int32(), w.random.Int32()}}, {Key: "padding", Value: strings.Repeat("y", w.random.IntN(300))}}},
	})
	if err == nil && result.ModifiedCount != 1 {
		w.refused = fmt.Errorf("update of %s modified %d documents", id, result.ModifiedCount)
	}
	return err
}

func (w *writer) remove(ctx context.Context, db *mongo.Database) error {
	id, ok := w.pick()
	if !ok {
		return nil
	}
	w.pending[id] = absent
	result, err := db.Collection(kept).DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
	if err == nil && result.DeletedCount != 1 {
		w.refused = fmt.Errorf("delete of %s deleted %d documents", id, result.DeletedCount)
	}
	return err
}

// insertBrief writes what nobody may see any more one second after it was acknowledged.
func (w *writer) insertBrief(ctx context.Context, db *mongo.Database) error {
	docs := make([]any, batch)
	for i := range docs {
		w.next++
		id := fmt.Sprintf("%d-%06d", w.number, w.next)
		docs[i] = bson.D{{Key: "_id", Value: id}}
		w.pendingBrief = append(w.pendingBrief, id)
	}
	_, err := db.Collection(brief).InsertMany(ctx, docs)
	if err == nil {
		w.bornBefore(time.Now())
	}
	return err
}

// bornBefore settles the pending brief documents: none of them can have been written after this moment.
func (w *writer) bornBefore(moment time.Time) {
	for _, id := range w.pendingBrief {
		w.brief[id] = moment
	}
	w.pendingBrief = nil
}

func (w *writer) pick() (string, bool) {
	if len(w.books) == 0 {
		return "", false
	}
	ids := make([]string, 0, len(w.books))
	for id := range w.books {
		ids = append(ids, id)
	}
	slices.Sort(ids) // a map's order would not follow the seed
	return ids[w.random.IntN(len(ids))], true
}

// compare says what is wrong with the documents of this writer, and settles what was pending.
func (w *writer) compare(found map[string]document) []string {
	var problems []string
	versionOf := func(id string) int32 {
		doc, ok := found[id]
		if !ok {
			return absent
		}
		if doc.Unique != "u"+id {
			problems = append(problems, fmt.Sprintf("document %s is torn: %+v", id, doc))
		}
		return doc.Version
	}
	gap := false
	for _, id := range w.order {
		there := versionOf(id) != absent
		if there && gap {
			problems = append(problems, fmt.Sprintf("of an ordered insert, %s is there without all before it", id))
		}
		gap = gap || !there
	}
	for id, sent := range w.pending {
		before, known := w.books[id]
		if !known {
			before = absent
		}
		got := versionOf(id)
		if got != sent && got != before {
			problems = append(problems, fmt.Sprintf("document %s has version %d, neither %d nor %d", id, got, before, sent))
		}
		w.book(id, got)
	}
	for id, want := range w.books {
		if got := versionOf(id); got != want {
			problems = append(problems, fmt.Sprintf("acknowledged write lost: document %s has version %d, want %d", id, got, want))
		}
	}
	clear(w.pending)
	w.order = nil
	return problems
}
