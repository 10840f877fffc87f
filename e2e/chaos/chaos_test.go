package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/godriver"
)

var (
	lasts = flag.Duration("chaos", 15*time.Second, "how long the members are disturbed")
	seed  = flag.Uint64("chaos-seed", 0, "the order of disturbances; 0 for any")
)

// clients work with a set, and keep books.
type clients struct {
	t      testing.TB
	db     *mongo.Database
	client *mongo.Client
	over   atomic.Bool
	work   sync.WaitGroup

	inserted    atomic.Int64 // each id from 0 up to it was acknowledged
	insertsOver atomic.Bool  // inserted is all that there will be
	transfers   atomic.Int64
	slowest     atomic.Int64
	events      []int64
	resumed     int          // how often the driver gave the stream up
	shown       atomic.Int64 // looks at documents that expire

	counting sync.Mutex // guards found
	found    map[string]int
	freezes  atomic.Int64 // how often everything stood still, this process as well
}

const (
	accounts = 20
	balance  = 1000
	// expiry is how long short documents last, in seconds.
	expiry = 4
	// skew is how far a member's clock is set forward or back, and far how far one is set back now and then.
	skew = time.Second
	far  = 30 * time.Minute
	// limit is how long an operation may take, with all that its driver tries: far longer than any disturbance.
	limit = 90 * time.Second
)

// TestChaos: whatever befalls one member at a time, nothing that was acknowledged is lost, sums hold, retryable writes see no error, a change
// stream tells each insert once and in order, what is read and written of single documents is linearizable, transactions see one state, a document that
// a session has seen expired is not seen again, and none goes early. In the end all members are the same.
func TestChaos(test *testing.T) {
	t := report(test)
	m := build(t, binary.Build(t))
	client := m.initiate()
	c := &clients{t: t, client: client, db: client.Database("d")}
	c.begin()
	c.work.Go(c.watchFreezes)
	c.work.Go(c.insert)
	c.work.Go(c.transfer)
	c.work.Go(c.transfer)
	c.work.Go(c.watch)
	c.work.Go(c.expire)
	c.work.Go(c.histories)
	until(t, time.Minute, "the clients have begun", func() error {
		if c.inserted.Load() < 10 || c.transfers.Load() < 10 {
			return errors.New("they have not")
		}
		return nil
	})
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("again: -chaos %v -chaos-seed %d", *lasts, s)
	disturb(t, m, rand.New(rand.NewPCG(s, s)))
	for _, v := range m.all {
		v.turn(t.Context(), 0)
	}
	c.over.Store(true)
	c.work.Wait()
	c.check(m)
	t.Log("histories: ", c.found)
	if c.found["registers in order"] == 0 || c.found["transactions committed"] == 0 {
		t.Error("without registers and transactions the run says nothing of them")
	}
	t.Logf("%d inserts, %d transfers, %d looks at what expires, the slowest insert took %v; the stream was given up by its driver %d times", c.inserted.Load(), c.transfers.Load(), c.shown.Load(), time.Duration(c.slowest.Load()), c.resumed)
}

// initiate starts all servers, has them be a set, and is a client of that.
func (m *machines) initiate() *mongo.Client {
	t := m.t
	t.Helper()
	hosts := bson.A{}
	for i, v := range m.all {
		if err := v.start(); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, bson.M{"_id": i, "host": v.host()})
	}
	first := m.all[0].client()
	until(t, time.Minute, "the set begins", func() error {
		for _, v := range m.all {
			if err := v.client().Ping(t.Context(), readpref.Nearest()); err != nil {
				return err
			}
		}
		return first.Database("admin").RunCommand(t.Context(), bson.M{"replSetInitiate": bson.M{"_id": "rs0", "members": hosts}}).Err()
	})
	return connect(t, fmt.Sprintf("mongodb://%s,%s,%s/?replicaSet=rs0&timeoutMS=90000", m.all[0].host(), m.all[1].host(), m.all[2].host()))
}

func connect(t testing.TB, uri string) *mongo.Client {
	t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// client is a client of the member alone.
func (v *machine) client() *mongo.Client {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		v.own = connect(v.m.t, direct(v))
	}
	return v.own
}

func direct(v *machine) string {
	return "mongodb://" + v.host() + "/?directConnection=true&readPreference=secondaryPreferred&serverSelectionTimeoutMS=1000"
}

func until(t testing.TB, within time.Duration, what string, f func() error) {
	t.Helper()
	var err error
	for range within / lookTime { // by looks, since the machine may stand still meanwhile
		if err = f(); err == nil {
			return
		}
		time.Sleep(lookTime)
	}
	t.Fatalf("%s: %v", what, err)
}

// lookTime is how often is looked whether something has come about.
const lookTime = 100 * time.Millisecond

// watchFreezes notes when everything on this machine has stood still, as when a measurement has it for itself. What an operation is allowed to take
// says nothing then.
func (c *clients) watchFreezes() {
	for last := time.Now(); !c.over.Load(); {
		pause(c.t.Context(), freezeTime/10)
		now := time.Now()
		if now.Sub(last) > freezeTime {
			c.freezes.Add(1)
		}
		last = now
	}
}

const freezeTime = 5 * time.Second

// longRun is how long a run is in which some faults last for tens of seconds.
const longRun = 10 * time.Minute

// disturb disturbs one member after the other.
func disturb(t testing.TB, m *machines, random *rand.Rand) {
	t.Helper()
	counts := map[string]int{}
	defer func() { t.Log("disturbed: ", counts) }()
	for end := time.Now().Add(*lasts); time.Now().Before(end); {
		v := m.all[random.IntN(len(m.all))]
		if random.IntN(2) == 0 { // mostly the primary
			v = primary(t, m, v)
		}
		long := time.Duration(200+random.IntN(4000)) * time.Millisecond
		kinds := []string{"kill", "kill", "stop", "cut", "lose", "deafen", "turn", "turn back"}
		if v.index == 2 {
			kinds = append(kinds, "fill")
		}
		if v.hangs {
			kinds = append(kinds, "hang")
		}
		kind := kinds[random.IntN(len(kinds))]
		counts[kind]++
		var err error
		switch kind {
		case "kill":
			v.kill()
			pause(t.Context(), long)
		case "stop":
			v.signal(syscall.SIGSTOP)
			pause(t.Context(), long)
			v.signal(syscall.SIGCONT)
		case "turn": // until it is turned again, or restarts
			v.turn(t.Context(), time.Duration(random.Int64N(int64(2*skew)))-skew)
			pause(t.Context(), long)
		case "turn back":
			v.turn(t.Context(), -far)
			pause(t.Context(), long)
			v.turn(t.Context(), 0)
		default:
			f := v.faults()[kind]
			if *lasts >= longRun && random.IntN(2) == 0 {
				long *= time.Duration(f.longer)
			}
			err = f.begin()
			pause(t.Context(), long)
			err = errors.Join(err, f.end())
		}
		if err != nil {
			t.Fatal(err)
		}
		if !v.runs() {
			if kind != "kill" {
				counts["ended by "+kind]++
			}
			if err := v.start(); err != nil {
				t.Fatal(err)
			}
		}
		pause(t.Context(), time.Duration(1500+random.IntN(2500))*time.Millisecond) // so that it is one at a time, mostly
	}
}

// primary is the one that says that it is, or v.
func primary(t testing.TB, m *machines, v *machine) *machine {
	for _, other := range m.all {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		var r struct{ IsWritablePrimary bool }
		err := other.client().Database("admin").RunCommand(ctx, bson.M{"hello": 1}).Decode(&r)
		cancel()
		if err == nil && r.IsWritablePrimary {
			return other
		}
	}
	return v
}

func (c *clients) begin() {
	c.t.Helper()
	ctx := c.t.Context()
	for i := range accounts {
		if _, err := c.db.Collection("accounts").InsertOne(ctx, bson.M{"_id": i, "n": balance}); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.db.CreateCollection(ctx, "inserts"); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.db.Collection("short").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"_ts": 1}, Options: options.Index().SetExpireAfterSeconds(expiry)}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clients) insert() {
	defer c.insertsOver.Store(true)
	for n := int64(0); !c.over.Load(); n++ {
		began := time.Now()
		again, err := c.unfrozen(func(ctx context.Context) error {
			_, err := c.db.Collection("inserts").InsertOne(ctx, bson.M{"_id": n})
			return err
		})
		if again && mongo.IsDuplicateKeyError(err) {
			err = nil // by the one before
		}
		if err != nil {
			c.t.Errorf("insert %d after %v: %v", n, time.Since(began), err)
			return
		}
		if !again {
			c.slowest.Store(max(c.slowest.Load(), int64(time.Since(began))))
		}
		c.inserted.Store(n + 1)
		pause(c.t.Context(), rand.N(2*thinkTime)) // so that an hour fits on the disks
	}
}

// unfrozen does something as long as the disk is full, and again where the machine stood still meanwhile and it failed for that.
func (c *clients) unfrozen(f func(context.Context) error) (again bool, err error) {
	for {
		before := c.freezes.Load()
		ctx, cancel := context.WithTimeout(c.t.Context(), limit)
		err = whileFull(ctx, func() error { return f(ctx) })
		cancel()
		if err == nil || again && mongo.IsDuplicateKeyError(err) {
			return again, err
		}
		pause(c.t.Context(), freezeTime/5) // until that is noted
		if c.freezes.Load() == before {
			return again, err
		}
		again = true
	}
}

// whileFull does something again as long as the primary says that its disk is full, which is no error that a driver tries again after, and where the
// driver has sent nothing.
func whileFull(ctx context.Context, f func() error) error {
	for {
		err := f()
		var e mongo.ServerError
		if !godriver.Unsent(err) && (!errors.As(err, &e) || !e.HasErrorCode(outOfDiskSpace)) {
			return err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

const outOfDiskSpace = 14031

func (c *clients) transfer() {
	coll := c.db.Collection("accounts")
	for !c.over.Load() {
		_, err := c.unfrozen(func(ctx context.Context) error {
			session, err := c.client.StartSession()
			if err != nil {
				return err
			}
			defer session.EndSession(context.Background())
			_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
				from, to, n := rand.IntN(accounts), rand.IntN(accounts), rand.IntN(10)
				if _, err := coll.UpdateByID(ctx, from, bson.M{"$inc": bson.M{"n": -n}}); err != nil {
					return nil, err
				}
				_, err := coll.UpdateByID(ctx, to, bson.M{"$inc": bson.M{"n": n}})
				return nil, err
			})
			return err
		})
		if err != nil {
			c.t.Error("transfer: ", err)
			return
		}
		c.transfers.Add(1)
		pause(c.t.Context(), rand.N(thinkTime))
	}
}

// watch notes the inserts that a change stream tells of. Where the driver gives the stream up, it is resumed as an application would.
func (c *clients) watch() {
	start := options.ChangeStream().SetStartAtOperationTime(&bson.Timestamp{T: uint32(time.Now().Unix()) - 60, I: 1})
	for looks := 0; ; {
		ctx, cancel := context.WithTimeout(c.t.Context(), limit)
		before := c.freezes.Load()
		stream, err := c.db.Collection("inserts").Watch(ctx, mongo.Pipeline{}, start)
		if err != nil {
			cancel()
			if pause(c.t.Context(), freezeTime/5); c.freezes.Load() > before {
				continue
			}
			c.t.Error("watch: ", err)
			return
		}
		for stream.TryNext(ctx) {
			if id, ok := stream.Current.Lookup("documentKey", "_id").AsInt64OK(); ok {
				c.events = append(c.events, id)
			}
		}
		if stream.Err() != nil {
			c.resumed++
		}
		if token := stream.ResumeToken(); token != nil {
			start = options.ChangeStream().SetResumeAfter(token)
		}
		_ = stream.Close(context.Background())
		cancel()
		if c.over.Load() && c.insertsOver.Load() {
			if looks++; int64(len(c.events)) >= c.inserted.Load() || looks > lastLooks {
				return
			}
			pause(c.t.Context(), lookTime)
		}
	}
}

// missing are the first of n inserts of which the stream has not told.
func (c *clients) missing(n int64) (ids []int64) {
	told := map[int64]bool{}
	for _, id := range c.events {
		told[id] = true
	}
	for id := int64(0); id < n && len(ids) < 20; id++ {
		if !told[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// lastLooks is how often the stream is looked at for what is missing in the end; each look waits for a second.
const lastLooks = 60

// expire looks at documents that last for a few seconds, by whichever member. Each is looked at in a session, so that a secondary that has not
// got the document yet is waited for.
func (c *clients) expire() {
	short := c.db.Collection("short", options.Collection().SetReadPreference(readpref.SecondaryPreferred()))
	for n := 0; !c.over.Load() && c.expireOne(short, n); n++ {
	}
}

func (c *clients) expireOne(short *mongo.Collection, n int) bool {
	session, err := c.db.Client().StartSession()
	if err != nil {
		c.t.Error(err)
		return false
	}
	defer session.EndSession(context.Background())
	// By the set's time, since members' clocks are wrong: it is as it was told before the document, or later, when that is inserted.
	told := int64(0)
	again, err := c.unfrozen(func(ctx context.Context) error {
		ctx = mongo.NewSessionContext(ctx, session)
		if err := c.db.Collection("short").FindOne(ctx, bson.M{"_id": n}).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		told = timeTold(session)
		_, err := c.db.Collection("short").InsertOne(ctx, bson.M{"_id": n})
		return err
	})
	switch {
	case err == nil:
	case again && mongo.IsDuplicateKeyError(err):
		return true
	default:
		c.t.Error("insert what expires: ", err)
		return false
	}
	if told == 0 {
		c.t.Error("the set's time was not told")
		return false
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	ctx = mongo.NewSessionContext(ctx, session)
	began := time.Now()
	for gone := time.Duration(0); time.Since(began) < (expiry+2)*time.Second && !c.over.Load(); pause(ctx, 30*time.Millisecond) {
		looked := time.Since(began)
		coll := c.db.Collection("short")
		if rand.IntN(2) == 0 {
			coll = short
		}
		err := coll.FindOne(ctx, bson.M{"_id": n}).Err()
		c.shown.Add(1)
		switch {
		case err == nil && gone > 0:
			c.t.Errorf("document %d, gone when it was looked at %v after it was inserted, is seen again %v after that", n, gone, looked)
		case errors.Is(err, mongo.ErrNoDocuments):
			if gone = max(gone, looked); timeTold(session)-told < expiry*1000 {
				c.t.Errorf("document %d is gone %d ms after it was inserted, by the set's time, %v by this machine's", n, timeTold(session)-told, looked)
			}
		}
	}
	return true
}

// timeTold is the set's time that the session was told, in milliseconds (docs/replica-set.md).
func timeTold(session *mongo.Session) int64 {
	millis, _ := session.ClusterTime().Lookup("$clusterTime", "signature", "keyId").AsInt64OK()
	return millis
}

// check looks at what is left when all is well again.
func (c *clients) check(m *machines) {
	t := c.t
	t.Helper()
	n := c.inserted.Load()
	if !slices.IsSorted(c.events) || len(slices.Compact(slices.Clone(c.events))) != len(c.events) || int64(len(c.events)) != n {
		t.Errorf("%d events of %d inserts; sorted %v, different ones %d; the first that are missing: %v", len(c.events), n, slices.IsSorted(c.events), len(slices.Compact(slices.Clone(c.events))), c.missing(n))
	}
	for i, v := range m.all {
		db := v.client().Database("d")
		until(t, 90*time.Second, fmt.Sprintf("member %d has all", i), func() error {
			found, err := db.Collection("inserts").CountDocuments(t.Context(), bson.M{})
			if err != nil || found != n {
				return fmt.Errorf("%d inserts of %d: %w", found, n, err)
			}
			cursor, err := db.Collection("accounts").Aggregate(t.Context(), bson.A{bson.M{"$group": bson.M{"_id": nil, "n": bson.M{"$sum": "$n"}}}})
			if err != nil {
				return err
			}
			var sum []struct{ N int }
			if err := cursor.All(t.Context(), &sum); err != nil || len(sum) != 1 || sum[0].N != accounts*balance {
				return fmt.Errorf("the sum is %v: %w", sum, err)
			}
			if found, err := db.Collection("short").CountDocuments(t.Context(), bson.M{}); err != nil || found != 0 {
				return fmt.Errorf("%d have not expired: %w", found, err)
			}
			return nil
		})
		for _, name := range []string{"inserts", "accounts", "short", "registers", "lists"} {
			var r struct {
				Valid bool
			}
			if err := db.RunCommand(t.Context(), bson.D{{Key: "validate", Value: name}}).Decode(&r); err != nil || !r.Valid {
				t.Errorf("member %d, %s: %+v %v", i, name, r, err)
			}
		}
	}
	until(t, 30*time.Second, "all are the same", func() error {
		var hashes []string
		for _, v := range m.all {
			var r struct{ MD5 string }
			if err := v.client().Database("d").RunCommand(t.Context(), bson.M{"dbHash": 1}).Decode(&r); err != nil {
				return err
			}
			hashes = append(hashes, r.MD5)
		}
		if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
			return fmt.Errorf("%v", hashes)
		}
		return nil
	})
}
