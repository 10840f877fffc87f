package isolation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/internal/register"
)

const (
	registers = "registers" // documents {_id, v}
	// registerKeys are in use at one time, and each for registerCalls: to find an order of many calls takes long.
	registerKeys  = 3
	registerCalls = 60
	checkLimit    = time.Minute // of one round
)

// TestLinearizable: reads and writes of single documents, in transactions and outside of them, with and without a kill in the middle, can
// be put into one order for each document, in which none stands outside of the time of its call.
func TestLinearizable(t *testing.T) {
	m := startMember(t, binary.Build(t))
	random := rand.New(rand.NewPCG(chosenSeed(t), 0))
	db := m.connect(t, true)
	own := m.connectAll(t)
	sum := counts{}
	for end, round := time.Now().Add(*duration), 1; time.Now().Before(end); round++ {
		w := &registry{round: round, begin: time.Now()}
		length := min(roundLength, time.Until(end))
		trouble := m.failNowAndThen
		if round%2 == 1 {
			trouble = m.killOnce
		}
		var all []*registrar
		var work []func(context.Context)
		for i := range *clients {
			r := &registrar{registry: w, number: i, random: rand.New(rand.NewPCG(*seed, uint64(round)<<16+uint64(i)+1)), coll: own[i].Collection(registers)}
			all = append(all, r)
			work = append(work, r.run)
		}
		runFor(t, length, append(work, func(ctx context.Context) { trouble(ctx, t, random, length) })...)

		var history []porcupine.Operation
		for _, r := range all {
			history = append(history, r.history...)
			for _, p := range r.problems {
				t.Errorf("client %d: %s", r.number, p)
			}
		}
		report := register.Check(history, checkLimit)
		for _, text := range report.Wrong {
			t.Errorf("round %d: %s", round, text)
		}
		sum["documents in order"] += report.Ordered
		sum["documents of which no order was found in time"] += report.Undecided
		for _, o := range history {
			sum["calls: "+o.Input.(register.Call).Kind.String()]++
			if o.Return == register.Never {
				sum["calls of unknown outcome"]++
			}
		}
		if report.Ordered == 0 {
			t.Error("nothing was checked")
		}
		if round == 1 && len(register.Check(register.Spoil(history), checkLimit).Wrong) == 0 {
			t.Error("a read of what nobody wrote was taken for good")
		}
		if _, err := db.Collection(registers).DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/isolation -run '^%s$' -v -args -duration %v -seed %d\nthe server's log ends with:\n%s", t.Name(), *duration, *seed, m.log())
		}
	}
	t.Logf("all in order:\n%s", sum)
}

// call is what is asked for, and how.
type call struct {
	register.Call
	inTxn     bool
	readLevel string
}

// registry is what the clients of one round share.
type registry struct {
	round int
	begin time.Time
	calls [registerKeys]atomic.Int64
	value atomic.Int64
}

func (r *registry) now() int64 { return int64(time.Since(r.begin)) }

func (r *registry) choose(random *rand.Rand) string {
	i := random.IntN(registerKeys)
	return fmt.Sprintf("%d-%d-%d", r.round, i, r.calls[i].Add(1)/registerCalls)
}

// registrar does one call after the other.
type registrar struct {
	*registry
	number   int
	random   *rand.Rand
	coll     *mongo.Collection
	known    map[string]int64 // values as they were seen last
	history  []porcupine.Operation
	problems []string
}

func (r *registrar) run(ctx context.Context) {
	calls := context.WithoutCancel(ctx)
	r.known = map[string]int64{}
	for ctx.Err() == nil && len(r.problems) == 0 {
		in := call{Call: register.Call{Key: r.choose(r.random), Kind: register.Kind(r.random.IntN(3))}, inTxn: r.random.IntN(3) == 0,
			readLevel: []string{"majority", "linearizable"}[r.random.IntN(2)]}
		if in.Kind != register.Read {
			in.Value = r.value.Add(1)
		}
		in.Old = r.known[in.Key]
		in.About = fmt.Sprintf("in a transaction: %t, %s", in.inTxn, in.readLevel)
		begin := r.now()
		out, err := r.do(calls, in)
		switch {
		case err == nil:
			out.Known = true
			r.note(in, out)
		case errors.Is(err, errUndone): // as if it had not been
			continue
		case !mongo.IsNetworkError(err) && !isInjected(err):
			r.problems = append(r.problems, fmt.Sprintf("%+v: %v", in, err))
			return
		case in.Kind == register.Read:
			continue
		}
		r.history = append(r.history, register.Operation(r.number, in.Call, begin, out, r.now()))
	}
}

func (r *registrar) note(in call, out register.Answer) {
	switch {
	case in.Kind == register.Read:
		r.known[in.Key] = out.Value
	case in.Kind == register.Write, out.Done:
		r.known[in.Key] = in.Value
	default:
		delete(r.known, in.Key)
	}
}

// errUndone is what a transaction ends with that has done nothing.
var errUndone = errors.New("the transaction was aborted")

func (r *registrar) do(ctx context.Context, in call) (out register.Answer, err error) {
	if !in.inTxn {
		return r.once(ctx, in, r.coll.Clone(options.Collection().SetReadConcern(&readconcern.ReadConcern{Level: in.readLevel})))
	}
	session, err := r.coll.Database().Client().StartSession()
	if err != nil {
		return out, err
	}
	defer session.EndSession(ctx)
	if err := session.StartTransaction(options.Transaction().SetReadConcern(readconcern.Snapshot())); err != nil {
		return out, err
	}
	if out, err = r.inTransaction(mongo.NewSessionContext(ctx, session), in); err != nil {
		_ = session.AbortTransaction(ctx) // the server may have done so by itself
		if hasLabel(err, transient) || isInjected(err) {
			return out, errUndone
		}
		return out, err
	}
	for range commitAttempts {
		if err = session.CommitTransaction(ctx); err == nil || !hasLabel(err, unknownCommit) {
			break
		}
	}
	if err != nil && hasLabel(err, transient) {
		return out, errUndone
	}
	return out, err
}

// once is a call in one command.
func (r *registrar) once(ctx context.Context, in call, coll *mongo.Collection) (out register.Answer, err error) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: in.Value}}}}
	id := bson.D{{Key: "_id", Value: in.Key}}
	switch {
	case in.Kind == register.Read:
		out.Value, err = r.read(ctx, in.Key, coll)
	case in.Kind == register.Write:
		_, err = coll.UpdateOne(ctx, id, set, options.UpdateOne().SetUpsert(true))
	case in.Old == 0: // the document must not be there
		if _, err = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: in.Key}, {Key: "v", Value: in.Value}}); mongo.IsDuplicateKeyError(err) {
			return out, nil
		}
		out.Done = err == nil
	default:
		err = coll.FindOneAndUpdate(ctx, append(id, bson.E{Key: "v", Value: in.Old}), set).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return out, nil
		}
		out.Done = err == nil
	}
	return out, err
}

func (r *registrar) read(ctx context.Context, key string, coll *mongo.Collection) (int64, error) {
	var d struct{ V int64 }
	if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: key}}).Decode(&d); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return 0, err
	}
	return d.V, nil
}

// inTransaction has a swap read what is there, and write something else.
func (r *registrar) inTransaction(ctx context.Context, in call) (out register.Answer, err error) {
	if in.Kind != register.Swap {
		return r.once(ctx, in, r.coll)
	}
	is, err := r.read(ctx, in.Key, r.coll)
	if err != nil || is != in.Old {
		return out, err
	}
	out.Done = true
	_, err = r.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: in.Key}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: in.Value}}}}, options.UpdateOne().SetUpsert(true))
	return out, err
}
