package tikv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/ebbdb/ebb/e2e/histories"
)

// work is clients that keep books of what they do.
type work struct {
	t      *testing.T
	client *mongo.Client
	db     *mongo.Database
	over   atomic.Bool
	crew   sync.WaitGroup
	times  times

	acknowledged [loadDocs]atomic.Int64
	unknown      [loadDocs]atomic.Int64 // failed, and may have happened
	failures     atomic.Int64
	begun        atomic.Int64 // transfers, each of which has a number
	expired      [len(ttls)]expiring
	crowd        crowd

	mu        sync.Mutex // guards all below
	transfers []int64    // that were acknowledged
	counts    map[string]int
}

const (
	chaosAccounts, chaosBalance = 20, 1000
	// transferrers, counters and registrars are how many clients there are of each.
	transferrers, counters, registrars = 3, 4, 4
	registerRound                      = 20 * time.Second
	thinks                             = 30 * time.Millisecond
	sumPause                           = 500 * time.Millisecond
	// callLimit is how long one operation may take, with all that its driver tries: longer than any disturbance.
	callLimit = 40 * time.Second
	// slow is what is told of, and of failures one in so many.
	slow, shownFailures = 15 * time.Second, 50
)

func beginWork(t *testing.T, client *mongo.Client) *work {
	t.Helper()
	w := &work{t: t, client: client, db: client.Database("chaos"), counts: map[string]int{}}
	ctx := t.Context()
	for i := range chaosAccounts {
		_, err := w.db.Collection("accounts").InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: int64(chaosBalance)}})
		noError(t, err)
	}
	for i := range loadDocs {
		_, err := w.db.Collection("counted").InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: int64(0)}})
		noError(t, err)
	}
	noError(t, w.db.CreateCollection(ctx, "ledger"))
	w.beginExpiry()
	w.beginCrowd()
	for range transferrers {
		w.crew.Go(w.transfer)
	}
	for i := range counters {
		w.crew.Go(func() { w.count(i) })
	}
	w.crew.Go(w.addUp)
	w.crew.Go(w.registers)
	for i := range w.expired {
		w.crew.Go(func() { w.expire(&w.expired[i]) })
	}
	w.crew.Go(func() { w.crowds(&w.crowd) })
	return w
}

func (w *work) hasBegun() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.transfers) < 10 {
		return errors.New("too few transfers")
	}
	return nil
}

func (w *work) end() {
	w.over.Store(true)
	w.crew.Wait()
}

func (w *work) note(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

func (w *work) think() { time.Sleep(rand.N(2 * thinks)) }

// do does one operation, and says whether it succeeded. An error that a client may not get fails the test.
func (w *work) do(what string, f func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	began := time.Now()
	err := f(ctx)
	w.times.note(began, err)
	if took := time.Since(began); took > slow {
		w.t.Logf("%s: %s took %v: %v", clockTime(time.Now()), what, took.Round(100*time.Millisecond), err)
	}
	if err == nil {
		w.note(what, 1)
		return true
	}
	w.note(what+", failed", 1)
	if n := w.failures.Add(1); n%shownFailures == 1 {
		w.t.Logf("%s: %s, the %d. failure: %v", clockTime(time.Now()), what, n, err)
	}
	if !isExpected(err) {
		w.t.Errorf("%s, after %v: %v", what, time.Since(began), err)
	}
	time.Sleep(10 * time.Millisecond)
	return false
}

// expectedCodes are what clients may be told while something is disturbed: what is not reached (6, 89, 91), that time is over (50, 262), that an
// operation or a transaction has ended with who had it (11600, 11602, 251, 43), or stood in another's way (112).
var expectedCodes = []int{6, 43, 50, 89, 91, 112, 251, 262, 11600, 11602}

// isExpected says whether an error tells of a disturbance: the network's, the driver's own, or one of those codes.
func isExpected(err error) bool {
	var e mongo.ServerError
	if !errors.As(err, &e) || mongo.IsNetworkError(err) || mongo.IsTimeout(err) {
		return !mongo.IsDuplicateKeyError(err)
	}
	if c, ok := errors.AsType[mongo.CommandError](err); ok && c.Code == 0 { // the driver's own: a server's have a code
		return true
	}
	return slices.ContainsFunc(expectedCodes, e.HasErrorCode)
}

// transfer moves something from one account to another, and notes it beside them, in one transaction.
func (w *work) transfer() {
	accounts, ledger := w.db.Collection("accounts"), w.db.Collection("ledger")
	for !w.over.Load() {
		id := w.begun.Add(1)
		from, to, n := rand.IntN(chaosAccounts), rand.IntN(chaosAccounts), rand.Int64N(10)
		ok := w.do("transfers", func(ctx context.Context) error {
			session, err := w.client.StartSession()
			if err != nil {
				return err
			}
			defer session.EndSession(context.Background())
			_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
				if _, err := accounts.UpdateByID(ctx, from, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: -n}}}}); err != nil {
					return nil, err
				}
				if _, err := accounts.UpdateByID(ctx, to, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: n}}}}); err != nil {
					return nil, err
				}
				// Of a transaction that happens twice the second fails here.
				_, err := ledger.InsertOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "from", Value: from}, {Key: "to", Value: to}, {Key: "n", Value: n}})
				return nil, err
			})
			return err
		})
		if ok {
			w.mu.Lock()
			w.transfers = append(w.transfers, id)
			w.mu.Unlock()
		}
		w.think()
	}
}

// count adds 1 to documents by retryable writes, each client to those of its own.
func (w *work) count(number int) {
	docs := w.db.Collection("counted")
	for !w.over.Load() {
		i := number + counters*rand.IntN(loadDocs/counters)
		ok := w.do("counts", func(ctx context.Context) error {
			done, err := docs.UpdateByID(ctx, i, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int64(1)}}}})
			if err == nil && done.ModifiedCount != 1 {
				w.t.Errorf("a write is acknowledged as %+v", done)
			}
			return err
		})
		if ok {
			w.acknowledged[i].Add(1)
		} else {
			w.unknown[i].Add(1)
		}
		w.think()
	}
}

// addUp adds up the accounts: each state that anybody reads has the same sum.
func (w *work) addUp() {
	for !w.over.Load() {
		var sum []struct{ N int64 }
		ok := w.do("sums", func(ctx context.Context) error {
			cursor, err := w.db.Collection("accounts").Aggregate(ctx, mongo.Pipeline{{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: "$n"}}}}}}})
			if err != nil {
				return err
			}
			return cursor.All(ctx, &sum)
		})
		if ok && (len(sum) != 1 || sum[0].N != chaosAccounts*chaosBalance) {
			w.t.Errorf("the sum of all accounts is %v, want %d", sum, chaosAccounts*chaosBalance)
		}
		time.Sleep(sumPause)
	}
}

// registers runs one round after the other.
func (w *work) registers() {
	o := histories.Options{Limit: callLimit, Think: thinks, Count: w.note, Unknown: isExpected, Ended: w.times.note,
		Collection: w.db.Collection("registers", options.Collection().SetReadConcern(readconcern.Linearizable()).SetWriteConcern(writeconcern.Majority()))}
	for n := 0; !w.over.Load() && !w.t.Failed(); n++ {
		round := histories.Begin(w.t, o, n)
		var crew sync.WaitGroup
		for i := range registrars {
			crew.Go(func() { round.Client(i) })
		}
		for began := time.Now(); time.Since(began) < registerRound && !w.over.Load(); {
			time.Sleep(100 * time.Millisecond)
		}
		round.Stop()
		crew.Wait()
		round.Check()
		w.do("removals of registers", func(ctx context.Context) error {
			_, err := w.db.Collection("registers").DeleteMany(ctx, bson.D{})
			return err
		})
	}
}

// check looks at what is left when all is well again.
func (w *work) check(client *mongo.Client) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	db := client.Database("chaos")
	total, failed := int64(0), int64(0)
	for i := range loadDocs {
		var doc struct{ N int64 }
		eventually(t, "a counted document", func() error {
			return db.Collection("counted").FindOne(ctx, bson.D{{Key: "_id", Value: i}}).Decode(&doc)
		})
		low := w.acknowledged[i].Load()
		high := low + w.unknown[i].Load()
		if doc.N < low || doc.N > high {
			t.Errorf("document %d was counted %d times; %d were acknowledged, and of %d nothing is known", i, doc.N, low, high-low)
		}
		total, failed = total+low, failed+high-low
	}
	w.checkTransfers(db)
	for i := range w.expired {
		e := &w.expired[i]
		eventually(t, "what has expired in "+e.name, func() error {
			n, err := db.Collection(e.name).EstimatedDocumentCount(ctx)
			if err != nil || n != 0 {
				return fmt.Errorf("%d are there, %w", n, err)
			}
			return nil
		})
		t.Log(e.name, ": ", e.told())
	}
	t.Log(w.crowd.told())
	for _, name := range []string{"accounts", "ledger", "counted", "registers", crowdName, ttls[0].name, ttls[1].name, ttls[2].name} {
		var r struct {
			Valid            bool
			Errors, Warnings []string
		}
		if err := db.RunCommand(ctx, bson.D{{Key: "validate", Value: name}}).Decode(&r); err != nil || !r.Valid {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	t.Logf("of %d counts and %d that failed nothing is missing, nor of %d transfers", total, failed, len(w.transfers))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(w.counts)) {
		t.Logf("%8d %s", w.counts[what], what)
	}
	if w.counts["registers in order"] == 0 || w.counts["sums"] == 0 {
		t.Error("without registers and sums the run says nothing of them")
	}
}

// checkTransfers: each that was acknowledged is noted, and the accounts have what is noted.
func (w *work) checkTransfers(db *mongo.Database) {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	var noted []struct {
		ID       int64 `bson:"_id"`
		From, To int
		N        int64
	}
	cursor, err := db.Collection("ledger").Find(ctx, bson.D{})
	noError(t, err)
	noError(t, cursor.All(ctx, &noted))
	balances, there := map[int]int64{}, map[int64]bool{}
	for i := range chaosAccounts {
		balances[i] = chaosBalance
	}
	for _, n := range noted {
		balances[n.From] -= n.N
		balances[n.To] += n.N
		there[n.ID] = true
	}
	for _, id := range w.transfers {
		if !there[id] {
			t.Errorf("the transfer %d was acknowledged, and is not there", id)
		}
	}
	var accounts []struct {
		ID int `bson:"_id"`
		N  int64
	}
	cursor, err = db.Collection("accounts").Find(ctx, bson.D{})
	noError(t, err)
	noError(t, cursor.All(ctx, &accounts))
	if len(accounts) != chaosAccounts {
		t.Errorf("there are %d accounts, want %d", len(accounts), chaosAccounts)
	}
	for _, a := range accounts {
		if a.N != balances[a.ID] {
			t.Errorf("account %d has %d; by what was transferred it should have %d", a.ID, a.N, balances[a.ID])
		}
	}
}
