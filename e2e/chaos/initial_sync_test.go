package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/e2e/binary"
)

var (
	syncMegabytes = flag.Int("sync-mb", 100, "how much data a new member copies")
	syncKills     = flag.Int("sync-kills", 2, "how often one side is killed while it does")
	syncSeed      = flag.Uint64("sync-seed", 1, "when, and which")
)

// The documents that are copied.
const (
	syncDocument = 8 << 10
	syncBatch    = 200
	syncLimit    = 15 * time.Minute
)

// TestInitialSync has a new member copy what a set has while clients work with that, and kills one side or the other meanwhile: in the end it has all
// that was acknowledged, and is the same. How long others' operations took before and meanwhile is in the log of the test.
func TestInitialSync(test *testing.T) {
	t := report(test)
	m := build(t, binary.Build(t))
	first, second, parting := m.all[0], m.all[1], m.all[2]
	for _, v := range m.all {
		if err := v.start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, time.Minute, "the set begins", func() error {
		if err := second.client().Ping(t.Context(), nil); err != nil {
			return err
		}
		return first.client().Database("admin").RunCommand(t.Context(), bson.M{"replSetInitiate": bson.M{"_id": "rs0", "members": bson.A{bson.M{"_id": 0, "host": first.host()}}}}).Err()
	})
	client := connect(t, fmt.Sprintf("mongodb://%s,%s/?replicaSet=rs0&timeoutMS=90000", first.host(), second.host()))
	// A set of one has no log that others take part in. It gets one, by an election, with the first other: that is not what is measured.
	reconfigure(t, client, func(members bson.A) bson.A {
		return append(members, bson.M{"_id": parting.index, "host": parting.host(), "votes": 0, "priority": 0})
	})
	until(t, time.Minute, "another is a secondary", func() error {
		if state := syncState(t, parting); state != "is a secondary" {
			return errors.New("it " + state)
		}
		return nil
	})
	reconfigure(t, client, func(members bson.A) bson.A { return members[:1] })
	parting.kill()
	db := client.Database("d")
	documents := *syncMegabytes << 20 / syncDocument
	began := time.Now()
	loadForSync(t, db.Collection("big"), documents)
	t.Logf("%d documents, %d MB, loaded in %v", documents, *syncMegabytes, time.Since(began))

	p := &syncProbes{t: t, coll: db.Collection("big"), documents: documents, own: db.Collection("probe")}
	p.begin()
	pause(t.Context(), 10*time.Second)
	reconfigure(t, client, func(members bson.A) bson.A {
		return append(members, bson.M{"_id": second.index, "host": second.host()})
	})
	added := time.Now()
	random := rand.New(rand.NewPCG(*syncSeed, 1))
	for n := range *syncKills {
		pause(t.Context(), time.Duration(500+random.IntN(4000))*time.Millisecond)
		v := []*machine{first, second}[random.IntN(2)]
		t.Logf("%v: member %d is killed for the %d. time; the new member %s", time.Since(added), v.index, n+1, syncState(t, second))
		v.kill()
		pause(t.Context(), time.Duration(random.IntN(1500))*time.Millisecond)
		if err := v.start(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, syncLimit, "the new member has all", func() error {
		if state := syncState(t, second); state != "is a secondary" && state != "is a primary" {
			return errors.New("it " + state)
		}
		return nil
	})
	took := time.Since(added)
	p.end()
	t.Logf("the new member had all after %v", took)
	p.tell(added, added.Add(took))
	if *syncKills == 0 && p.failed > 0 {
		t.Errorf("%d operations have failed", p.failed)
	}
	until(t, time.Minute, "both are the same", func() error {
		var hashes []string
		for _, v := range []*machine{first, second} {
			var r struct{ MD5 string }
			if err := v.client().Database("d").RunCommand(t.Context(), bson.M{"dbHash": 1}).Decode(&r); err != nil {
				return err
			}
			hashes = append(hashes, r.MD5)
		}
		if hashes[0] != hashes[1] {
			return fmt.Errorf("%v", hashes)
		}
		return nil
	})
	for _, v := range []*machine{first, second} {
		if found, err := v.client().Database("d").Collection("probe").CountDocuments(t.Context(), bson.M{}); err != nil || found < int64(p.inserted) {
			t.Errorf("member %d has %d documents of %d that were acknowledged: %v", v.index, found, p.inserted, err)
		}
	}
}

func loadForSync(t testing.TB, coll *mongo.Collection, documents int) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for n := 0; n < documents; n += syncBatch {
		var batch []any
		for i := n; i < min(n+syncBatch, documents); i++ {
			data := make([]byte, syncDocument-100)
			_, _ = random.Read(data[:len(data)/2]) // half of it can be compressed
			batch = append(batch, bson.D{{Key: "_id", Value: i}, {Key: "data", Value: data}})
		}
		if _, err := coll.InsertMany(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// reconfigure changes the members of the configuration.
func reconfigure(t testing.TB, client *mongo.Client, change func(bson.A) bson.A) {
	t.Helper()
	until(t, time.Minute, "the configuration is changed", func() error {
		var r struct{ Config bson.M }
		if err := client.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r); err != nil {
			return err
		}
		r.Config["version"] = r.Config["version"].(int32) + 1
		r.Config["members"] = change(r.Config["members"].(bson.A))
		return client.Database("admin").RunCommand(t.Context(), bson.M{"replSetReconfig": r.Config}).Err()
	})
}

// syncState says what a member says that it is.
func syncState(t testing.TB, v *machine) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var r struct{ IsWritablePrimary, Secondary bool }
	err := v.client().Database("admin").RunCommand(ctx, bson.M{"hello": 1}).Decode(&r)
	switch {
	case err != nil:
		return "does not answer"
	case r.IsWritablePrimary:
		return "is a primary"
	case r.Secondary:
		return "is a secondary"
	}
	return "has not all yet"
}

// syncProbes are finds and inserts at a fixed rate.
type syncProbes struct {
	t         testing.TB
	coll, own *mongo.Collection
	documents int
	cancel    context.CancelFunc
	work      sync.WaitGroup

	mu       sync.Mutex // guards all below
	finds    []syncSample
	inserts  []syncSample
	inserted int
	failed   int
}

type syncSample struct {
	at   time.Time
	took time.Duration
}

// probeEvery is how long lies between the beginnings of two finds, and of two inserts.
const probeEvery = 5 * time.Millisecond

func (p *syncProbes) begin() {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.cancel = cancel
	p.work.Go(func() {
		p.run(ctx, &p.finds, func(int) error {
			return p.coll.FindOne(p.t.Context(), bson.D{{Key: "_id", Value: rand.IntN(p.documents)}}).Err()
		})
	})
	p.work.Go(func() {
		p.run(ctx, &p.inserts, func(n int) error {
			_, err := p.own.InsertOne(p.t.Context(), bson.D{{Key: "_id", Value: n}, {Key: "text", Value: "a probe"}})
			if err == nil {
				p.mu.Lock()
				p.inserted++
				p.mu.Unlock()
			}
			return err
		})
	})
}

// run begins one after the other; what comes late counts from when it should have begun.
func (p *syncProbes) run(ctx context.Context, into *[]syncSample, f func(n int) error) {
	begin := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		at := begin.Add(time.Duration(n) * probeEvery)
		pause(ctx, time.Until(at))
		err := f(n)
		p.mu.Lock()
		if err != nil {
			p.failed++
		} else {
			*into = append(*into, syncSample{at, time.Since(at)})
		}
		p.mu.Unlock()
	}
}

func (p *syncProbes) end() {
	p.cancel()
	p.work.Wait()
}

// tell tells how long they took before a time, and from then on until another.
func (p *syncProbes) tell(from, to time.Time) {
	for name, samples := range map[string][]syncSample{"finds": p.finds, "inserts": p.inserts} {
		var before, during []time.Duration
		for _, s := range samples {
			if s.at.Before(from) {
				before = append(before, s.took)
			} else if s.at.Before(to) {
				during = append(during, s.took)
			}
		}
		p.t.Logf("%s: p50 %v and p99 %v of %d before, p50 %v and p99 %v of %d meanwhile", name, quantile(before, 50), quantile(before, 99), len(before),
			quantile(during, 50), quantile(during, 99), len(during))
	}
}

func quantile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, len(all)*percent/100)]
}
