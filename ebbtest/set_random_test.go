package ebbtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/ebbtest"
)

var (
	setSeeds = flag.Int("set-seeds", 3, "how many random runs of a set of three")
	setSeed  = flag.Uint64("set-seed", 0, "the seed of the first")
	setSteps = flag.Int("set-steps", 120, "how many steps each has")
)

// setRun is a random run of a set of three: one client writes, in order, while members lose power, contact and leadership, and the clock is turned.
// model is what has to be there.
type setRun struct {
	*set
	random  *rand.Rand
	hidden  map[int32]time.Time // documents of "h", which expire a minute after their last write, by their deadlines
	plain   map[int32]time.Time // documents of "p", which expire by a date
	sums    [8]int32            // documents of "s"
	away    int                 // the member that is cut off; -1: none
	indexed bool                // "s" has an index on n
	stale   bool                // sessions do not tell a member what they know
}

// TestSetRandom: see setRun. In the end all members have the same documents, what was acknowledged and has not expired is there, and their
// counters are right.
func TestSetRandom(t *testing.T) {
	seeds := *setSeeds
	if testing.Short() {
		seeds = 1
	}
	for i := range seeds {
		seed := *setSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("again: go test ./ebbtest -run TestSetRandom -args -set-seeds 1 -set-seed %d", seed)
				}
			}()
			if err := randomSet(t, seed, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSetRandomFindsStaleReads: a session that does not hand back what it was told sees what it has seen expired, and is found out.
func TestSetRandomFindsStaleReads(t *testing.T) {
	for seed := range uint64(20) {
		if err := randomSet(t, seed, true); err != nil {
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Error("20 runs have not seen that reads are stale")
}

// randomSet runs one. stale plants a fault into how it looks at members.
func randomSet(t *testing.T, seed uint64, stale bool) error {
	t.Helper()
	r := &setRun{stale: stale, set: startSet(t), random: rand.New(rand.NewPCG(seed, 7)), hidden: map[int32]time.Time{}, plain: map[int32]time.Time{}, away: -1}
	db := r.client.Database("d")
	for coll, field := range map[string]string{"h": "_ts", "p": "at"} {
		if _, err := db.Collection(coll).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.M{field: 1}, Options: options.Index().SetExpireAfterSeconds(60)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range r.sums {
		if _, err := db.Collection("s").InsertOne(t.Context(), bson.M{"_id": i, "n": 0}); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		weight int
		run    func() error
	}{{10, r.writeHidden}, {5, r.removeHidden}, {8, r.writePlain}, {8, r.move}, {2, r.changeIndex}, {6, r.advance}, {8, r.look}, {2, r.step}, {2, r.crash}, {3, r.cut}}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	for n := range *setSteps {
		at := r.random.IntN(total)
		for i, s := range steps {
			if at -= s.weight; at < 0 {
				if err := s.run(); err != nil {
					return fmt.Errorf("step %d, of kind %d: %w", n, i, err)
				}
				break
			}
		}
	}
	r.check()
	return nil
}

func (r *setRun) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	return ctx, cancel
}

func (r *setRun) writeHidden() error {
	ctx, cancel := r.context()
	defer cancel()
	id := r.random.Int32N(30)
	_, err := r.client.Database("d").Collection("h").UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$set": bson.M{"x": r.random.IntN(1000)}}, options.UpdateOne().SetUpsert(true))
	r.hidden[id] = r.Clock.Now().Add(time.Minute)
	return err
}

func (r *setRun) removeHidden() error {
	ctx, cancel := r.context()
	defer cancel()
	id := r.random.Int32N(30)
	deadline, there := r.hidden[id]
	there = there && deadline.After(r.Clock.Now())
	delete(r.hidden, id)
	result, err := r.client.Database("d").Collection("h").DeleteOne(ctx, bson.M{"_id": id})
	if err == nil && (result.DeletedCount == 1) != there {
		err = fmt.Errorf("%d documents %d were deleted; it is there: %v", result.DeletedCount, id, there)
	}
	return err
}

func (r *setRun) writePlain() error {
	ctx, cancel := r.context()
	defer cancel()
	id, at := r.random.Int32N(1<<30), r.Clock.Now().Add(time.Duration(r.random.IntN(120))*time.Second)
	r.plain[id] = at.Add(time.Minute)
	_, err := r.client.Database("d").Collection("p").InsertOne(ctx, bson.M{"_id": id, "at": at})
	return err
}

// move has a transaction move something from one to another.
func (r *setRun) move() error {
	ctx, cancel := r.context()
	defer cancel()
	from, to, n := r.random.IntN(len(r.sums)), r.random.IntN(len(r.sums)), r.random.Int32N(100)
	session, err := r.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(context.Background())
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		c := r.client.Database("d").Collection("s")
		_, err := c.UpdateByID(ctx, from, bson.M{"$inc": bson.M{"n": -n}})
		if err == nil {
			_, err = c.UpdateByID(ctx, to, bson.M{"$inc": bson.M{"n": n}})
		}
		return nil, err
	})
	r.sums[from] -= n
	r.sums[to] += n
	return err
}

// changeIndex makes an index, or drops it. That is no retryable write: where a primary that goes could not answer, it is done again.
func (r *setRun) changeIndex() error {
	ctx, cancel := r.context()
	defer cancel()
	indexes := r.client.Database("d").Collection("s").Indexes()
	r.indexed = !r.indexed
	for {
		var err error
		if r.indexed {
			_, err = indexes.CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"n": 1}})
		} else {
			err = indexes.DropOne(ctx, "n_1")
		}
		var e mongo.CommandError
		switch {
		case errors.As(err, &e) && e.Code == 27 && !r.indexed: // it is dropped
			return nil
		case mongo.IsNetworkError(err), errors.As(err, &e) && slices.Contains([]int32{91, 189, 10107, 11600, 11602, 13435}, e.Code):
			continue
		}
		return err
	}
}

func (r *setRun) advance() error {
	r.Clock.Advance(time.Duration(r.random.IntN(15_000)) * time.Millisecond)
	return nil
}

// step sets the clock a little ahead, which is trusted at once.
func (r *setRun) step() error {
	r.Clock.Step(time.Duration(r.random.IntN(2000)) * time.Millisecond)
	return nil
}

// look has a session look at the primary and then at any member that is not cut off: what is there has to be exactly what has not expired.
func (r *setRun) look() error {
	ctx, cancel := r.context()
	defer cancel()
	session, err := r.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(context.Background())
	if err := r.compare(mongo.NewSessionContext(ctx, session), r.client); err != nil {
		return fmt.Errorf("the primary: %w", err)
	}
	member := r.random.IntN(ebbtest.Members)
	if member == r.away {
		return nil
	}
	own, err := r.directs[member].StartSession()
	if err != nil {
		return err
	}
	defer own.EndSession(context.Background())
	if r.stale {
		return r.compare(ctx, r.directs[member])
	}
	known, err := bson.Marshal(bson.M{"$clusterTime": bson.Raw(session.ClusterTime()).Lookup("$clusterTime")})
	if err == nil {
		err = own.AdvanceClusterTime(known)
	}
	if err == nil {
		err = own.AdvanceOperationTime(session.OperationTime())
	}
	if err == nil {
		err = r.compare(mongo.NewSessionContext(ctx, own), r.directs[member])
	}
	if err != nil {
		return fmt.Errorf("member %d: %w", member, err)
	}
	return nil
}

func (r *setRun) compare(ctx context.Context, client *mongo.Client) error {
	now := r.Clock.Now()
	cursor, err := client.Database("d").Collection("h").Find(ctx, bson.M{}, options.Find().SetProjection(bson.M{"_id": 1}))
	if err != nil {
		return err
	}
	var docs []struct {
		ID int32 `bson:"_id"`
	}
	if err := cursor.All(ctx, &docs); err != nil {
		return err
	}
	seen := map[int32]bool{}
	for _, d := range docs {
		seen[d.ID] = true
		if deadline, ok := r.hidden[d.ID]; !ok || !deadline.After(now) {
			return fmt.Errorf("document %d is seen, whose deadline is %v of %v (%v)", d.ID, deadline, now, ok)
		}
	}
	for id, deadline := range r.hidden {
		if deadline.After(now) && !seen[id] {
			return fmt.Errorf("document %d is not seen, whose deadline is %v after now", id, deadline.Sub(now))
		}
	}
	return nil
}

// crash takes the power from a member, and gives it back.
func (r *setRun) crash() error {
	i := r.random.IntN(ebbtest.Members)
	if r.away >= 0 && i != r.away { // two that are gone are a majority
		return nil
	}
	r.Crash(i)
	if i == r.away {
		r.away = -1
	}
	r.Start(i)
	return nil
}

// cut isolates a member, or lets all reach one another again.
func (r *setRun) cut() error {
	if r.away >= 0 {
		r.Heal()
		r.away = -1
		return nil
	}
	r.away = r.random.IntN(ebbtest.Members)
	if r.random.IntN(2) == 0 {
		r.away = r.Primary()
	}
	r.Isolate(r.away)
	return nil
}

func (r *setRun) check() {
	t := r.t
	r.Heal()
	r.away = -1
	r.Settle()
	r.Advance(2 * time.Minute)
	now := r.Clock.Now()
	left := int64(0)
	for _, deadline := range r.plain {
		if deadline.After(now) {
			left++
		}
	}
	var hashes [ebbtest.Members]string
	for i := range ebbtest.Members {
		r.has(i, "h", 0, 0)
		r.has(i, "p", left, left)
		cursor, err := r.directs[i].Database("d").Collection("s").Find(t.Context(), bson.M{})
		if err != nil {
			t.Fatal(err)
		}
		var docs []struct {
			ID int `bson:"_id"`
			N  int32
		}
		if err := cursor.All(t.Context(), &docs); err != nil || len(docs) != len(r.sums) {
			t.Fatalf("member %d: %v %v", i, docs, err)
		}
		for _, d := range docs {
			if d.N != r.sums[d.ID] {
				t.Errorf("member %d: document %d has %d, want %d", i, d.ID, d.N, r.sums[d.ID])
			}
		}
		for _, coll := range []string{"h", "p", "s"} {
			var v struct {
				Valid    bool
				Warnings bson.A
			}
			if err := r.directs[i].Database("d").RunCommand(t.Context(), bson.D{{Key: "validate", Value: coll}, {Key: "full", Value: true}}).Decode(&v); err != nil || !v.Valid || len(v.Warnings) > 0 {
				t.Errorf("member %d, %s: %+v %v", i, coll, v, err)
			}
		}
		var h struct{ MD5 string }
		if err := r.directs[i].Database("d").RunCommand(t.Context(), bson.M{"dbHash": 1}).Decode(&h); err != nil {
			t.Fatal(err)
		}
		hashes[i] = h.MD5
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Errorf("the members have different documents: %v", hashes)
	}
}
