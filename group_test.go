package ebb

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/certificate/certtest"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/member"
)

// three are the members of a set.
type three struct {
	t       *testing.T
	servers [3]*Server
	stop    [3]context.CancelFunc
	served  [3]chan error
	client  *mongo.Client
	directs [3]*mongo.Client
}

// startThree begins a set of three servers. change is asked for the options of each.
func startThree(t *testing.T, change func(i int, o *Options)) *three {
	t.Helper()
	s := &three{t: t}
	hosts := bson.A{}
	for i := range s.servers {
		o := Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}}
		if os.Getenv("EBB_LOG") != "" {
			o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("n", i)
		}
		if change != nil {
			change(i, &o)
		}
		s.open(i, o)
		hosts = append(hosts, bson.M{"_id": i, "host": s.servers[i].Addr()})
	}
	t.Cleanup(s.close)
	first := s.direct(0)
	if err := first.Database("admin").RunCommand(t.Context(), bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": hosts}}).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range s.servers {
		s.until("every member takes part", func() error {
			var r struct{ IsWritablePrimary, Secondary bool }
			err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&r)
			if err == nil && !r.IsWritablePrimary && !r.Secondary {
				err = errors.New("it is neither primary nor secondary")
			}
			return err
		})
	}
	var err error
	s.client, err = mongo.Connect(options.Client().ApplyURI("mongodb://" + s.servers[0].Addr() + "," + s.servers[1].Addr() + "," + s.servers[2].Addr() + "/?replicaSet=rs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.client.Disconnect(context.Background()) })
	return s
}

// startThreeStored is startThree of members that keep their data in folders of their own, and what each was opened with.
func startThreeStored(t *testing.T) (*three, *[3]Options) {
	t.Helper()
	all := new([3]Options)
	return startThree(t, func(i int, o *Options) {
		o.Engine, o.DBPath, o.MinFreeBytes, o.ReserveBytes = Pebble, t.TempDir(), -1, -1
		all[i] = *o
	}), all
}

func (s *three) open(i int, o Options) {
	s.t.Helper()
	var err error
	if s.servers[i], err = Open(o); err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop[i], s.served[i] = stop, make(chan error, 1)
	server, served := s.servers[i], s.served[i]
	go func() { served <- server.Serve(ctx) }()
}

func (s *three) closeOne(i int) {
	if s.servers[i] == nil {
		return
	}
	s.stop[i]()
	if err := <-s.served[i]; err != nil {
		s.t.Error(err)
	} else if err := s.servers[i].Close(); err != nil {
		s.t.Error(err)
	}
	s.servers[i] = nil
}

func (s *three) close() {
	for i := range s.servers {
		s.closeOne(i)
	}
}

// direct is a client of one member alone.
func (s *three) direct(i int) *mongo.Client {
	s.t.Helper()
	if s.directs[i] != nil {
		return s.directs[i]
	}
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred&serverSelectionTimeoutMS=300"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.directs[i] = c
	s.t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// primary is which member is the primary, when one is.
func (s *three) primary() int {
	s.t.Helper()
	for {
		for i, srv := range s.servers {
			if srv == nil {
				continue
			}
			var r struct{ IsWritablePrimary bool }
			if err := s.direct(i).Database("admin").RunCommand(s.t.Context(), bson.M{"hello": 1}).Decode(&r); err == nil && r.IsWritablePrimary {
				return i
			}
		}
		if s.t.Context().Err() != nil {
			s.t.Fatal("nobody is the primary")
		}
		s.wait()
	}
}

func (s *three) wait() { _ = clock.Wait(s.t.Context(), clock.Wall(), 20*time.Millisecond) }

// until returns when f is happy.
func (s *three) until(what string, f func() error) {
	s.t.Helper()
	until(s.t, what, f)
}

// TestThreeServers: what is written at the primary is at all members, another one takes over where it ends, and nothing that was acknowledged is
// lost.
func TestThreeServers(t *testing.T) {
	s := startThree(t, nil)
	coll := s.client.Database("d").Collection("c")
	const before, after = 200, 100
	for i := range before {
		if _, err := coll.InsertOne(t.Context(), bson.M{"_id": i}); err != nil {
			t.Fatal(i, err)
		}
	}
	var many []any
	for i := range 3000 { // more than are indexed within one commit
		many = append(many, bson.M{"_id": i, "a": i})
	}
	if _, err := s.client.Database("d").Collection("many").InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Database("d").Collection("many").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.M{"a": 1}}); err != nil {
		t.Fatal(err)
	}
	for i := range s.servers {
		s.until("all documents", func() error {
			n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
			if err == nil && n != before {
				err = fmt.Errorf("member %d has %d", i, n)
			}
			return err
		})
	}
	for i := range s.servers {
		s.until("the index", func() error {
			n, err := s.direct(i).Database("d").Collection("many").CountDocuments(t.Context(), bson.M{"a": bson.M{"$gte": 1000}}, options.Count().SetHint("a_1"))
			if err == nil && n != 2000 {
				err = fmt.Errorf("member %d finds %d", i, n)
			}
			return err
		})
		var v struct{ Valid bool }
		if err := s.direct(i).Database("d").RunCommand(t.Context(), bson.M{"validate": "many"}).Decode(&v); err != nil || !v.Valid {
			t.Errorf("member %d: %v %v", i, v, err)
		}
	}
	p := s.primary()
	s.closeOne(p)
	for i := range after {
		_, err := coll.InsertOne(t.Context(), bson.M{"_id": before + i})
		if err != nil && strings.Contains(err.Error(), "was cleared because another operation failed") { // nothing was sent; the driver's one retry was used up before
			_, err = coll.InsertOne(t.Context(), bson.M{"_id": before + i})
		}
		if err != nil {
			t.Fatal(i, err)
		}
	}
	for i, srv := range s.servers {
		if srv == nil {
			continue
		}
		s.until("all documents", func() error {
			n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
			if err == nil && n != before+after {
				err = fmt.Errorf("member %d has %d", i, n)
			}
			return err
		})
	}
	secondary := (s.primary() + 1) % 3
	if s.servers[secondary] == nil {
		secondary = (secondary + 1) % 3
	}
	_, err := s.direct(secondary).Database("d").Collection("c").InsertOne(t.Context(), bson.M{})
	var e mongo.CommandError
	if !errors.As(err, &e) || e.Code != 10107 {
		t.Errorf("a secondary takes a write with %v", err)
	}
}

// command runs a command on the admin database of a client.
func (s *three) command(c *mongo.Client, command any) error {
	return c.Database("admin").RunCommand(s.t.Context(), command).Err()
}

func code(err error) int32 {
	var e mongo.CommandError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// TestStepDown: a primary hands over while clients write, none of whom sees an error.
func TestStepDown(t *testing.T) {
	s := startThree(t, nil)
	coll := s.client.Database("d").Collection("c")
	if _, err := coll.InsertOne(t.Context(), bson.M{"_id": -1}); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { done <- n }()
		for ; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := coll.InsertOne(t.Context(), bson.M{"_id": n}); err != nil {
				t.Error(n, err)
				return
			}
		}
	}()
	was := s.primary()
	if err := s.command(s.direct(was), bson.D{{Key: "replSetStepDown", Value: 20}}); err != nil {
		t.Log("the connection ended with the role:", err)
	}
	s.until("another primary", func() error {
		if now := s.primary(); now == was {
			return errors.New("it is still the same")
		}
		return nil
	})
	close(stop)
	n := <-done
	if count, err := coll.CountDocuments(t.Context(), bson.M{}); err != nil || int(count) != n+1 {
		t.Errorf("%d documents, %v; %d were acknowledged", count, err, n+1)
	}
	var status struct {
		Members []struct {
			Name, StateStr string
			Health         float64
		}
	}
	s.until("status", func() error {
		if err := s.direct(was).Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&status); err != nil {
			return err
		}
		states := map[string]int{}
		for _, m := range status.Members {
			states[m.StateStr]++
		}
		if states["PRIMARY"] != 1 || states["SECONDARY"] != 2 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
}

// TestConcernsOfThree: a write waits for as many members as it says, and no longer than it says; reads are as of a majority or the latest.
func TestConcernsOfThree(t *testing.T) {
	s := startThree(t, nil)
	db := s.client.Database("d")
	insert := func(id int, concern bson.M) (code int32, text string) {
		t.Helper()
		var r struct {
			N                 int
			WriteConcernError struct {
				Code   int32
				ErrMsg string
			}
		}
		if err := db.RunCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"_id": id}}}, {Key: "writeConcern", Value: concern}}).Decode(&r); err != nil || r.N != 1 {
			var e mongo.WriteException
			if errors.As(err, &e) && e.WriteConcernError != nil {
				return int32(e.WriteConcernError.Code), e.WriteConcernError.Message
			}
			t.Fatal(r, err)
		}
		return r.WriteConcernError.Code, r.WriteConcernError.ErrMsg
	}
	if code, text := insert(1, bson.M{"w": 3}); code != 0 {
		t.Error("w: 3 of three:", code, text)
	}
	if code, text := insert(2, bson.M{"w": 4}); code != 100 {
		t.Error("w: 4 of three:", code, text)
	}
	secondary := (s.primary() + 1) % 3
	s.closeOne(secondary)
	if code, text := insert(3, bson.M{"w": 3, "wtimeout": 200}); code != 64 {
		t.Error("w: 3 of two:", code, text)
	}
	if code, text := insert(4, bson.M{"w": "majority"}); code != 0 {
		t.Error("majority of two:", code, text)
	}
	for _, level := range []string{"local", "majority", "linearizable"} {
		var r struct{ N int }
		if err := db.RunCommand(t.Context(), bson.D{{Key: "count", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": level}}}).Decode(&r); err != nil || r.N != 4 {
			t.Error(level, r, err)
		}
		cursor, err := db.RunCommandCursor(t.Context(), bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": level}}})
		var all []bson.M
		if err == nil {
			err = cursor.All(t.Context(), &all)
		}
		if err != nil || len(all) != 4 {
			t.Error(level, len(all), err)
		}
	}
	other := (secondary + 1) % 3
	if other == s.primary() {
		other = (other + 1) % 3
	}
	direct := s.direct(other)
	if err := direct.Database("d").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}, {Key: "readConcern", Value: bson.M{"level": "linearizable"}}}).Err(); code(err) != 10107 {
		t.Error("a secondary reads the latest:", err)
	}
}

// reconfig changes the members of the set's configuration.
func (s *three) reconfig(change func(members bson.A) bson.A) {
	s.t.Helper()
	var r struct{ Config bson.M }
	s.until("configuration", func() error {
		return s.direct(s.primary()).Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetConfig": 1}).Decode(&r)
	})
	r.Config["version"] = r.Config["version"].(int32) + 1
	r.Config["members"] = change(r.Config["members"].(bson.A))
	s.until("reconfig", func() error { return s.command(s.direct(s.primary()), bson.M{"replSetReconfig": r.Config}) })
}

// TestRemovedWhileWaiting: who waits at a member for what is to come is told when the member leaves the set.
func TestRemovedWhileWaiting(t *testing.T) {
	now := clock.NewFake(time.Now()) // it stands, so that what is to come does not come
	s := startThree(t, func(_ int, o *Options) { o.Clock = fakeClock{now} })
	i := (s.primary() + 1) % 3
	waiting := make(chan error, 1)
	go func() {
		later := bson.Timestamp{T: uint32(now.Now().Add(5 * time.Second).Unix())} // a time that may have been told
		waiting <- s.direct(i).Database("d").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"},
			{Key: "readConcern", Value: bson.D{{Key: "afterClusterTime", Value: later}}},
			{Key: "$readPreference", Value: bson.M{"mode": "nearest"}}}).Err()
	}()
	s.until("it waits", func() error {
		var r struct{ Inprog []bson.M }
		err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.D{{Key: "currentOp", Value: 1}, {Key: "command.find", Value: "c"}}).Decode(&r)
		if err == nil && len(r.Inprog) == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
	s.reconfig(func(members bson.A) bson.A { return slices.Delete(members, i, i+1) })
	if err := <-waiting; code(err) != 13436 {
		t.Error(err)
	}
}

// TestFailPointsOfThree: a fail point that is on stays on when the member's role changes.
func TestFailPointsOfThree(t *testing.T) {
	s := startThree(t, func(_ int, o *Options) { o.Parameters = map[string]string{"enableTestCommands": "1"} })
	old := s.primary()
	set := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.M{"failCommands": bson.A{"count"}, "errorCode": 91}}}
	if err := s.command(s.direct(old), set); err != nil {
		t.Fatal(err)
	}
	if err := s.command(s.direct(old), bson.D{{Key: "replSetStepDown", Value: 20}}); err != nil {
		t.Log("the connection ended with the role:", err)
	}
	s.until("a new primary", func() error {
		if s.primary() == old {
			return errors.New("it is the old one")
		}
		return nil
	})
	s.until("a secondary that fails", func() error {
		if err := s.command(s.direct(old), bson.M{"count": "c"}); code(err) != 91 {
			return fmt.Errorf("count: %v", err)
		}
		return nil
	})
}

// voters returns when the primary has so many members, each with a vote.
func (s *three) voters(n int) {
	s.t.Helper()
	s.until("voters", func() error {
		status := s.servers[s.primary()].group.Status()
		if status == nil || !status.Leads || len(status.Voters) != n || len(status.Peers) != n {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
}

// TestGrow: a set of one that has data takes two more in, without a dump, and lets one go again.
func TestGrow(t *testing.T) {
	s := &three{t: t}
	for i := range s.servers {
		s.open(i, Options{Port: AnyPort, DBPath: t.TempDir(), ReplicaSet: &ReplicaSet{Name: "rs", Initiate: i == 0}, MinFreeBytes: -1, ReserveBytes: -1})
	}
	t.Cleanup(s.close)
	first := s.direct(0)
	var docs []any
	for i := range 500 {
		docs = append(docs, bson.M{"_id": i})
	}
	if _, err := first.Database("d").Collection("c").InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		s.reconfig(func(m bson.A) bson.A { return append(m, bson.M{"_id": i, "host": s.servers[i].Addr()}) })
		s.until("the new member has all", func() error {
			n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
			if err == nil && n != 500 {
				err = fmt.Errorf("member %d has %d", i, n)
			}
			return err
		})
	}
	s.voters(3)
	p := s.primary()
	s.closeOne(p)
	now := s.primary()
	if _, err := s.direct(now).Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": 1000}); err != nil {
		t.Fatal(err)
	}
	s.reconfig(func(m bson.A) bson.A {
		var rest bson.A
		for i, member := range m {
			if i != p {
				rest = append(rest, member)
			}
		}
		return rest
	})
	s.voters(2)
}

// TestExpiryOfThree (R13): a member that follows goes by the primary's time, not by its own: what its own clock takes for expired is there, and
// what has expired by the primary's is hidden, and then gone, on all.
func TestExpiryOfThree(t *testing.T) {
	start := clock.Wall().Now().Truncate(time.Second)
	var clocks [3]*clock.Fake
	s := startThree(t, func(i int, o *Options) {
		clocks[i] = clock.NewFake(start)
		o.Clock = fakeClock{clocks[i]}
	})
	p := s.primary()
	for i, c := range clocks {
		if i != p {
			c.Step(48 * time.Hour) // whose clocks are wrong
		}
	}
	db := s.client.Database("d")
	if _, err := db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.M{"_ts": 1}, Options: options.Index().SetExpireAfterSeconds(3600)}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("c").InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	has := func(want int64) {
		t.Helper()
		for i := range s.servers {
			s.until(fmt.Sprintf("%d documents", want), func() error {
				n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
				if err == nil && n != want {
					err = fmt.Errorf("member %d has %d", i, n)
				}
				return err
			})
		}
	}
	has(1)
	clocks[p].Advance(30 * time.Minute)
	has(1)
	clocks[p].Advance(31 * time.Minute)
	has(0)
	s.until("deleted", func() error {
		for i, srv := range s.servers {
			role := srv.serving.Current().role
			var stats struct {
				Metrics struct {
					TTL struct{ DeletedDocuments int64 }
				}
			}
			if err := s.direct(i).Database("admin").RunCommand(t.Context(), bson.M{"serverStatus": 1}).Decode(&stats); err != nil {
				return err
			}
			deleted := stats.Metrics.TTL.DeletedDocuments
			if role.Kind == member.Leader && deleted != 1 || role.Kind == member.Follower && deleted != 0 {
				return fmt.Errorf("member %d has deleted %d", i, deleted)
			}
		}
		return nil
	})
}

type fakeClock struct{ *clock.Fake }

func (c fakeClock) NewTimer(d time.Duration) Timer { return c.Fake.NewTimer(d) }

// TestThreeRestart: a set whose members all end goes on when they are started again.
func TestThreeRestart(t *testing.T) {
	s, all := startThreeStored(t)
	for round := range 3 {
		if _, err := s.client.Database("d").Collection("c").InsertOne(t.Context(), bson.M{"_id": round}); err != nil {
			t.Fatal(err)
		}
		for i := range s.servers {
			all[i].Port = s.servers[i].network.Addr().(*net.TCPAddr).Port
			s.closeOne(i)
		}
		for i := range s.servers {
			s.open(i, all[i])
		}
	}
	for i := range s.servers {
		s.until("all documents", func() error {
			n, err := s.direct(i).Database("d").Collection("c").CountDocuments(t.Context(), bson.M{})
			if err == nil && n != 3 {
				err = fmt.Errorf("member %d has %d", i, n)
			}
			return err
		})
	}
}

// TestLockedSecondaryApplies: a lock by fsync holds up who writes to a member, and nothing that it hears of (difference 102).
func TestLockedSecondaryApplies(t *testing.T) {
	s := startThree(t, nil)
	p := s.primary()
	locked := s.direct((p + 1) % 3)
	if err := s.command(locked, bson.D{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}}); err != nil {
		t.Fatal(err)
	}
	if err := s.command(s.direct(p), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}}); err != nil {
		t.Error(err)
	}
	if err := s.command(locked, bson.D{{Key: "fsyncUnlock", Value: 1}}); err != nil {
		t.Error(err)
	}
}

// TestKeyBesideOtherMechanisms: members know one another by their key whatever mechanisms the users log in by.
func TestKeyBesideOtherMechanisms(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("c29tZXRoaW5nIHNlY3JldA=="), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startThree(t, func(_ int, o *Options) {
		o.KeyFile, o.Authorization = key, true
		o.Parameters = map[string]string{"authenticationMechanisms": "MONGODB-X509"}
	})
	p := s.primary()
	if err := s.command(s.direct(p), bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"root"}}, {Key: "writeConcern", Value: bson.D{{Key: "w", Value: 3}}}}); err != nil {
		t.Error(err)
	}
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://u:p@" + s.servers[p].Addr() + "/?directConnection=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Disconnect(context.Background()) }()
	if err := c.Ping(t.Context(), nil); err == nil {
		t.Error("a user logs in by a mechanism that there is not")
	}
}

// TestThreeWithKey: members know one another by a key file, and nobody else is heard.
func TestThreeWithKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("c29tZXRoaW5nIHNlY3JldA=="), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startThree(t, func(_ int, o *Options) { o.KeyFile, o.Authorization = key, true })
	p := s.primary()
	if err := s.command(s.direct(p), bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"root"}}}); err != nil {
		t.Fatal(err)
	}
	for i := range s.servers {
		s.until("the user", func() error {
			c, err := mongo.Connect(options.Client().ApplyURI("mongodb://u:p@" + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred"))
			if err != nil {
				return err
			}
			defer func() { _ = c.Disconnect(context.Background()) }()
			if err := c.Database("d").RunCommand(t.Context(), bson.M{"count": "c"}).Err(); err != nil {
				return err
			}
			cursor, err := c.Database("d").Collection("c").Aggregate(t.Context(), bson.A{bson.M{"$out": "out"}}) // a secondary has the primary do that
			if err != nil {
				return err
			}
			if err := cursor.Close(t.Context()); err != nil {
				return err
			}
			byRoles := bson.A{bson.M{"$project": bson.M{"r": "$$USER_ROLES"}}, bson.M{"$out": "roles"}} // which are not the member's
			cursor, err = c.Database("d").Collection("c").Aggregate(t.Context(), byRoles)
			if err == nil {
				err = cursor.Close(t.Context())
			}
			if s.primary() == i {
				return err
			}
			if code(err) != 10107 {
				return fmt.Errorf("a secondary has somebody else's roles written, or not yet refused it: %w", err)
			}
			return nil
		})
	}
	reader := bson.D{{Key: "createUser", Value: "reader"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{bson.M{"role": "read", "db": "d"}}}}
	if err := s.command(s.direct(p), reader); code(err) != 13 { // the exception for localhost is over
		t.Error(err)
	}
	boss, err := mongo.Connect(options.Client().ApplyURI("mongodb://u:p@" + s.servers[p].Addr() + "/?directConnection=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = boss.Disconnect(context.Background()) }()
	if err := boss.Database("admin").RunCommand(t.Context(), append(reader, bson.E{Key: "writeConcern", Value: bson.M{"w": 3}})).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range s.servers {
		c, err := mongo.Connect(options.Client().ApplyURI("mongodb://reader:p@" + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Database("d").Collection("c").Aggregate(t.Context(), bson.A{bson.M{"$out": "out"}}); code(err) != 13 {
			t.Errorf("member %d has somebody write who may not: %v", i, err)
		}
		if err := c.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if err := s.command(s.direct(p), bson.D{{Key: "ebbMember", Value: "position"}, {Key: "set", Value: bson.NewObjectID()}, {Key: "from", Value: int64(1)}, {Key: "host", Value: "h"}}); code(err) != 13 {
		t.Error("a stranger is heard:", err)
	}
}

// TestThreeOverTLS: members that speak nothing but TLS know one another by their certificates, and do not listen to who has another; writes wait for
// members by their tags, and the set tells how it is.
func TestThreeOverTLS(t *testing.T) {
	maker := certtest.New(t, clock.Wall().Now())
	authority := maker.Authority("authority")
	ca := maker.Write("ca.pem", authority.CertPEM())
	member := certtest.Named(pkix.Name{CommonName: "member", OrganizationalUnit: []string{"members"}, Organization: []string{"Ebb"}})
	key := maker.Write("member.pem", maker.Issue(authority, "member", certtest.Local, member).PEM())
	s := &three{t: t}
	stranger := maker.Issue(authority, "client").TLS()
	secure := func(i int, login string) *mongo.Client {
		t.Helper()
		c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + login + s.servers[i].Addr() + "/?directConnection=true&readPreference=secondaryPreferred").
			SetTLSConfig(&tls.Config{RootCAs: certtest.Pool(authority), Certificates: []tls.Certificate{stranger}}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
		return c
	}
	members := bson.A{}
	for i := range s.servers {
		s.open(i, Options{Port: AnyPort, Engine: InMemory, ReplicaSet: &ReplicaSet{Name: "rs"}, ClusterX509: true, Authorization: true,
			TLS: &TLS{Mode: RequireTLS, CertificateKeyFile: key, CAFile: ca}})
		members = append(members, bson.M{"_id": i, "host": s.servers[i].Addr(), "tags": bson.M{"rack": fmt.Sprint(i)}})
	}
	t.Cleanup(s.close)
	for i := range s.directs {
		s.directs[i] = secure(i, "")
	}
	if err := s.command(s.directs[0], bson.M{"replSetInitiate": bson.M{"_id": "rs", "members": members,
		"settings": bson.M{"getLastErrorModes": bson.M{"racks": bson.M{"rack": 3}}}}}); err != nil {
		t.Fatal(err)
	}
	p := s.primary()
	if err := s.command(s.directs[p], bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}, {Key: "roles", Value: bson.A{"root"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.command(s.directs[p], bson.D{{Key: "ebbMember", Value: "position"}, {Key: "set", Value: bson.NewObjectID()}, {Key: "from", Value: int64(1)}, {Key: "host", Value: "h"}}); code(err) != 13 {
		t.Error("a client is heard as a member:", err)
	}
	root := secure(p, "u:p@")
	insert := func(w any) error {
		var r struct {
			WriteConcernError bson.M
		}
		err := root.Database("d").RunCommand(t.Context(), bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{"w": w}}}, {Key: "writeConcern", Value: bson.M{"w": w, "wtimeout": 10_000}}}).Decode(&r)
		if err == nil && r.WriteConcernError != nil {
			err = fmt.Errorf("%v", r.WriteConcernError)
		}
		return err
	}
	if err := insert("racks"); err != nil {
		t.Error("a mode of three racks:", err)
	}
	if err := insert(bson.M{"rack": 3}); err != nil {
		t.Error("three racks:", err)
	}
	if err := insert("shelves"); err == nil {
		t.Error("there is a mode that nobody has named")
	}
	s.until("status", func() error {
		var status struct {
			Set     string
			MyState int32
			Members []struct {
				Name, StateStr, SyncSourceHost string
				Health                         float64
				ConfigVersion                  int32
			}
		}
		if err := root.Database("admin").RunCommand(t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&status); err != nil {
			return err
		}
		if status.Set != "rs" || status.MyState != 1 || len(status.Members) != 3 {
			return fmt.Errorf("%+v", status)
		}
		for i, m := range status.Members {
			state, source := "SECONDARY", s.servers[p].Addr()
			if i == p {
				state, source = "PRIMARY", ""
			}
			if m.Health != 1 || m.StateStr != state || m.SyncSourceHost != source || m.Name != s.servers[i].Addr() || m.ConfigVersion != 1 {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	for i := range s.servers {
		var hello struct {
			SetName, Primary, Me         string
			Hosts                        []string
			IsWritablePrimary, Secondary bool
			Tags                         bson.M
		}
		if err := s.directs[i].Database("admin").RunCommand(t.Context(), bson.M{"hello": 1}).Decode(&hello); err != nil {
			t.Fatal(err)
		}
		if hello.SetName != "rs" || hello.Primary != s.servers[p].Addr() || hello.Me != s.servers[i].Addr() || len(hello.Hosts) != 3 ||
			hello.IsWritablePrimary != (i == p) || hello.Secondary == (i == p) || hello.Tags["rack"] != fmt.Sprint(i) {
			t.Errorf("member %d says hello with %+v", i, hello)
		}
	}
}
