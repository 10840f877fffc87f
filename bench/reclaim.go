package main

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// reclaim asks the server how far it has come with deleting what expired in one collection. Of a server that does not
// know ebbTTL it looks at the documents instead.
type reclaim struct {
	target *target
	coll   *mongo.Collection
	field  string // the date of the TTL index,
	after  time.Duration
	stay   int64 // documents that do not expire
	// dated finds those that do, where others stay; empty where none does.
	dated bson.D
}

// reclaimStatus is how far a server says that it has come.
type reclaimStatus struct {
	lag     time.Duration // for how long the oldest document has been stored past its deadline
	backlog int64         // how many are
	dead    int64         // deleted documents whose index entries still wait to be cleaned away
}

func (r *reclaim) status(ctx context.Context) (s reclaimStatus, err error) {
	if !r.target.ebbTTL {
		s.lag, err = r.lagOfOldest(ctx)
		return s, err
	}
	var reply struct {
		Indexes []struct{ LagMillis, Backlog, DeadEntries int64 }
	}
	if err := r.coll.Database().RunCommand(ctx, bson.D{{Key: "ebbTTL", Value: r.coll.Name()}}).Decode(&reply); err != nil {
		return s, fmt.Errorf("ebbTTL: %w", err)
	}
	for _, index := range reply.Indexes {
		s.lag = max(s.lag, time.Duration(index.LagMillis)*time.Millisecond)
		s.backlog += index.Backlog
		s.dead += index.DeadEntries
	}
	return s, nil
}

func (r *reclaim) lagOfOldest(ctx context.Context) (time.Duration, error) {
	oldest := options.FindOne().SetSort(bson.D{{Key: r.field, Value: 1}})
	doc, err := r.coll.FindOne(ctx, bson.D{}, oldest).Raw()
	if err == mongo.ErrNoDocuments {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return max(0, time.Since(doc.Lookup(r.field).Time().Add(r.after))), nil
}

// deleted counts what the server's TTL monitor has deleted since it started; ok is false where it does not tell. It asks
// for as little as it can, since it asks often.
func (r *reclaim) deleted(ctx context.Context) (n int64, ok bool, err error) {
	ask := bson.D{{Key: "serverStatus", Value: 1}}
	for _, section := range []string{"asserts", "catalogStats", "connections", "extra_info", "globalLock", "locks", "network", "opLatencies",
		"opcounters", "pebble", "repl", "security", "storageEngine", "tcmalloc", "transactions", "mem", "wiredTiger"} {
		ask = append(ask, bson.E{Key: section, Value: 0})
	}
	reply, err := r.coll.Database().RunCommand(ctx, ask).Raw()
	if err != nil {
		return 0, false, fmt.Errorf("serverStatus: %w", err)
	}
	v, err := reply.LookupErr("metrics", "ttl", "deletedDocuments")
	if err != nil {
		return 0, false, nil
	}
	n, ok = v.AsInt64OK()
	return n, ok, nil
}

// gone says whether nothing is left of so many documents: the server has deleted as many since before, has no backlog, and
// none is found.
func (r *reclaim) gone(ctx context.Context, before, documents int64) (bool, error) {
	n, ok, err := r.deleted(ctx)
	if err != nil || ok && n-before < documents {
		return false, err
	}
	if r.target.ebbTTL {
		if s, err := r.status(ctx); err != nil || s.backlog > 0 {
			return false, err
		}
		var stats struct{ Size int64 }
		if err := r.coll.Database().RunCommand(ctx, bson.D{{Key: "collStats", Value: r.coll.Name()}}).Decode(&stats); err != nil || r.stay == 0 && stats.Size > 0 {
			return false, err
		}
	}
	left, err := r.coll.CountDocuments(ctx, r.dated)
	return left == 0, err
}
