package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// set compares a replica set of three servers on this machine with one of a single server, in one run: durable single inserts, how far the
// secondaries are behind at half of that rate, and when what expires at one moment is gone on all three.
type set struct{ next atomic.Int64 }

const setMembers = 3

func (w *set) prepare(context.Context, *bench) error { return nil }

func (w *set) measure(ctx context.Context, b *bench) (err error) {
	alone, err := w.inserts(ctx, b, b.target)
	if err != nil {
		return err
	}
	if err := b.tell("-alone", alone); err != nil {
		return err
	}
	t, err := startSet(ctx, b.settings)
	defer func() { err = errors.Join(err, t.close()) }()
	if err != nil {
		return err
	}
	three, err := w.inserts(ctx, b, t.target)
	if err != nil {
		return err
	}
	three["rate_per_alone"], three["server_per_alone"] = three["ops_s"]/alone["ops_s"], three["server_us"]/alone["server_us"]
	if err := b.tell("-inserts", three); err != nil {
		return err
	}
	if err := w.lag(ctx, b, t, three["ops_s"]/2); err != nil {
		return err
	}
	for _, events := range []string{"documents", "none"} {
		if err := w.expiry(ctx, b, t, events); err != nil {
			return err
		}
	}
	return nil
}

// inserts are acknowledged when they are on disk, here or on a majority.
func (w *set) inserts(ctx context.Context, b *bench, t *target) (metrics, error) {
	coll := t.client.Database(b.database).Collection("single", options.Collection().SetWriteConcern(writeconcern.Majority()))
	l := b.loop()
	l.target = t
	seen, err := l.run(ctx, insertOne(coll, &w.next))
	if err != nil {
		return nil, err
	}
	return seen.metrics(), nil
}

// lag inserts at a fixed rate. Now and then a document is asked for at a secondary as soon as it is acknowledged, which waits until it has it.
func (w *set) lag(ctx context.Context, b *bench, t *servers, rate float64) error {
	coll := t.client.Database(b.database).Collection("single", options.Collection().SetWriteConcern(writeconcern.Majority()))
	work, stop := context.WithTimeout(ctx, b.length)
	defer stop()
	var mu sync.Mutex // guards behind
	var behind histogram
	m := t.meter()
	probes := int64(max(1, rate/lagProbes))
	open := openLoop{rate: rate}
	secondaries := t.secondaries(ctx)
	err := open.run(work, func(n int64) func(context.Context) error {
		id := w.next.Add(1) - 1
		return func(ctx context.Context) error {
			session, err := t.client.StartSession()
			if err != nil {
				return err
			}
			defer session.EndSession(ctx)
			if err := insertNth(coll, id)(mongo.NewSessionContext(ctx, session), dice(int(n))); err != nil || n%probes > 0 {
				return err
			}
			begin := time.Now()
			find := bson.D{{Key: "find", Value: "single"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: idOf(id)}}},
				{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: session.OperationTime()}}}}
			if err := secondaries[rand.IntN(len(secondaries))].Database(b.database).RunCommand(ctx, find).Err(); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			behind.add(time.Since(begin))
			return nil
		}
	}, func(time.Time, time.Time) {})
	if err != nil {
		return err
	}
	u := m.stop()
	out := metrics{"ops_s": rate, "late": float64(open.late.Load()), "lag_n": float64(behind.n)}
	behind.into(out, "lag_")
	u.into(out, 0)
	return b.tell("-lag", out)
}

// lagProbes is how many documents a second are asked for.
const lagProbes = 200

// expiry lets many documents expire at one moment, and looks when the members have none of them any more by their own count. events is what the
// oplog tells of them.
func (w *set) expiry(ctx context.Context, b *bench, t *servers, events string) error {
	name := "ttl-" + events
	coll := t.client.Database(b.database).Collection(name)
	create := bson.D{{Key: "create", Value: name}, {Key: "expirationEvents", Value: events}}
	if err := t.client.Database(b.database).RunCommand(ctx, create).Err(); err != nil {
		return err
	}
	if err := createTTL(ctx, coll, "at", ttlOfExpiry, b.hide); err != nil {
		return err
	}
	lead := b.lead
	if lead == 0 {
		lead = time.Duration(float64(b.expiryDocs)/loadRate*float64(time.Second)) + settleTime
	}
	deadline := time.Now().Add(lead).Truncate(time.Millisecond)
	begin := time.Now()
	l := loading{bench: b, coll: coll, to: int64(b.expiryDocs), at: deadline.Add(-ttlOfExpiry)}
	if _, err := l.run(ctx); err != nil {
		return err
	}
	out := metrics{"load_docs_s": float64(b.expiryDocs) / time.Since(begin).Seconds()}
	if left := time.Until(deadline); left < baselineTime {
		return fmt.Errorf("loading took until %v before the deadline: give a longer -lead than %v", left, lead)
	}
	for i, own := range t.direct {
		for { // one of three may be behind what a majority has
			size, err := w.size(ctx, b, own, name)
			if err == nil && size > 0 {
				break
			}
			if err != nil || time.Now().After(deadline) {
				return errors.Join(err, fmt.Errorf("member %d has no documents before the deadline", i))
			}
			pause(ctx, pollInterval)
		}
	}
	pause(ctx, time.Until(deadline))
	m := t.meter()
	for i, own := range t.direct {
		for {
			size, err := w.size(ctx, b, own, name)
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			if time.Since(deadline) > expiryLimit {
				return fmt.Errorf("member %d still has %d bytes of them", i, size)
			}
			pause(ctx, pollInterval/4)
		}
	}
	out["gone_ms"] = millis(time.Since(deadline))
	m.stop().into(out, int64(b.expiryDocs))
	return b.tell("-expiry-"+events, out)
}

func (w *set) size(ctx context.Context, b *bench, own *mongo.Client, coll string) (int64, error) {
	var stats struct{ Size int64 }
	err := own.Database(b.database).RunCommand(ctx, bson.D{{Key: "collStats", Value: coll}}).Decode(&stats)
	return stats.Size, err
}

// servers are a replica set that this program has started.
type servers struct {
	*target
	own    []*ownServer
	direct []*mongo.Client // of each member alone
}

func startSet(ctx context.Context, s *settings) (t *servers, err error) {
	t = &servers{target: &target{}}
	var hosts []string
	list := bson.A{}
	for i := range setMembers {
		own, err := startOwn(ctx, &settings{ebb: s.ebb, serve: strings.TrimSpace(s.serve + " --replSet set")}, true)
		if err != nil {
			return t, err
		}
		t.own, t.pids = append(t.own, own), append(t.pids, own.PID())
		client, err := mongo.Connect(options.Client().ApplyURI(own.URI("directConnection=true&readPreference=secondaryPreferred")))
		if err != nil {
			return t, err
		}
		t.direct = append(t.direct, client)
		hosts = append(hosts, own.Addr)
		list = append(list, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: own.Addr}})
	}
	t.data = filepath.Join(t.own[0].folder, "data")
	initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{{Key: "_id", Value: "set"}, {Key: "members", Value: list}}}}
	if err := t.direct[0].Database("admin").RunCommand(ctx, initiate).Err(); err != nil {
		return t, fmt.Errorf("begin the set: %w", err)
	}
	return t, t.connect(ctx, "mongodb://"+strings.Join(hosts, ",")+"/?replicaSet=set")
}

// secondaries are clients of those that are no primary now.
func (t *servers) secondaries(ctx context.Context) (out []*mongo.Client) {
	for _, own := range t.direct {
		var hello struct{ Secondary bool }
		if err := own.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err == nil && hello.Secondary {
			out = append(out, own)
		}
	}
	return out
}

func (t *servers) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	for _, client := range t.direct {
		err = errors.Join(err, client.Disconnect(ctx))
	}
	err = errors.Join(err, t.target.close())
	for _, own := range t.own {
		err = errors.Join(err, own.stop())
	}
	return err
}
