package isolation

import (
	"context"
	"errors"
	"fmt"
	"math"
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
		decided := 0
		for key, calls := range byKey(history) {
			switch porcupine.CheckOperationsTimeout(register(), calls, checkLimit) {
			case porcupine.Illegal:
				t.Errorf("round %d: what was read of %s is in no order:\n%s", round, key, told(calls))
			case porcupine.Unknown:
				sum["documents of which no order was found in time"]++
			default:
				decided++
			}
		}
		sum["documents in order"] += decided
		for _, o := range history {
			sum["calls: "+o.Input.(call).kind.String()]++
			if o.Return == math.MaxInt64 {
				sum["calls of unknown outcome"]++
			}
		}
		if decided == 0 {
			t.Error("nothing was checked")
		}
		if round == 1 {
			mustRefuse(t, history)
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

// callKind is what one call does to a register.
type callKind int

const (
	readRegister callKind = iota
	writeRegister
	// swapRegister writes a value where another one is.
	swapRegister
)

func (k callKind) String() string { return [...]string{"read", "write", "swap"}[k] }

// call is one of them; where there is no document the value is 0.
type call struct {
	kind      callKind
	key       string
	value     int64 // written
	old       int64 // that has to be there for a swap
	inTxn     bool
	readLevel string
}

// answer is what came back; nobody knows what a call did that has none.
type answer struct {
	known bool
	value int64 // read
	done  bool  // of a swap
}

// register is the model of one document.
func register() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			is, in, out := state.(int64), input.(call), output.(answer)
			switch {
			case in.kind == readRegister:
				return out.value == is, is
			case in.kind == writeRegister:
				return true, in.value
			case out.known && out.done != (is == in.old):
				return false, is
			case is == in.old:
				return true, in.value
			}
			return true, is
		},
	}
}

func byKey(history []porcupine.Operation) map[string][]porcupine.Operation {
	all := map[string][]porcupine.Operation{}
	for _, o := range history {
		k := o.Input.(call).key
		all[k] = append(all[k], o)
	}
	return all
}

func told(calls []porcupine.Operation) (text string) {
	for _, o := range calls {
		in, out := o.Input.(call), o.Output.(answer)
		text += fmt.Sprintf("client %d, %d-%d: %v of %d, where it is %d (in a transaction: %t, %s): ", o.ClientId, o.Call, o.Return, in.kind, in.value, in.old, in.inTxn, in.readLevel)
		text += fmt.Sprintf("%d, done: %t, known: %t\n", out.value, out.done, out.known)
	}
	return text
}

// mustRefuse spoils a good history, and has that refused: a read finds what was there before the value that it found.
func mustRefuse(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	for _, calls := range byKey(history) {
		last := int64(0) // the end of any call that is known
		for _, o := range calls {
			if o.Return != math.MaxInt64 {
				last = max(last, o.Return)
			}
		}
		stale := porcupine.Operation{Input: call{kind: readRegister}, Call: last + 1, Output: answer{true, -1, false}, Return: last + 2}
		if porcupine.CheckOperationsTimeout(register(), append(calls, stale), checkLimit) != porcupine.Illegal {
			t.Error("a read of what nobody wrote was taken for good")
		}
		return
	}
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
		in := call{key: r.choose(r.random), kind: callKind(r.random.IntN(3)), inTxn: r.random.IntN(3) == 0, readLevel: []string{"majority", "linearizable"}[r.random.IntN(2)]}
		if in.kind != readRegister {
			in.value = r.value.Add(1)
		}
		in.old = r.known[in.key]
		o := porcupine.Operation{ClientId: r.number, Input: in, Call: r.now(), Return: math.MaxInt64}
		out, err := r.do(calls, in)
		switch {
		case err == nil:
			out.known = true
			o.Output, o.Return = out, r.now()
			r.note(in, out)
		case errors.Is(err, errUndone): // as if it had not been
			continue
		case !mongo.IsNetworkError(err) && !isInjected(err):
			r.problems = append(r.problems, fmt.Sprintf("%+v: %v", in, err))
			return
		case in.kind == readRegister:
			continue
		default:
			o.Output = answer{}
		}
		r.history = append(r.history, o)
	}
}

func (r *registrar) note(in call, out answer) {
	switch {
	case in.kind == readRegister:
		r.known[in.key] = out.value
	case in.kind == writeRegister, out.done:
		r.known[in.key] = in.value
	default:
		delete(r.known, in.key)
	}
}

// errUndone is what a transaction ends with that has done nothing.
var errUndone = errors.New("the transaction was aborted")

func (r *registrar) do(ctx context.Context, in call) (out answer, err error) {
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
func (r *registrar) once(ctx context.Context, in call, coll *mongo.Collection) (out answer, err error) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: in.value}}}}
	id := bson.D{{Key: "_id", Value: in.key}}
	switch {
	case in.kind == readRegister:
		out.value, err = r.read(ctx, in.key, coll)
	case in.kind == writeRegister:
		_, err = coll.UpdateOne(ctx, id, set, options.UpdateOne().SetUpsert(true))
	case in.old == 0: // the document must not be there
		if _, err = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: in.key}, {Key: "v", Value: in.value}}); mongo.IsDuplicateKeyError(err) {
			return out, nil
		}
		out.done = err == nil
	default:
		err = coll.FindOneAndUpdate(ctx, append(id, bson.E{Key: "v", Value: in.old}), set).Err()
		if errors.Is(err, mongo.ErrNoDocuments) {
			return out, nil
		}
		out.done = err == nil
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
func (r *registrar) inTransaction(ctx context.Context, in call) (out answer, err error) {
	if in.kind != swapRegister {
		return r.once(ctx, in, r.coll)
	}
	is, err := r.read(ctx, in.key, r.coll)
	if err != nil || is != in.old {
		return out, err
	}
	out.done = true
	_, err = r.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: in.key}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: in.value}}}}, options.UpdateOne().SetUpsert(true))
	return out, err
}
