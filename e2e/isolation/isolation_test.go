// Package isolation has many clients of the real server read and write the same few documents, in transactions and outside of them,
// and looks in what they saw for what snapshot isolation, or linearizability of one document, forbids. It knows clients' calls only,
// nothing of the store.
//
//	go test ./e2e/isolation -v -timeout 2h -args -duration 30m -seed 7
package isolation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/isolation/anomaly"
)

var (
	duration = flag.Duration("duration", 5*time.Second, "how long the clients of each test work")
	seed     = flag.Uint64("seed", 0, "of what the clients do; 0 takes one and prints it")
	clients  = flag.Int("clients", 10, "how many of them")
)

const (
	roundLength = 5 * time.Second // a history is checked, and forgotten, after each round
	// callLimit is how long one call may take, retries and a restart of the server among it.
	callLimit = 2 * time.Minute
	// restPause lies between what interferes with clients.
	restPause = 60 * time.Millisecond
)

// TestIsolation: transactions that append to lists, among them such as are aborted, refused or answered with errors that are made by fail points,
// see nothing that snapshot isolation forbids.
func TestIsolation(t *testing.T) {
	lists(t, false)
}

// TestIsolationKilled is the same with kill -9 in each round, after which the clients go on.
func TestIsolationKilled(t *testing.T) {
	lists(t, true)
}

func lists(t *testing.T, kills bool) {
	m := startMember(t, binary.Build(t))
	random := rand.New(rand.NewPCG(chosenSeed(t), 0))
	db := m.connect(t, true)
	createCollections(t, db)
	own := m.connectAll(t)
	sum := counts{}
	for end, round := time.Now().Add(*duration), 1; time.Now().Before(end); round++ {
		w := newWorkload(round, kills)
		length := min(roundLength, time.Until(end))
		trouble := m.failNowAndThen
		if kills {
			trouble = m.killOnce
		}
		var all []*client
		var work []func(context.Context)
		for i := range *clients {
			c := &client{workload: w, name: fmt.Sprintf("%d.%d", round, i), random: rand.New(rand.NewPCG(*seed, uint64(round)<<16+uint64(i)+1)), db: own[i], counts: counts{}}
			all = append(all, c)
			work = append(work, c.run)
		}
		runFor(t, length, append(work, func(ctx context.Context) { trouble(ctx, t, random, length) })...)

		var history []anomaly.Txn
		for _, c := range all {
			history = append(history, c.history...)
			sum.add(c.counts)
			for _, p := range c.problems {
				t.Errorf("client %s: %s", c.name, p)
			}
		}
		history = append(history, w.readAll(t, db))
		report := anomaly.Check(history)
		for _, a := range report.Anomalies {
			t.Errorf("round %d: %v", round, a)
		}
		sum["groups of transactions with write skew, which is allowed"] += report.Skews
		sum["unknown outcomes that were seen to be commits"] += report.Recovered
		if round == 1 {
			mustFind(t, history)
		}
		w.forget(t, db)
		if t.Failed() {
			t.Fatalf("again with: go test ./e2e/isolation -run '^%s$' -v -args -duration %v -seed %d\nthe server's log ends with:\n%s", t.Name(), *duration, *seed, m.log())
		}
	}
	t.Logf("no anomaly:\n%s", sum)
	if sum[committed] == 0 || sum[conflicted] == 0 {
		t.Errorf("without commits and conflicts the run says nothing")
	}
}

// mustFind spoils a history that was found to be good, and has that found: the last read of a list misses what was appended last.
func mustFind(t *testing.T, history []anomaly.Txn) {
	t.Helper()
	last := history[len(history)-1]
	last.Ops = slices.Clone(last.Ops)
	for i, o := range last.Ops {
		if n := len(o.List); n > 0 {
			last.Ops[i].List = o.List[:n-1]
			break
		}
	}
	if r := anomaly.Check(append(slices.Clone(history[:len(history)-1]), last)); len(r.Anomalies) == 0 {
		t.Error("a lost append was not found")
	}
}

func chosenSeed(t *testing.T) uint64 {
	t.Helper()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, for %v", *seed, *duration)
	return *seed
}

// runFor runs everything beside one another and ends it after a time.
func runFor(t *testing.T, length time.Duration, work ...func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var group sync.WaitGroup
	for _, w := range work {
		group.Go(func() { w(ctx) })
	}
	group.Wait()
}

// counts are how often something happened.
type counts map[string]int

const (
	committed  = "transactions committed"
	conflicted = "transactions that met another's write"
	aborted    = "transactions aborted for other reasons, most by their client"
	lost       = "transactions of unknown outcome"
	uncertain  = "writes outside of transactions of unknown outcome"
	single     = "writes and reads outside of transactions"
)

func (c counts) add(other counts) {
	for k, n := range other {
		c[k] += n
	}
}

func (c counts) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%10d %s\n", c[k], k)
	}
	return b.String()
}

// failNowAndThen has commands fail, or has their answers say so.
func (m *member) failNowAndThen(ctx context.Context, t *testing.T, random *rand.Rand, _ time.Duration) {
	names := []string{"commitTransaction", "abortTransaction", "find", "update", "findAndModify", "aggregate", "getMore"}
	for ctx.Err() == nil {
		on := names[:1+random.IntN(len(names))]
		data := bson.D{{Key: "failCommands", Value: on}}
		switch dice := random.IntN(12); {
		case dice < 1: // the driver does nothing for half a second then
			data = append(data, bson.E{Key: "closeConnection", Value: true})
		case dice < 4:
			data = append(data, bson.E{Key: "errorCode", Value: injected[random.IntN(len(injected))]})
		case dice < 7:
			data = append(data, bson.E{Key: "writeConcernError", Value: bson.D{{Key: "code", Value: injected[random.IntN(len(injected))]}, {Key: "errmsg", Value: injectedText}}})
		default:
			data = append(data, bson.E{Key: "blockConnection", Value: true}, bson.E{Key: "blockTimeMS", Value: 1 + random.IntN(10)})
		}
		command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1 + random.IntN(4)}}}, {Key: "data", Value: data}}
		m.failPoint(t, command)
		rest(ctx, restPause)
	}
	m.failPoint(t, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "off"}})
}

// killOnce kills the server somewhere in the middle, and starts it again.
func (m *member) killOnce(ctx context.Context, t *testing.T, random *rand.Rand, length time.Duration) {
	rest(ctx, length/8+time.Duration(random.Int64N(int64(length/2)+1)))
	if err := m.kill(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// injected are the codes of errors that fail points make: HostUnreachable, NetworkTimeout and SocketException. The driver sends again what
// they answer, at once.
var injected = []int32{6, 89, 9001}

// injectedText is what errors of write concerns say that fail points make.
const injectedText = "made by a fail point"

func isInjected(err error) bool {
	var e interface{ HasErrorCode(int) bool }
	return strings.Contains(err.Error(), injectedText) || // of some of these errors the driver keeps the text alone
		errors.As(err, &e) && slices.ContainsFunc(injected, func(code int32) bool { return e.HasErrorCode(int(code)) })
}
