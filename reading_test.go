package ebb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tikv/client-go/v2/tikv"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/tikvkv/tikvtest"
	"github.com/ebbdb/ebb/internal/testseed"
)

// beside are servers over one keyspace of a cluster in memory, of which the first one works on the data to begin with.
type beside struct {
	t       *testing.T
	clock   *clock.Fake
	cluster *tikvtest.Cluster
	key     string // the file of the key that the servers have where clients log in; "": they do not
	servers []*Server
	clients []*mongo.Client
	stops   []func()
}

func startBeside(t *testing.T, n int) *beside {
	t.Helper()
	s := &beside{t: t, clock: clock.NewFake(time.Now()), cluster: tikvtest.New(t)}
	for range n {
		s.open()
	}
	return s
}

// open opens one more. It returns when that answers, and reads itself where another one works.
func (s *beside) open() {
	s.t.Helper()
	o := Options{Port: AnyPort, Engine: TiKV, Clock: benchClock{s.clock}, Parameters: map[string]string{"enableTestCommands": "1"},
		seams: &seams{cluster: func() *tikv.KVStore { return s.cluster.Store(s.t) }}}
	if s.key != "" {
		o.Authorization, o.KeyFile = true, s.key
	}
	server, err := Open(o)
	s.must(err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := errors.Join(<-served, server.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(end)
	s.servers, s.stops = append(s.servers, server), append(s.stops, end)
	s.clients = append(s.clients, s.client(len(s.servers)-1, ""))
	s.ready(len(s.servers) - 1)
}

// client is a client of one server, who logs in where a user is said with his password.
func (s *beside) client(n int, user string) *mongo.Client {
	s.t.Helper()
	if user != "" {
		user += "@"
	}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + user + s.servers[n].Addr() + "/?directConnection=true"))
	s.must(err)
	s.t.Cleanup(func() {
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(short)
	})
	return client
}

// ready returns when a server answers reads itself.
func (s *beside) ready(n int) {
	s.t.Helper()
	h := s.servers[n].sharing
	until(s.t, fmt.Sprint("server ", n), func() error {
		if !h.router.IsHere() && h.reads.holder.Current() == nil {
			return errors.New("it does not answer reads")
		}
		return nil
	})
}

// taken returns when one of some servers works on the data.
func (s *beside) taken(servers ...int) {
	s.t.Helper()
	until(s.t, "a take-over", func() error {
		if !slices.ContainsFunc(servers, func(n int) bool { return s.servers[n].sharing.router.IsHere() }) {
			return errors.New("nobody works on the data")
		}
		return nil
	})
}

func (s *beside) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *beside) db(n int) *mongo.Database { return s.clients[n].Database("test") }

// answered is how many reads a server has answered itself while f ran.
func (s *beside) answered(n int, f func()) int {
	before := s.servers[n].sharing.reads.answered.Load()
	f()
	return int(s.servers[n].sharing.reads.answered.Load() - before)
}

func (s *beside) insert(n int, coll string, docs ...any) {
	s.t.Helper()
	_, err := s.db(n).Collection(coll).InsertMany(s.t.Context(), docs)
	s.must(err)
}

func (s *beside) count(n int, coll string, filter bson.D) int {
	s.t.Helper()
	c, err := s.db(n).Collection(coll).Find(s.t.Context(), filter)
	s.must(err)
	var all []bson.D
	s.must(c.All(s.t.Context(), &all))
	return len(all)
}

// TestReadsBeside: what is written by one server is seen by another at once, whatever it is, and that one reads it itself.
func TestReadsBeside(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	at := s.answered(1, func() {
		for i := range 50 {
			s.insert(i%2, "c", bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 5}, {Key: "many", Value: bson.A{i, -i}}})
			if n := s.count(1, "c", bson.D{{Key: "_id", Value: i}}); n != 1 {
				t.Fatalf("document %d is seen %d times", i, n)
			}
		}
	})
	if at != 50 {
		t.Errorf("%d of 50 reads are the second server's", at)
	}
	// An index comes, becomes multikey, and goes.
	name, err := s.db(0).Collection("c").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "many", Value: 1}}})
	s.must(err)
	if n := s.count(1, "c", bson.D{{Key: "many", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$lt", Value: 0}, {Key: "$gt", Value: -10}}}}}}); n != 9 {
		t.Errorf("by an index on arrays %d documents are found, want 9", n)
	}
	name2, err := s.db(0).Collection("later").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "x", Value: 1}}})
	s.must(err)
	s.insert(0, "later", bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: 1}})
	s.count(1, "later", bson.D{{Key: "x", Value: 1}})
	s.insert(1, "later", bson.D{{Key: "_id", Value: 2}, {Key: "x", Value: bson.A{-5, 5}}})
	if n := s.count(1, "later", bson.D{{Key: "x", Value: bson.D{{Key: "$lt", Value: 0}}}}); n != 1 {
		t.Errorf("an index that has become multikey finds %d documents, want 1", n)
	}
	s.must(s.db(1).Collection("c").Indexes().DropOne(ctx, name))
	s.must(s.db(1).Collection("later").Indexes().DropOne(ctx, name2))
	if n := s.count(1, "c", bson.D{{Key: "many", Value: -3}}); n != 1 {
		t.Errorf("without the index %d documents are found", n)
	}
	// Aggregation, over two collections and a view.
	s.must(s.db(0).CreateView(ctx, "v", "c", mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "a", Value: 1}}}}}))
	at = s.answered(1, func() {
		cursor, err := s.db(1).Collection("v").Aggregate(ctx, mongo.Pipeline{{{Key: "$lookup", Value: bson.D{{Key: "from", Value: "later"}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "l"}}}},
			{{Key: "$unwind", Value: "$l"}}, {{Key: "$count", Value: "n"}}})
		s.must(err)
		var all []struct{ N int }
		s.must(cursor.All(ctx, &all))
		if len(all) != 1 || all[0].N != 1 {
			t.Errorf("an aggregation over a view says %v", all)
		}
		n, err := s.db(1).Collection("c").CountDocuments(ctx, bson.D{{Key: "a", Value: 3}})
		s.must(err)
		var values []int
		s.must(s.db(1).Collection("c").Distinct(ctx, "a", bson.D{}).Decode(&values))
		if n != 10 || len(values) != 5 {
			t.Errorf("%d documents are counted, and %v are the values", n, values)
		}
	})
	if at != 3 {
		t.Errorf("%d of 3 reads are the second server's", at)
	}
	// A range is deleted, a collection renamed, and dropped.
	_, err = s.db(0).Collection("c").DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: 10}}}})
	s.must(err)
	if n := s.count(1, "c", bson.D{}); n != 10 {
		t.Errorf("%d documents are left, want 10", n)
	}
	s.must(s.clients[0].Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: "test.c"}, {Key: "to", Value: "test.d"}}).Err())
	if before, after := s.count(1, "c", bson.D{}), s.count(1, "d", bson.D{}); before != 0 || after != 10 {
		t.Errorf("after a collection was renamed there are %d and %d documents", before, after)
	}
	s.must(s.db(0).Collection("d").Drop(ctx))
	if n := s.count(1, "d", bson.D{}); n != 0 {
		t.Errorf("of a collection that was dropped %d documents are seen", n)
	}
}

// TestCursorsBeside: a cursor is where it was opened, and ends there with its collection, or when it is killed.
func TestCursorsBeside(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	for i := range 30 {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}})
	}
	at := s.answered(1, func() {
		cursor, err := s.db(1).Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(7))
		s.must(err)
		var all []bson.D
		s.must(cursor.All(ctx, &all))
		if len(all) != 30 {
			t.Errorf("a cursor has %d documents", len(all))
		}
	})
	if at != 5 {
		t.Errorf("%d of 5 requests are the second server's", at)
	}
	open := func() *mongo.Cursor {
		t.Helper()
		cursor, err := s.db(1).Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
		s.must(err)
		return cursor
	}
	killed := open()
	var reply struct{ CursorsKilled []int64 }
	s.must(s.db(1).RunCommand(ctx, bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{killed.ID()}}}).Decode(&reply))
	if len(reply.CursorsKilled) != 1 {
		t.Errorf("killCursors has killed %v", reply.CursorsKilled)
	}
	other, err := s.db(0).Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	s.must(err)
	if err := s.db(1).RunCommand(ctx, bson.D{{Key: "getMore", Value: other.ID()}, {Key: "collection", Value: "c"}}).Err(); codeIn(err) != 50738 { // which is another session's
		t.Errorf("a cursor of the server that works is asked for by the other: %v", err)
	}
	// With its session it ends, too.
	session, err := s.clients[1].StartSession()
	s.must(err)
	of, err := s.db(1).Collection("c").Find(mongo.NewSessionContext(ctx, session), bson.D{}, options.Find().SetBatchSize(2))
	s.must(err)
	s.must(s.clients[1].Database("admin").RunCommand(ctx, bson.D{{Key: "killSessions", Value: bson.A{}}}).Err()) // of nobody
	s.must(s.clients[1].Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err())
	if err := s.db(1).RunCommand(ctx, bson.D{{Key: "getMore", Value: of.ID()}, {Key: "collection", Value: "c"}}).Err(); codeIn(err) != 43 {
		t.Errorf("a cursor of a session that was killed: %v", err)
	}
	dropped := open()
	s.must(s.db(0).Collection("c").Drop(ctx))
	for dropped.Next(ctx) {
	}
	if code := codeIn(dropped.Err()); code != 175 {
		t.Errorf("a cursor whose collection was dropped: %v", dropped.Err())
	}
}

func codeIn(err error) int {
	var e mongo.CommandError
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}

// TestUnacknowledgedBeside: a read comes behind the write before it on its connection, although nobody has answered that.
func TestUnacknowledgedBeside(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.servers[1].Addr() + "/?directConnection=true&maxPoolSize=1"))
	s.must(err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	docs := client.Database("test").Collection("c")
	silent := client.Database("test").Collection("c", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	for i := range 100 {
		_, _ = silent.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}) // whose error says that it is not acknowledged
		if err := docs.FindOne(ctx, bson.D{{Key: "_id", Value: i}}).Err(); err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
	}
	s.insert(1, "c", bson.D{{Key: "_id", Value: "answered"}})
	if n := s.answered(1, func() { s.count(1, "c", bson.D{{Key: "_id", Value: 1}}) }); n != 1 {
		t.Errorf("%d of 1 reads are answered", n)
	}
}

// TestLargeBeside: what is written at once, however much it is, ends no cursor of a server that reads.
func TestLargeBeside(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	for i := range 20 {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}})
	}
	cursor, err := s.db(1).Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	s.must(err)
	n := 0
	for ; n < 3 && cursor.Next(ctx); n++ {
	}
	d := s.servers[1].sharing.reads.holder.Current()
	var docs []any
	for i := range 30_000 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: strings.Repeat("x", 100)}})
	}
	s.insert(0, "many", docs...)
	if n := s.count(1, "many", bson.D{{Key: "_id", Value: 29_999}}); n != 1 {
		t.Errorf("%d documents are seen of what was written at once", n)
	}
	for cursor.Next(ctx) {
		n++
	}
	if s.must(cursor.Err()); n != 20 || s.servers[1].sharing.reads.holder.Current() != d {
		t.Errorf("a cursor has %d documents of 20, or the server has begun anew", n)
	}
}

// TestExpiryBeside: what has expired is seen by no server, by the clock of the one that works; what is to expire later from now on is seen by none before.
func TestExpiryBeside(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	s.must(s.db(0).RunCommand(ctx, bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "_ts", Value: 1}}}, {Key: "name", Value: "ttl"}, {Key: "expireAfterSeconds", Value: 10}}}}}).Err())
	for i := range 20 {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}, {Key: "ttl", Value: 5 + i}})
	}
	for passed := range 30 {
		want := 20
		if passed >= 5 {
			want = max(20-(passed-4), 0)
		}
		at := s.answered(1, func() {
			if n := s.count(1, "c", bson.D{}); n != want {
				t.Errorf("after %d seconds the second server sees %d documents, want %d", passed, n, want)
			}
		})
		if at != 1 {
			t.Errorf("the second server has answered %d of 1 reads", at)
		}
		if n := s.count(0, "c", bson.D{}); n != want {
			t.Errorf("after %d seconds the first server sees %d documents, want %d", passed, n, want)
		}
		s.clock.Advance(time.Second)
	}
	// Rules that were loosened hold from then on: what they let live longer goes by them.
	s.insert(0, "c", bson.D{{Key: "_id", Value: "later"}})
	s.must(s.db(0).RunCommand(ctx, bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{{Key: "name", Value: "ttl"}, {Key: "expireAfterSeconds", Value: 20}}}}).Err())
	for passed := range 25 {
		want := 1
		if passed >= 20 {
			want = 0
		}
		for n := range s.servers {
			if got := s.count(n, "c", bson.D{}); got != want {
				t.Errorf("%d seconds after its TTL was loosened server %d sees %d documents, want %d", passed, n, got, want)
			}
		}
		s.clock.Advance(time.Second)
	}
	// All TTLs hide, or not, as the server says that works.
	s.must(s.db(0).RunCommand(ctx, bson.D{{Key: "createIndexes", Value: "d"}, {Key: "indexes", Value: bson.A{
		bson.D{{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "ttl"}, {Key: "expireAfterSeconds", Value: 0}}}}}).Err())
	s.must(s.clients[0].Database("admin").RunCommand(ctx, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlMonitorEnabled", Value: false}}).Err())
	s.insert(0, "d", bson.D{{Key: "at", Value: s.clock.Now().Add(time.Second)}})
	s.clock.Advance(2 * time.Second)
	if n := s.count(1, "d", bson.D{}); n != 1 {
		t.Errorf("%d documents are seen that have expired, and that nothing hides", n)
	}
	s.must(s.clients[1].Database("admin").RunCommand(ctx, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHideExpired", Value: true}}).Err())
	if n := s.count(1, "d", bson.D{}); n != 0 {
		t.Errorf("%d documents are seen that ttlHideExpired hides", n)
	}
}

// TestHandedOn: what is not for the second server to answer the first one answers.
func TestHandedOn(t *testing.T) {
	s := startBeside(t, 2)
	ctx := t.Context()
	s.insert(0, "c", bson.D{{Key: "_id", Value: 1}})
	run := func(db string, command bson.D) error { return s.clients[1].Database(db).RunCommand(ctx, command).Err() }
	find := bson.D{{Key: "find", Value: "c"}}
	aggregate := func(stage bson.D) bson.D {
		return bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{stage}}, {Key: "cursor", Value: bson.D{}}}
	}
	for what, f := range map[string]func() error{
		"explain":     func() error { return run("test", bson.D{{Key: "explain", Value: find}}) },
		"$indexStats": func() error { return run("test", aggregate(bson.D{{Key: "$indexStats", Value: bson.D{}}})) },
		"$out":        func() error { return run("test", aggregate(bson.D{{Key: "$out", Value: "o"}})) },
		"of config":   func() error { return run("config", find) },
		"linearizable": func() error {
			return run("test", append(find, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "linearizable"}}}))
		},
		"snapshot": func() error {
			return run("test", append(find, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}}))
		},
	} {
		var err error
		if n := s.answered(1, func() { err = f() }); n != 0 || err != nil {
			t.Errorf("%s: %d are answered, %v", what, n, err)
		}
	}
	// A transaction reads where it writes; beside it the second server answers, and sees nothing of it before it is committed.
	s.must(s.clients[1].UseSession(ctx, func(ctx context.Context) error {
		session := mongo.SessionFromContext(ctx)
		if err := session.StartTransaction(); err != nil {
			return err
		}
		var err error
		if n := s.answered(1, func() {
			if _, err = s.db(1).Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: "mine"}}); err == nil {
				err = s.db(1).Collection("c").FindOne(ctx, bson.D{{Key: "_id", Value: "mine"}}).Err()
			}
		}); n != 0 || err != nil {
			t.Errorf("of a transaction the second server answers %d reads, and it ends with %v", n, err)
		}
		if n := s.answered(1, func() {
			if n := s.count(1, "c", bson.D{{Key: "_id", Value: "mine"}}); n != 0 {
				t.Error("what is not committed is seen")
			}
		}); n != 1 {
			t.Errorf("beside a transaction the second server answers %d reads of 1", n)
		}
		return session.CommitTransaction(ctx)
	}))
	if n := s.count(1, "c", bson.D{{Key: "_id", Value: "mine"}}); n != 1 {
		t.Error("what was committed is not seen")
	}
	if n := s.count(1, "o", bson.D{}); n == 0 {
		t.Error("what $out has written is not seen")
	}
	// Reads of which each is to be told somewhere, or to fail.
	s.must(run("test", bson.D{{Key: "profile", Value: 2}}))
	if n := s.answered(1, func() { s.count(1, "c", bson.D{}) }); n != 0 {
		t.Error("a read is not profiled")
	}
	s.must(run("test", bson.D{{Key: "profile", Value: 0}}))
	fails := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"}, {Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"find"}}, {Key: "errorCode", Value: 1234}}}}
	s.must(run("admin", fails))
	if err := run("test", find); codeIn(err) != 1234 {
		t.Errorf("a find that is to fail: %v", err)
	}
	fails[1].Value = "off"
	s.must(run("admin", fails))
	// How reads are answered is the same everywhere.
	s.must(run("admin", bson.D{{Key: "setParameter", Value: 1}, {Key: "notablescan", Value: true}}))
	if err := run("test", bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "x", Value: 1}}}}); codeIn(err) != 291 {
		t.Errorf("with notablescan a find says %v", err)
	}
}

// endless is a pipeline that goes on for hours over a few dozen documents.
func endless(coll string) (stages mongo.Pipeline) {
	for i := range 6 {
		as := fmt.Sprint("a", i)
		stages = append(stages, bson.D{{Key: "$lookup", Value: bson.D{{Key: "from", Value: coll}, {Key: "pipeline", Value: bson.A{}}, {Key: "as", Value: as}}}}, bson.D{{Key: "$unwind", Value: "$" + as}})
	}
	return append(stages, bson.D{{Key: "$count", Value: "n"}})
}

// TestOperationsBeside: the server that works shows what others do, and stops it there, for clients of any server.
func TestOperationsBeside(t *testing.T) {
	s := startBeside(t, 3)
	ctx := t.Context()
	for i := range 50 {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}})
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.db(2).Collection("c").Aggregate(ctx, endless("c"))
		ended <- err
	}()
	admin := s.clients[1].Database("admin")
	var shown []struct{ Opid, Host string }
	until(t, "an operation of another server", func() error {
		cursor, err := admin.Aggregate(ctx, mongo.Pipeline{{{Key: "$currentOp", Value: bson.D{{Key: "allUsers", Value: true}}}},
			{{Key: "$match", Value: bson.D{{Key: "command.aggregate", Value: "c"}}}}})
		s.must(err)
		if s.must(cursor.All(ctx, &shown)); len(shown) == 0 {
			return errors.New("it is not shown")
		}
		return nil
	})
	if want := s.servers[2].Addr(); shown[0].Host != want || !strings.HasPrefix(shown[0].Opid, want+":") {
		t.Errorf("an operation of the server %s is shown as %v", want, shown)
	}
	var inprog struct{ Inprog []bson.M }
	s.must(s.clients[0].Database("admin").RunCommand(ctx, bson.D{{Key: "currentOp", Value: 1}, {Key: "command.aggregate", Value: "c"}}).Decode(&inprog))
	if len(inprog.Inprog) != 1 {
		t.Errorf("currentOp shows %v", inprog.Inprog)
	}
	for opid, code := range map[string]int{"nobody:1": 28625, "1": 28625, s.servers[2].Addr(): 28625, "127.0.0.1:1:1": 6, s.servers[2].Addr() + ":x": 28625} {
		if err := admin.RunCommand(ctx, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: opid}}).Err(); codeIn(err) != code {
			t.Errorf("killOp of %s: %v", opid, err)
		}
	}
	s.must(admin.RunCommand(ctx, bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: shown[0].Opid}}).Err())
	if err := <-ended; codeIn(err) != 11601 {
		t.Errorf("an operation that was killed ends with %v", err)
	}
}

// TestChangesBeside: a change stream is where it was opened, tells of what is written anywhere, in one order, and goes on elsewhere when its server has other
// data.
func TestChangesBeside(t *testing.T) {
	s := startBeside(t, 3)
	ctx := t.Context()
	s.insert(0, "c", bson.D{{Key: "_id", Value: "before"}})
	var streams []*mongo.ChangeStream
	at := s.answered(1, func() {
		for _, watched := range []interface {
			Watch(context.Context, any, ...options.Lister[options.ChangeStreamOptions]) (*mongo.ChangeStream, error)
		}{s.db(1).Collection("c"), s.db(1), s.clients[1]} {
			stream, err := watched.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
			s.must(err)
			t.Cleanup(func() { _ = stream.Close(context.Background()) })
			streams = append(streams, stream)
		}
	})
	if at != 3 {
		t.Errorf("%d of 3 change streams are the second server's", at)
	}
	const n = 40
	written := make(chan error, 1)
	go func() {
		for i := range n {
			if _, err := s.db(i%3).Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
				written <- err
				return
			}
		}
		_, err := s.db(2).Collection("c").UpdateOne(ctx, bson.D{{Key: "_id", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
		written <- errors.Join(err, s.db(0).Collection("c").Drop(ctx))
	}()
	type event struct {
		OperationType string
		FullDocument  bson.M
	}
	var tokens []bson.Raw
	for i, stream := range streams {
		for doc := range n {
			var got event
			if !stream.Next(ctx) {
				t.Fatalf("stream %d ends: %v", i, stream.Err())
			}
			s.must(stream.Decode(&got))
			if got.OperationType != "insert" || got.FullDocument["_id"] != int32(doc) {
				t.Fatalf("event %d of stream %d is %v", doc, i, got)
			}
			if i == 0 {
				tokens = append(tokens, stream.ResumeToken())
			}
		}
		for _, want := range []string{"update", "drop"} {
			var got event
			if !stream.Next(ctx) {
				t.Fatalf("stream %d ends: %v", i, stream.Err())
			}
			if s.must(stream.Decode(&got)); got.OperationType != want {
				t.Errorf("stream %d tells of %v, want %s", i, got, want)
			}
		}
	}
	s.must(<-written)
	if streams[0].Next(ctx) { // invalidate, and the end
		streams[0].Next(ctx)
	}
	// It goes on by another server, and from there on by whichever there is.
	hosts := s.servers[2].Addr() + "," + s.servers[1].Addr()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + hosts + "/"))
	s.must(err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	again, err := client.Database("test").Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(tokens[n-2]))
	s.must(err)
	t.Cleanup(func() { _ = again.Close(context.Background()) })
	next := func(want string) {
		t.Helper()
		var got event
		if !again.Next(ctx) {
			t.Fatalf("the stream ends: %v", again.Err())
		}
		if s.must(again.Decode(&got)); got.OperationType != want {
			t.Errorf("the stream goes on with %v, want %s", got, want)
		}
	}
	next("insert")
	next("update")
	next("drop")
	go func() {
		s.stops[0]()
		err := errors.New("not yet")
		for end := time.Now().Add(time.Minute); err != nil && !mongo.IsDuplicateKeyError(err) && time.Now().Before(end); { // drivers try again once, and the server may end twice under them
			_, err = client.Database("test").Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: "after"}})
		}
		written <- err
	}()
	next("insert")
	if err := <-written; !mongo.IsDuplicateKeyError(err) {
		s.must(err)
	}
}

// TestToldOfAll: what is told of servers, and what is for all of them, is of all of them.
func TestToldOfAll(t *testing.T) {
	s := startBeside(t, 3)
	ctx := t.Context()
	for i := range 20 {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 2}, {Key: "b", Value: i % 3}})
	}
	_, err := s.db(0).Collection("c").Indexes().CreateMany(ctx, []mongo.IndexModel{{Keys: bson.D{{Key: "a", Value: 1}}}, {Keys: bson.D{{Key: "b", Value: 1}}}})
	s.must(err)
	both := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}
	for range 3 {
		for n := range s.servers {
			s.count(n, "c", both)
		}
	}
	stage := func(name string) (all []bson.M) {
		t.Helper()
		cursor, err := s.db(1).Collection("c").Aggregate(ctx, mongo.Pipeline{{{Key: name, Value: bson.D{}}}})
		s.must(err)
		s.must(cursor.All(ctx, &all))
		return all
	}
	uses := func() (sum int64) {
		t.Helper()
		for _, ix := range stage("$indexStats") {
			if ix["name"] != "_id_" {
				sum += ix["accesses"].(bson.D)[0].Value.(int64)
			}
		}
		return sum
	}
	if n := uses(); n != 9 {
		t.Errorf("indexes were used %d times, want 9", n)
	}
	hosts := map[any]bool{}
	for _, plan := range stage("$planCacheStats") {
		hosts[plan["host"]] = true
	}
	if len(hosts) != 3 {
		t.Errorf("plans are told of the servers %v", hosts)
	}
	s.must(s.db(2).RunCommand(ctx, bson.D{{Key: "planCacheClear", Value: "c"}}).Err())
	if plans := stage("$planCacheStats"); len(plans) != 0 {
		t.Errorf("after planCacheClear there are %v", plans)
	}
	for _, hidden := range []bool{true, false} { // which begins to count anew, everywhere
		for _, name := range []string{"a_1", "b_1"} {
			s.must(s.db(0).RunCommand(ctx, bson.D{{Key: "collMod", Value: "c"}, {Key: "index", Value: bson.D{{Key: "name", Value: name}, {Key: "hidden", Value: hidden}}}}).Err())
		}
	}
	if n := uses(); n != 0 {
		t.Errorf("indexes that were hidden and unhidden were used %d times", n)
	}
	cursor, err := s.db(1).Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	s.must(err)
	s.must(s.clients[2].Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err())
	for cursor.Next(ctx) {
	}
	if code := codeIn(cursor.Err()); code != 43 {
		t.Errorf("a cursor at another server than the one by which all sessions were killed ends with %v", cursor.Err())
	}
}

// TestTakeOverBeside: who has read beside another server goes on with the data when that has ended, and a new one reads beside it.
func TestTakeOverBeside(t *testing.T) {
	s := startBeside(t, 2)
	s.insert(0, "c", bson.D{{Key: "_id", Value: 1}})
	if n := s.count(1, "c", bson.D{}); n != 1 {
		t.Fatalf("%d documents are seen", n)
	}
	s.stops[0]()
	s.taken(1)
	if s.servers[1].sharing.reads.holder.Current() != nil {
		t.Error("a server that works reads beside another one still")
	}
	s.insert(1, "c", bson.D{{Key: "_id", Value: 2}})
	s.open()
	at := s.answered(2, func() {
		if n := s.count(2, "c", bson.D{}); n != 2 {
			t.Errorf("a server that comes later sees %d documents", n)
		}
	})
	if at != 1 {
		t.Errorf("it has answered %d of 1 reads", at)
	}
}

// TestNothingStale: clients that write by any of three servers and read by any. Whatever was acknowledged before a read begins it sees.
func TestNothingStale(t *testing.T) {
	const (
		clients = 6
		docs    = 4
		turns   = 150
	)
	seed := testseed.Of(t)
	s := startBeside(t, 3)
	var acknowledged [docs]atomic.Int64
	for i := range docs {
		s.insert(0, "c", bson.D{{Key: "_id", Value: i}, {Key: "n", Value: int64(0)}})
	}
	var group sync.WaitGroup
	for client := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		group.Go(func() {
			for range turns {
				doc, at := random.IntN(docs), random.IntN(len(s.clients))
				coll, filter := s.db(at).Collection("c"), bson.D{{Key: "_id", Value: doc}}
				var got struct{ N int64 }
				if random.IntN(2) == 0 {
					update := bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}
					if err := coll.FindOneAndUpdate(t.Context(), filter, update, options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&got); err != nil {
						t.Error(err)
						return
					}
					for before := acknowledged[doc].Load(); before < got.N && !acknowledged[doc].CompareAndSwap(before, got.N); before = acknowledged[doc].Load() {
					}
					continue
				}
				least := acknowledged[doc].Load()
				if err := coll.FindOne(t.Context(), filter).Decode(&got); err != nil {
					t.Error(err)
					return
				}
				if got.N < least {
					t.Errorf("server %d sees %d, and %d was acknowledged before", at, got.N, least)
				}
			}
		})
	}
	group.Wait()
	for n := 1; n < 3; n++ {
		if s.servers[n].sharing.reads.answered.Load() == 0 {
			t.Errorf("server %d has answered no read", n)
		}
	}
}
