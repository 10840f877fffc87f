package backup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	// slots is how many documents a writer has, and removeEvery which of its writes remove one.
	slots       = 1000
	removeEvery = 7
	mortalEvery = 10
	// maxMortals is how many of the latest mortals it remembers.
	maxMortals = 500
)

// writer does one write after the other. What each does follows from its number alone, so the number of the last one tells all that is there.
// It does the last that was not acknowledged again.
type writer struct {
	number       int
	acknowledged int
	refused      error

	mu struct {
		sync.Mutex
		done, sent int // writes
		mortals    map[string]time.Time
	}
}

type document struct {
	ID   int `bson:"_id"`
	N    int
	Text string
}

func (w *writer) collection() string { return fmt.Sprintf("w%d", w.number) }

// books are how many writes are acknowledged, and the mortals among those of before.
func (w *writer) books() (done int, mortals map[string]time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mortals = map[string]time.Time{}
	for id, at := range w.mu.mortals {
		mortals[id] = at
	}
	return w.mu.done, mortals
}

func (w *writer) hasSent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.sent
}

func (w *writer) run(ctx context.Context, db *mongo.Database) {
	for ctx.Err() == nil {
		w.mu.Lock()
		w.mu.sent = w.mu.done + 1
		n := w.mu.sent
		w.mu.Unlock()
		err := w.write(ctx, db.Collection(w.collection()), n)
		if err == nil && n%mortalEvery == 0 {
			err = w.mortal(ctx, db.Collection(mortal))
		}
		if err != nil {
			if isRefusal(err) {
				w.refused = err
			}
			return
		}
		w.mu.Lock()
		w.mu.done = n
		w.mu.Unlock()
		w.acknowledged++
	}
}

func slot(n int) int { return n * 31 % slots }

// text is the text of a write, which does not get smaller by compression.
func text(n int) string {
	b := make([]byte, n*37%3000)
	random := rand.New(rand.NewPCG(uint64(n), 0))
	for i := range b {
		b[i] = byte('0' + random.IntN(64))
	}
	return string(b)
}

func (w *writer) write(ctx context.Context, c *mongo.Collection, n int) error {
	if n%removeEvery == 0 {
		_, err := c.DeleteOne(ctx, bson.D{{Key: "_id", Value: slot(n)}})
		return err
	}
	d := document{slot(n), n, text(n)}
	_, err := c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: d.ID}}, d, options.Replace().SetUpsert(true))
	return err
}

func (w *writer) mortal(ctx context.Context, c *mongo.Collection) error {
	at := time.Now().Truncate(time.Millisecond)
	id := fmt.Sprintf("%d-%d", w.number, at.UnixNano())
	if _, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: at}}}}, options.UpdateOne().SetUpsert(true)); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.mortals) > maxMortals || w.mu.mortals == nil {
		w.mu.mortals = map[string]time.Time{}
	}
	w.mu.mortals[id] = at
	return nil
}

// state is what is there after n writes.
func state(n int) map[int]int {
	s := map[int]int{}
	for i := max(1, n-2*slots*removeEvery); i <= n; i++ {
		if i%removeEvery == 0 {
			delete(s, slot(i))
		} else {
			s[slot(i)] = i
		}
	}
	return s
}

// compare looks whether a database has what the writer had written at some moment between two.
func (w *writer) compare(t *testing.T, db *mongo.Database, low, high int) {
	t.Helper()
	cursor, err := db.Collection(w.collection()).Find(t.Context(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var docs []document
	if err := cursor.All(t.Context(), &docs); err != nil {
		t.Fatal(err)
	}
	there := map[int]int{}
	for _, d := range docs {
		there[d.ID] = d.N
		if d.Text != text(d.N) {
			t.Errorf("writer %d: document %d of write %d has another text", w.number, d.ID, d.N)
		}
	}
	for n := low; n <= high; n++ {
		if same(there, state(n)) {
			return
		}
	}
	t.Errorf("writer %d: what is there is at no moment between writes %d and %d: %d documents, and after the first %d", w.number, low, high, len(there), len(state(low)))
}

func same(a, b map[int]int) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// contents are all documents of a database's writers, in order.
func contents(t *testing.T, db *mongo.Database) (all string) {
	t.Helper()
	for i := range writers {
		cursor, err := db.Collection((&writer{number: i}).collection()).Find(t.Context(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err != nil {
			t.Fatal(err)
		}
		var docs []bson.Raw
		if err := cursor.All(t.Context(), &docs); err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			all += string(d)
		}
	}
	return all
}
