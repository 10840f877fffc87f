package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// rule is the TTL index on dates.
type rule struct {
	there   bool
	seconds int32
	hides   bool
	down    bool
}

func (r rule) String() string {
	if !r.there {
		return "no rule"
	}
	return fmt.Sprintf("%d s (hides: %t, descending: %t)", r.seconds, r.hides, r.down)
}

// expires says whether the document has expired by the rule at a moment.
func (r rule) expires(d mortalDoc, at time.Time) bool {
	return r.there && !d.D.IsZero() && !at.Before(d.D.Add(time.Duration(r.seconds)*time.Second))
}

// ofFlooded is the rule of a collection whose rule does not change.
var ofFlooded = rule{there: true, seconds: shortest, hides: true}

// times makes, changes and drops TTL indexes.
type times struct {
	random  *rand.Rand
	now     rule
	next    *rule // sent and not answered
	asked   time.Time
	changes int
	refused error
}

// of is the rule of a collection that readers have to mind; that on _ts is in the writers' books.
func (r *times) of(coll string) rule {
	switch coll {
	case dated:
		return r.now
	case flooded:
		return ofFlooded
	}
	return rule{}
}

func (r *times) run(ctx context.Context, db *mongo.Database) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(r.random.IntN(200)) * time.Millisecond)
		if err := r.change(ctx, db); err != nil {
			if isRefusal(err) {
				r.refused = err
			}
			return
		}
	}
}

func (r *times) change(ctx context.Context, db *mongo.Database) (err error) {
	seconds := int32(shortest + r.random.IntN(longest-shortest+1))
	if r.random.IntN(4) == 0 {
		return modify(ctx, db, sliding, "ts", bson.E{Key: "expireAfterSeconds", Value: seconds})
	}
	next := r.now
	r.asked = time.Now()
	switch {
	case !r.now.there:
		next = rule{there: true, seconds: seconds, hides: r.random.IntN(2) == 0, down: r.random.IntN(3) == 0}
		r.next = &next
		err = create(ctx, db.Collection(dated), next)
	case r.random.IntN(3) == 0:
		next = rule{}
		r.next = &next
		err = db.Collection(dated).Indexes().DropOne(ctx, "d")
	default:
		next.seconds, next.hides = seconds, r.random.IntN(2) == 0
		r.next = &next
		err = modify(ctx, db, dated, "d", bson.E{Key: "expireAfterSeconds", Value: seconds}, bson.E{Key: "hideExpired", Value: next.hides})
	}
	if err == nil {
		r.now, r.next = next, nil
		r.changes++
	}
	return err
}

// create makes the index with hideExpired, which the driver does not know.
func create(ctx context.Context, c *mongo.Collection, r rule) error {
	direction := 1
	if r.down {
		direction = -1
	}
	spec := bson.D{{Key: "key", Value: bson.D{{Key: "d", Value: direction}}}, {Key: "name", Value: "d"}, {Key: "expireAfterSeconds", Value: r.seconds}, {Key: "hideExpired", Value: r.hides}}
	return c.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: c.Name()}, {Key: "indexes", Value: bson.A{spec}}}, options.RunCmd()).Err()
}

func modify(ctx context.Context, db *mongo.Database, coll, index string, changes ...bson.E) error {
	what := append(bson.D{{Key: "name", Value: index}}, changes...)
	return db.RunCommand(ctx, bson.D{{Key: "collMod", Value: coll}, {Key: "index", Value: what}}).Err()
}

// settle looks which rule there is after a restart: the last that was acknowledged, or the one that was under way.
func (r *times) settle(t *testing.T, db *mongo.Database) {
	t.Helper()
	cursor, err := db.Collection(dated).Indexes().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found rule
	for cursor.Next(t.Context()) {
		var ix struct {
			Name               string
			Key                bson.D
			ExpireAfterSeconds int32
			HideExpired        bool
		}
		if err := cursor.Decode(&ix); err != nil {
			t.Fatal(err)
		}
		if ix.Name == "d" {
			found = rule{there: true, seconds: ix.ExpireAfterSeconds, hides: ix.HideExpired, down: fmt.Sprint(ix.Key[0].Value) == "-1"}
		}
	}
	if found != r.now && (r.next == nil || found != *r.next) {
		t.Errorf("the rule is %v, not %v (%v)", found, r.now, r.next)
	}
	r.now, r.next = found, nil
}
