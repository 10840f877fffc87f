package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/ebbdb/ebb/e2e/histories"
	"github.com/ebbdb/ebb/e2e/isolation/anomaly"
)

// Histories of what clients have read and written are checked, and forgotten, after each round, so that neither the checks nor what they need
// grows with the time that the set is disturbed.
const (
	roundLength = 20 * time.Second
	// listKeys are those of a round, until each has so many values.
	listKeys   = 4
	listValues = 200
	// registrars and appenders are how many clients there are of each.
	registrars = 4
	appenders  = 4
	thinkTime  = 20 * time.Millisecond
)

// round is what the clients of one round share.
type round struct {
	*clients
	number int
	begin  time.Time
	stop   atomic.Bool
	value  atomic.Int64

	mu    sync.Mutex // guards lists
	lists []anomaly.Txn
}

// histories runs one round after the other.
func (c *clients) histories() {
	c.found = map[string]int{}
	o := histories.Options{Limit: limit, Think: thinkTime, Count: c.add, Unknown: func(err error) bool { return isFull(err) || !isTold(err) },
		Collection: c.db.Collection("registers", options.Collection().SetReadConcern(readconcern.Linearizable()).SetWriteConcern(writeconcern.Majority()))}
	for n := 0; !c.over.Load() && !c.t.Failed(); n++ {
		r, registers := &round{clients: c, number: n, begin: time.Now()}, histories.Begin(c.t, o, n)
		var crew sync.WaitGroup
		for i := range registrars {
			crew.Go(func() { registers.Client(i) })
		}
		for i := range appenders {
			crew.Go(func() { r.appender(i) })
		}
		for time.Since(r.begin) < roundLength && !c.over.Load() {
			pause(c.t.Context(), 100*time.Millisecond)
		}
		r.stop.Store(true)
		registers.Stop()
		crew.Wait()
		registers.Check()
		r.check()
	}
}

func (r *round) now() int64 { return int64(time.Since(r.begin)) }

// isTold says whether a server has told of the error, and not the network, or a server that ceased to be primary.
func isTold(err error) bool {
	var e mongo.ServerError
	if c, ok := errors.AsType[mongo.CommandError](err); ok && c.Code == 0 { // the driver's own: a server's have a code
		return false
	}
	return errors.As(err, &e) && !mongo.IsNetworkError(err) && !mongo.IsTimeout(err) && !slices.ContainsFunc([]int{91, 189, 10107, 11600, 11602, 13435, 13436}, e.HasErrorCode)
}

func isFull(err error) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(outOfDiskSpace)
}

// appender appends to lists, and reads them, in transactions.
func (r *round) appender(number int) {
	session, err := r.client.StartSession()
	if err != nil {
		r.t.Error(err)
		return
	}
	defer session.EndSession(context.Background())
	for n := 0; !r.stop.Load() && !r.t.Failed(); n++ {
		txn := anomaly.Txn{Name: fmt.Sprintf("%d.%d.%d", r.number, number, n), Start: r.now(), End: anomaly.Never}
		ctx, cancel := context.WithTimeout(r.t.Context(), limit)
		txn.Outcome, err = r.transact(ctx, session, &txn)
		cancel()
		if txn.Outcome == anomaly.Committed {
			txn.End = r.now()
		}
		if err != nil && isTold(err) && !isFull(err) && !hasLabel(err, "TransientTransactionError") {
			r.t.Errorf("a transaction that appends: %v", err)
			return
		}
		r.count("transactions " + txn.Outcome.String())
		r.mu.Lock()
		r.lists = append(r.lists, txn)
		r.mu.Unlock()
		pause(r.t.Context(), rand.N(2*thinkTime))
	}
}

func hasLabel(err error, label string) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorLabel(label)
}

func (r *round) transact(ctx context.Context, session *mongo.Session, txn *anomaly.Txn) (anomaly.Outcome, error) {
	if err := session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot()).SetWriteConcern(writeconcern.Majority())); err != nil {
		return anomaly.Aborted, err
	}
	in := mongo.NewSessionContext(ctx, session)
	for range 1 + rand.IntN(3) {
		op, err := r.listOp(in)
		if err != nil {
			_ = session.AbortTransaction(ctx) // the server may have done so by itself
			return anomaly.Aborted, err
		}
		txn.Ops = append(txn.Ops, op)
	}
	for {
		err := session.CommitTransaction(ctx)
		switch {
		case err == nil:
			return anomaly.Committed, nil
		case hasLabel(err, "TransientTransactionError"):
			return anomaly.Aborted, err
		case ctx.Err() != nil || !hasLabel(err, "UnknownTransactionCommitResult") && isTold(err):
			return anomaly.Unknown, err
		}
	}
}

func (r *round) listOp(ctx context.Context) (anomaly.Op, error) {
	coll := r.db.Collection("lists")
	key := fmt.Sprintf("%d-%d-%d", r.number, rand.IntN(listKeys), r.value.Load()/(listKeys*listValues))
	if rand.IntN(2) == 0 {
		var d struct{ List []int64 }
		if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: key}}).Decode(&d); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return anomaly.Op{}, err
		}
		return anomaly.Read(key, d.List), nil
	}
	value := r.value.Add(1)
	_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: key}}, bson.D{{Key: "$push", Value: bson.D{{Key: "list", Value: value}}}}, options.UpdateOne().SetUpsert(true))
	return anomaly.Append(key, value), err
}

// check checks what the round has seen, after a last look at all lists, and removes them.
func (r *round) check() {
	t := r.t
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	last := anomaly.Txn{Name: fmt.Sprintf("the last read of round %d", r.number), Start: r.now()}
	// Those of rounds before are still there where they could not be removed.
	own := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: fmt.Sprintf("%d-", r.number)}, {Key: "$lt", Value: fmt.Sprintf("%d.", r.number)}}}}
	cursor, err := r.db.Collection("lists", options.Collection().SetReadConcern(readconcern.Linearizable())).Find(ctx, own)
	if err != nil {
		t.Error("look at the lists: ", err)
		return
	}
	var found []struct {
		ID   string `bson:"_id"`
		List []int64
	}
	if err := cursor.All(ctx, &found); err != nil {
		t.Error("look at the lists: ", err)
		return
	}
	for _, d := range found {
		last.Ops = append(last.Ops, anomaly.Read(d.ID, d.List))
	}
	last.End = r.now()
	report := anomaly.Check(append(r.lists, last))
	for _, a := range report.Anomalies {
		t.Errorf("round %d: %v", r.number, a)
	}
	r.add("groups of transactions with write skew, which is allowed", report.Skews)
	for _, coll := range []string{"lists", "registers"} {
		if err := whileFull(ctx, func() error { _, err := r.db.Collection(coll).DeleteMany(ctx, bson.D{}); return err }); err != nil && isTold(err) {
			t.Error("remove the lists: ", err)
		}
	}
}

// add counts what has happened in all rounds.
func (c *clients) add(what string, n int) {
	c.counting.Lock()
	defer c.counting.Unlock()
	c.found[what] += n
}

func (c *clients) count(what string) { c.add(what, 1) }
