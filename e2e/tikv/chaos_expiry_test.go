package tikv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// ttl is one way in which documents expire.
type ttl struct {
	name    string
	stamped bool // by when it was written, not by a date in it
	hides   bool
}

// ttls are the kinds: a date, which hides or does not, and _ts, which always hides.
var ttls = [...]ttl{{"dated", false, false}, {"datedHidden", false, true}, {"stamped", true, true}}

const (
	lifetime = 3 * time.Second
	// lookedAt is for how long a document is looked at from its deadline on.
	lookedAt = 4 * time.Second
	// clockLead is how far the time of PD may be ahead of this machine's: it saves what it may give out three seconds ahead, and another one begins there.
	clockLead = 4 * time.Second
	// inserts is how many documents are inserted between two looks.
	inserts = 2
)

// expiring is a client that inserts documents and looks at them. How its looks are judged is by the time that the server says it has looked by,
// since that is whose documents expire: $$NOW in the same pipeline.
type expiring struct {
	ttl
	all       []mortal
	now       time.Time // by the last look
	latest    time.Time // by any
	nextID    int64
	looks     int
	seen      int           // documents in them
	ahead     time.Duration // how far the server's time was ahead of this machine's, or behind, at most
	behind    time.Duration
	backwards time.Duration // how far the server's time went back
	wrongs    int
	early     time.Duration // before its deadline by this machine's time, at most
}

// mortal is a document. Its deadline lies between two times of the server's.
type mortal struct {
	id       int64
	earliest time.Time
	latest   time.Time // zero: not known before the next look
	wall     time.Time // its deadline by this machine's time
	gone     bool
	missed   time.Time // when it was gone
	told     bool      // that it was gone early
}

func (e *expiring) told() string {
	return fmt.Sprintf("%d documents, %d looks that saw %d; the server's time was %v ahead of this machine's at most and %v behind, and went back by %v; by this machine's a document was gone %v early at most; %d were not as they should be",
		e.nextID, e.looks, e.seen, e.ahead.Round(time.Millisecond), e.behind.Round(time.Millisecond), e.backwards.Round(time.Millisecond), e.early.Round(time.Millisecond), e.wrongs)
}

func (w *work) beginExpiry() {
	ctx := w.t.Context()
	_, err := w.db.Collection("clock").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
	noError(w.t, err)
	for i, kind := range ttls {
		w.expired[i].ttl = kind
		key := "at"
		if kind.stamped {
			key = "_ts"
		}
		index := bson.D{{Key: "key", Value: bson.D{{Key: key, Value: 1}}}, {Key: "name", Value: key}, {Key: "expireAfterSeconds", Value: int(lifetime / time.Second)}}
		if kind.hides && !kind.stamped {
			index = append(index, bson.E{Key: "hideExpired", Value: true})
		}
		noError(w.t, w.db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: kind.name}, {Key: "indexes", Value: bson.A{index}}}).Err())
	}
}

func (w *work) expire(e *expiring) {
	for !w.over.Load() {
		for range inserts {
			w.insertMortal(e)
		}
		w.look(e)
		w.think()
	}
}

func (w *work) insertMortal(e *expiring) {
	e.nextID++
	began := time.Now()
	doc := mortal{id: e.nextID, earliest: e.now.Add(lifetime), wall: began.Add(lifetime)}
	fields := bson.D{{Key: "_id", Value: e.nextID}}
	if !e.stamped {
		at := began.Truncate(time.Millisecond).Add(rand.N(lifetime / 3))
		doc.wall = at.Add(lifetime)
		doc.earliest, doc.latest = doc.wall, doc.wall
		fields = append(fields, bson.E{Key: "at", Value: at})
	}
	if w.do("documents that expire", func(ctx context.Context) error {
		_, err := w.db.Collection(e.name).InsertOne(ctx, fields)
		return err
	}) && !e.now.IsZero() {
		e.all = append(e.all, doc)
	}
}

// look reads all documents, with the time that the server has.
func (w *work) look(e *expiring) {
	asked := time.Now()
	var found []struct {
		Now  time.Time
		Docs []struct {
			ID int64 `bson:"_id"`
		}
	}
	if !w.do("looks at what expires", func(ctx context.Context) error {
		found = nil
		cursor, err := w.db.Collection("clock").Aggregate(ctx, mongo.Pipeline{{{Key: "$project", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
			{{Key: "$lookup", Value: bson.D{{Key: "from", Value: e.name}, {Key: "pipeline", Value: mongo.Pipeline{{{Key: "$project", Value: bson.D{{Key: "_id", Value: 1}}}}}}, {Key: "as", Value: "docs"}}}}})
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
	}) {
		return
	}
	if len(found) != 1 {
		w.t.Errorf("the clock is there %d times", len(found))
		return
	}
	now, answered, there := found[0].Now, time.Now(), map[int64]bool{}
	for _, d := range found[0].Docs {
		there[d.ID] = true
	}
	e.looks++
	e.seen += len(there)
	e.ahead, e.behind, e.backwards = max(e.ahead, now.Sub(answered)), max(e.behind, asked.Sub(now)), max(e.backwards, e.now.Sub(now))
	e.now = now
	if now.After(e.latest) {
		e.latest = now
	}
	var left []mortal
	for _, d := range e.all {
		w.judge(e, &d, there[d.id], now, answered)
		if d.latest.IsZero() || now.Before(d.latest.Add(lookedAt)) {
			left = append(left, d)
		}
	}
	e.all = left
}

// judge holds one document to its deadline. Whether one was gone early is known by the look after: the time of that is none before which it was gone.
func (w *work) judge(e *expiring, d *mortal, there bool, now, answered time.Time) {
	switch {
	case there && d.gone:
		e.wrong(w, "%s: document %d was gone at %s, and is there again at %s; its deadline lies between %s and %s", e.name, d.id, clockTime(d.missed), clockTime(now), clockTime(d.earliest), clockTime(d.latest))
	case there && e.hides && !d.latest.IsZero() && !now.Before(d.latest):
		e.wrong(w, "%s: document %d is seen at %s, and has expired at %s", e.name, d.id, clockTime(now), clockTime(d.latest))
	case !there && !d.gone:
		d.gone, d.missed = true, now
		if e.early = max(e.early, d.wall.Sub(answered)); d.wall.Sub(answered) > clockLead {
			e.wrong(w, "%s: document %d was gone %v before its time by this machine's clock", e.name, d.id, d.wall.Sub(answered))
		}
	case !there && now.Before(d.earliest) && !d.told:
		d.told = true
		e.wrong(w, "%s: document %d was gone at %s, and its deadline is %s at the earliest; now it is %s", e.name, d.id, clockTime(d.missed), clockTime(d.earliest), clockTime(now))
	}
	if d.latest.IsZero() { // it was written before this look
		d.latest = e.latest.Add(lifetime)
	}
}

// wrong tells of the first documents that are not as they should be.
func (e *expiring) wrong(w *work, format string, args ...any) {
	if e.wrongs++; e.wrongs <= 5 {
		w.t.Errorf(format, args...)
	}
}

func clockTime(t time.Time) string { return t.Format("05.000") }
