// Package histories has clients read and write single documents of a server, and checks whether there is an order of that in which none stands
// outside of the time of its call. It does not know what the server is, nor what befalls it.
package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/register"
)

const (
	// keys are in use at one time, and each for keyCalls.
	keys       = 3
	keyCalls   = 60
	checkLimit = 30 * time.Second // of one document
)

// Options of the rounds. All but Ended are required.
type Options struct {
	// Collection has the documents. What it is read and written with has to be linearizable.
	Collection *mongo.Collection
	// Limit is how long one call may take, and Think how long a client pauses between two, on average.
	Limit, Think time.Duration
	// Unknown says whether nobody knows what became of a call that failed so. Any other error is one of the test.
	Unknown func(error) bool
	// Ended, unless nil, is told of each call when it has ended.
	Ended func(began time.Time, err error)
	// Count counts what happens.
	Count func(what string, n int)
}

// Round is what clients do for some time. Histories are checked, and forgotten, after each round, so that neither the checks nor what they need grows
// with time.
type Round struct {
	t      testing.TB
	o      Options
	number int
	begin  time.Time
	stop   atomic.Bool
	calls  [keys]atomic.Int64
	value  atomic.Int64

	mu      sync.Mutex // guards history
	history []porcupine.Operation
}

// Begin begins a round. Each has a number of its own.
func Begin(t testing.TB, o Options, number int) *Round {
	return &Round{t: t, o: o, number: number, begin: time.Now()}
}

// Stop has all clients end.
func (r *Round) Stop() { r.stop.Store(true) }

func (r *Round) now() int64 { return int64(time.Since(r.begin)) }

// Client reads and writes until the round is stopped. Each has a number of its own.
func (r *Round) Client(number int) {
	known := map[string]int64{}
	for !r.stop.Load() && !r.t.Failed() {
		i := rand.IntN(keys)
		in := register.Call{Kind: register.Kind(rand.IntN(3)), Key: fmt.Sprintf("%d-%d-%d", r.number, i, r.calls[i].Add(1)/keyCalls)}
		if in.Kind != register.Read {
			in.Value = r.value.Add(1)
		}
		if in.Old = known[in.Key]; in.Kind == register.Swap && in.Old == 0 {
			in.Kind = register.Write
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), r.o.Limit)
		begin := r.now()
		out, err := r.call(ctx, in)
		end := r.now()
		cancel()
		if r.o.Ended != nil {
			r.o.Ended(r.begin.Add(time.Duration(begin)), err)
		}
		switch {
		case err == nil:
			out.Known = true
		case r.o.Unknown(err):
			out = register.Answer{}
		default:
			r.t.Errorf("%v of a register: %v", in.Kind, err)
			return
		}
		delete(known, in.Key)
		switch {
		case !out.Known:
			r.o.Count("calls of unknown outcome", 1)
			if in.Kind == register.Read {
				continue
			}
		case in.Kind == register.Read:
			known[in.Key] = out.Value
		case in.Kind == register.Write || out.Done:
			known[in.Key] = in.Value
		}
		r.mu.Lock()
		r.history = append(r.history, register.Operation(number, in, begin, out, end))
		r.mu.Unlock()
		select {
		case <-time.After(rand.N(2 * r.o.Think)):
		case <-r.t.Context().Done():
		}
	}
}

func (r *Round) call(ctx context.Context, in register.Call) (out register.Answer, err error) {
	id, set := bson.D{{Key: "_id", Value: in.Key}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: in.Value}}}}
	switch in.Kind {
	case register.Read:
		var d struct{ V int64 }
		if err = r.o.Collection.FindOne(ctx, id).Decode(&d); errors.Is(err, mongo.ErrNoDocuments) {
			err = nil
		}
		out.Value = d.V
	case register.Write:
		_, err = r.o.Collection.UpdateOne(ctx, id, set, options.UpdateOne().SetUpsert(true))
	default:
		err = r.o.Collection.FindOneAndUpdate(ctx, append(id, bson.E{Key: "v", Value: in.Old}), set).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return out, nil
		}
		out.Done = err == nil
	}
	return out, err
}

// Check checks what the round has seen, when all its clients have ended.
func (r *Round) Check() {
	r.mu.Lock()
	history := r.history
	r.mu.Unlock()
	report := register.Check(history, checkLimit)
	for _, text := range report.Wrong {
		r.t.Errorf("round %d: %s", r.number, text)
	}
	r.o.Count("rounds", 1)
	r.o.Count("registers in order", report.Ordered)
	r.o.Count("registers of which no order was found in time", report.Undecided)
	r.o.Count("calls of registers", len(history))
}
