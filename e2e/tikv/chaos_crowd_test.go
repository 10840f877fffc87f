package tikv

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// crowd is a client whose documents expire many at one moment, so that they are deleted as a range, and which takes the same _ids again. A few between
// them stay.
type crowd struct {
	rounds, base, gone int64
	stay               []string
}

const (
	crowdSize     = 600
	crowdLifetime = 2 * time.Second
	// crowdLimit is how long after its time a crowd may be there.
	crowdLimit = 60 * time.Second
	crowdName  = "crowd"
)

func (c *crowd) told() string {
	return fmt.Sprintf("%d rounds of %d documents that expire at one moment, %d of them seen gone as a whole; %d stay", c.rounds, crowdSize, c.gone, len(c.stay))
}

func (w *work) beginCrowd() {
	ctx := w.t.Context()
	noError(w.t, w.db.RunCommand(ctx, bson.D{{Key: "create", Value: crowdName}, {Key: "expirationEvents", Value: "none"}}).Err())
	noError(w.t, w.db.RunCommand(ctx, bson.D{{Key: "createIndexes", Value: crowdName}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 0}},
		bson.D{{Key: "key", Value: bson.D{{Key: "k", Value: 1}}}, {Key: "name", Value: "k"}}}}}).Err())
}

func (w *work) crowds(c *crowd) {
	for !w.over.Load() {
		c.rounds++
		w.crowdRound(c)
		w.think()
	}
}

func (w *work) crowdRound(c *crowd) {
	docs := w.db.Collection(crowdName)
	at := time.Now().Add(crowdLifetime).Truncate(time.Millisecond)
	all := make([]any, crowdSize)
	for i := range all {
		all[i] = bson.D{{Key: "_id", Value: c.base + int64(i)}, {Key: "at", Value: at}, {Key: "k", Value: i}, {Key: "round", Value: c.rounds}}
	}
	name := fmt.Sprint("s", c.rounds)
	inserted := w.do("crowds", func(ctx context.Context) error {
		_, err := docs.InsertMany(ctx, all)
		return err
	})
	if w.do("documents that stay", func(ctx context.Context) error {
		_, err := docs.InsertOne(ctx, bson.D{{Key: "_id", Value: name}, {Key: "at", Value: at.Add(24 * time.Hour)}, {Key: "k", Value: crowdSize + len(c.stay)}})
		return err
	}) {
		c.stay = append(c.stay, name)
	}
	if !inserted { // some may come late yet
		c.base += crowdSize
	}
	if found, now, ok := w.countCrowd(bson.D{{Key: "round", Value: c.rounds}}); ok && inserted && now.Before(at) && found != crowdSize {
		w.t.Errorf("of a crowd of %d there are %d at %s, and its time is %s", crowdSize, found, clockTime(now), clockTime(at))
	}
	for began := time.Now(); ; w.think() {
		found, now, ok := w.countCrowd(bson.D{{Key: "round", Value: c.rounds}})
		if ok && found == 0 && !now.Before(at) {
			c.gone++
			break
		}
		if time.Since(began) > crowdLimit {
			w.t.Errorf("of the crowd of round %d %d are there %v after their time", c.rounds, found, time.Since(at).Round(time.Millisecond))
			c.base += crowdSize
			break
		}
		if w.over.Load() {
			return
		}
	}
	for index, filter := range map[string]bson.D{"_id_": {{Key: "_id", Value: bson.D{{Key: "$in", Value: c.stay}}}}, "k": {{Key: "k", Value: bson.D{{Key: "$gte", Value: crowdSize}}}}} {
		if found, _, ok := w.countCrowd(filter); ok && found < len(c.stay) {
			w.t.Errorf("of %d documents that stay %d are found by the index %s", len(c.stay), found, index)
		}
	}
}

// countCrowd counts documents, and tells the time by which the server has.
func (w *work) countCrowd(filter bson.D) (found int, now time.Time, ok bool) {
	var got []struct {
		Now  time.Time
		Docs []struct{ N int }
	}
	ok = w.do("looks at crowds", func(ctx context.Context) error {
		got = nil
		cursor, err := w.db.Collection("clock").Aggregate(ctx, mongo.Pipeline{{{Key: "$project", Value: bson.D{{Key: "now", Value: "$$NOW"}}}},
			{{Key: "$lookup", Value: bson.D{{Key: "from", Value: crowdName}, {Key: "pipeline", Value: mongo.Pipeline{{{Key: "$match", Value: filter}}, {{Key: "$count", Value: "n"}}}}, {Key: "as", Value: "docs"}}}}})
		if err != nil {
			return err
		}
		return cursor.All(ctx, &got)
	})
	if !ok || len(got) != 1 {
		return 0, now, false
	}
	if len(got[0].Docs) == 1 {
		found = got[0].Docs[0].N
	}
	return found, got[0].Now, true
}
