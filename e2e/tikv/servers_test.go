package tikv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/launch"
)

// over connects to several servers, as an application does.
func over(t *testing.T, servers ...*launch.Server) *mongo.Client {
	t.Helper()
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Addr)
	}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + strings.Join(hosts, ",") + "/"))
	noError(t, err)
	disconnectAtEnd(t, client)
	return client
}

// TestServers: three servers share a keyspace. Each answers for all, one works; when that is killed, stopped or frozen another goes on, nothing
// acknowledged is lost, and a retryable write happens once.
func TestServers(t *testing.T) {
	c, ebb := open(t)
	servers := []*launch.Server{serve(t, c, ebb), serve(t, c, ebb), serve(t, c, ebb)}
	ctx := t.Context()
	for i, s := range servers {
		client := connect(t, s)
		var hello struct {
			Msg     string
			SetName string
		}
		noError(t, client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello))
		if hello.Msg != "isdbgrid" || hello.SetName != "" {
			t.Errorf("server %d says of itself %+v", i, hello)
		}
		noError(t, client.Database("admin").RunCommand(ctx, bson.D{{Key: "isdbgrid", Value: 1}}).Err())
		_, err := client.Database("test").Collection("each").InsertOne(ctx, bson.D{{Key: "_id", Value: i}})
		noError(t, err)
		if n, err := client.Database("test").Collection("each").CountDocuments(ctx, bson.D{}); err != nil || n != int64(i+1) {
			t.Errorf("server %d sees %d documents, %v", i, n, err)
		}
	}
	err := connect(t, servers[1]).Database("admin").RunCommand(ctx, bson.D{{Key: "shutdown", Value: 1}}).Err()
	if code := codeOf(err); code != 20 {
		t.Errorf("shutdown of one that hands on: %v", err)
	}
	client := over(t, servers...)
	sessions(t, client)
	load := startLoad(t, client)
	for _, fault := range []struct {
		name string
		end  func(s *launch.Server)
		back func(s *launch.Server) *launch.Server
	}{
		{"frozen", func(s *launch.Server) { noError(t, syscall.Kill(s.PID(), syscall.SIGSTOP)) }, func(s *launch.Server) *launch.Server {
			noError(t, syscall.Kill(s.PID(), syscall.SIGCONT))
			return s
		}},
		{"killed", (*launch.Server).Kill, func(*launch.Server) *launch.Server { return serve(t, c, ebb) }},
		{"stopped", func(s *launch.Server) { noError(t, s.Stop()) }, func(*launch.Server) *launch.Server { return serve(t, c, ebb) }},
	} {
		at := working(t, servers)
		gap := load.gap(t, func() { fault.end(servers[at]) })
		if gap > clientLimit*3/4 {
			t.Errorf("the server that works is %s, and nobody goes on for %v", fault.name, gap)
		}
		t.Logf("the server that works is %s: writes go on after %v", fault.name, gap.Round(100*time.Millisecond))
		servers[at] = fault.back(servers[at])
		load.gap(t, func() {}) // it is back beside the load, which goes on
		load.end(t)
		load.check(t, connect(t, servers[(at+1)%len(servers)]))
		load = load.goOn(t, over(t, servers...)) // one has another port
	}
	load.end(t)
	load.check(t, over(t, servers...))
	for i, s := range servers { // the frozen one among them
		eventually(t, fmt.Sprint("server ", i), func() error {
			return connect(t, s).Database("test").Collection("each").FindOne(ctx, bson.D{{Key: "_id", Value: 1}}).Err()
		})
	}
	for _, s := range servers {
		noError(t, s.Stop())
	}
}

func codeOf(err error) int {
	var e mongo.CommandError
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return 0
}

// load is clients that count: each adds 1 to one of some documents, and notes what was acknowledged.
type load struct {
	docs         *mongo.Collection
	stop         context.CancelFunc
	clients      sync.WaitGroup
	acknowledged *[loadDocs]atomic.Int64
	unknown      *[loadDocs]atomic.Int64 // failed, and may have happened
	last         atomic.Int64            // when one was acknowledged, in milliseconds since the epoch
}

const (
	loadDocs = 8
	// clientLimit is how long a client waits for a server that hangs. Others do not wait for that.
	clientLimit = 40 * time.Second
)

func startLoad(t *testing.T, client *mongo.Client) *load {
	return (&load{acknowledged: new([loadDocs]atomic.Int64), unknown: new([loadDocs]atomic.Int64)}).goOn(t, client)
}

func (l *load) goOn(t *testing.T, client *mongo.Client) *load {
	t.Helper()
	next := &load{docs: client.Database("test").Collection("counted"), acknowledged: l.acknowledged, unknown: l.unknown}
	ctx, stop := context.WithCancel(t.Context())
	next.stop = stop
	for i := range loadDocs {
		next.clients.Go(func() {
			for ctx.Err() == nil {
				one, cancel := context.WithTimeout(context.Background(), clientLimit)
				done, err := next.docs.UpdateOne(one, bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
				cancel()
				if err != nil {
					next.unknown[i].Add(1)
					time.Sleep(10 * time.Millisecond)
					continue
				}
				if done.ModifiedCount+done.UpsertedCount != 1 {
					t.Errorf("a write is acknowledged as %+v", done)
				}
				next.acknowledged[i].Add(1)
				next.last.Store(time.Now().UnixMilli())
			}
		})
	}
	return next
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.clients.Wait()
}

// working is which of the servers works on the data: whichever is asked, that one answers.
func working(t *testing.T, servers []*launch.Server) int {
	t.Helper()
	var status struct{ PID int }
	noError(t, connect(t, servers[0]).Database("admin").RunCommand(t.Context(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status))
	for i, s := range servers {
		if s.PID() == status.PID {
			return i
		}
	}
	t.Fatalf("the process %d is none of the servers", status.PID)
	return 0
}

// gap is how long nothing was acknowledged from end on.
func (l *load) gap(t *testing.T, end func()) time.Duration {
	t.Helper()
	eventually(t, "a first write", func() error {
		if l.last.Load() == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	end()
	began := time.Now()
	time.Sleep(500 * time.Millisecond) // what was on its way
	since := time.Now().UnixMilli()
	eventually(t, "writes", func() error {
		if l.last.Load() <= since {
			return errors.New("none since")
		}
		return nil
	})
	return time.Since(began)
}

// check: each document was counted as often as was acknowledged, and no write of which nothing is known more than once.
func (l *load) check(t *testing.T, client *mongo.Client) {
	t.Helper()
	docs := client.Database("test").Collection("counted")
	total, failed := int64(0), int64(0)
	for i := range loadDocs {
		var doc struct{ N int64 }
		noError(t, docs.FindOne(t.Context(), bson.D{{Key: "_id", Value: i}}).Decode(&doc))
		low := l.acknowledged[i].Load()
		high := low + l.unknown[i].Load()
		if doc.N < low || doc.N > high {
			t.Errorf("document %d was counted %d times; %d were acknowledged, and of %d nothing is known", i, doc.N, low, high-low)
		}
		total, failed = total+low, failed+high-low
	}
	t.Logf("%d writes were acknowledged, %d failed", total, failed)
}

// sessions: transactions, retryable writes and change streams, as drivers offer them to a set or to routers.
func sessions(t *testing.T, client *mongo.Client) {
	t.Helper()
	ctx := t.Context()
	db := client.Database("sessions")
	accounts := db.Collection("accounts")
	_, err := accounts.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: "a"}, {Key: "n", Value: 100}}, bson.D{{Key: "_id", Value: "b"}, {Key: "n", Value: 0}}})
	noError(t, err)
	stream, err := db.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetFullDocument(options.UpdateLookup))
	noError(t, err)
	defer stream.Close(context.Background())
	session, err := client.StartSession()
	noError(t, err)
	defer session.EndSession(context.Background())
	transfer := func(n int, fails error) error {
		_, err := session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			for id, by := range map[string]int{"a": -n, "b": n} {
				if _, err := accounts.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: by}}}}); err != nil {
					return nil, err
				}
			}
			_, err := db.Collection("log").InsertOne(ctx, bson.D{{Key: "n", Value: n}})
			return nil, errors.Join(err, fails)
		})
		return err
	}
	noError(t, transfer(30, nil))
	changed := errors.New("changed my mind")
	if err := transfer(50, changed); !errors.Is(err, changed) {
		t.Errorf("a transaction that is given up: %v", err)
	}
	var both []struct{ N int }
	cursor, err := accounts.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetBatchSize(1))
	noError(t, err)
	noError(t, cursor.All(ctx, &both))
	if len(both) != 2 || both[0].N != 70 || both[1].N != 30 {
		t.Errorf("after a transfer of 30 there are %v", both)
	}
	var kinds []string
	var place bson.Raw
	for range 3 {
		if !stream.Next(ctx) {
			t.Fatalf("the change stream ends: %v", stream.Err())
		}
		var event struct{ OperationType string }
		noError(t, stream.Decode(&event))
		kinds = append(kinds, event.OperationType)
		if place == nil {
			place = stream.ResumeToken()
		}
	}
	if got := strings.Join(kinds, " "); got != "update update insert" {
		t.Errorf("the change stream tells of %s", got)
	}
	again, err := db.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(place))
	noError(t, err)
	defer again.Close(context.Background())
	if !again.Next(ctx) {
		t.Errorf("a change stream that goes on: %v", again.Err())
	}
	// The same write, sent twice, happens once. The session is never ended: nobody else can write with it after such a number.
	numbered, err := client.StartSession()
	noError(t, err)
	for range 2 {
		noError(t, db.RunCommand(mongo.NewSessionContext(ctx, numbered), bson.D{{Key: "update", Value: "accounts"}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: "a"}}},
			{Key: "u", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}}}, {Key: "txnNumber", Value: int64(1 << 20)}}).Err())
	}
	var a struct{ N int }
	noError(t, accounts.FindOne(ctx, bson.D{{Key: "_id", Value: "a"}}).Decode(&a))
	if a.N != 71 {
		t.Errorf("a write that was sent twice leaves %d, want 71", a.N)
	}
}

// TestReplicaSet: the same with a replica set of one, before and after a crash.
func TestReplicaSet(t *testing.T) {
	c, ebb := open(t)
	begin := func() *launch.Server {
		t.Helper()
		s, err := launch.Start(t.Context(), exec.Command(ebb, "serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket",
			"--replSet", "rs0", "--replSetInitiate"))
		noError(t, err)
		t.Cleanup(s.Kill)
		return s
	}
	s := begin()
	sessions(t, connect(t, s))
	if second, err := launch.Start(t.Context(), exec.Command(ebb, "serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket", "--replSet", "rs0")); err == nil {
		second.Kill()
		t.Error("a second server works on the keyspace")
	} else if !strings.Contains(err.Error(), "one server at a time works on a keyspace") {
		t.Errorf("a second server is refused so: %v", err)
	}
	s.Kill()
	again := begin()
	var a struct{ N int }
	noError(t, connect(t, again).Database("sessions").Collection("accounts").FindOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}).Decode(&a))
	if a.N != 71 {
		t.Errorf("after a crash there are %d, want 71", a.N)
	}
	_, err := connect(t, again).Database("sessions").Collection("accounts").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
	noError(t, err)
	noError(t, again.Stop())
}

// TestServersLogIn: where clients log in, they do at any of the servers, and servers show each other a key. Who hands on gives nobody more than he has.
func TestServersLogIn(t *testing.T) {
	c, ebb := open(t)
	key := filepath.Join(t.TempDir(), "key")
	noError(t, os.WriteFile(key, []byte(strings.Repeat("k3y+", 16)), 0o600))
	begin := func(args ...string) *launch.Server {
		t.Helper()
		s, err := launch.Start(t.Context(), exec.Command(ebb, append([]string{"serve", "--storageEngine", "tikv", "--tikvPD", c.PD(), "--port", "0", "--nounixsocket"}, args...)...))
		noError(t, err)
		t.Cleanup(s.Kill)
		return s
	}
	first, second := begin("--auth", "--keyFile", key), begin("--auth", "--keyFile", key)
	ctx := t.Context()
	user := bson.D{{Key: "createUser", Value: "ann"}, {Key: "pwd", Value: "secret"}, {Key: "roles", Value: bson.A{"root"}}}
	if err := connect(t, second).Database("admin").RunCommand(ctx, user).Err(); codeOf(err) != 13 {
		t.Errorf("the first user, made through a server that hands on: %v", err)
	}
	noError(t, connect(t, first).Database("admin").RunCommand(ctx, user).Err())
	for i, s := range []*launch.Server{first, second} {
		if err := connect(t, s).Database("test").Collection("c").FindOne(ctx, bson.D{}).Err(); codeOf(err) != 13 {
			t.Errorf("server %d answers one who has not logged in: %v", i, err)
		}
		for password, good := range map[string]bool{"secret": true, "wrong": false} {
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://ann:" + password + "@" + s.Addr + "/?directConnection=true"))
			noError(t, err)
			_, err = client.Database("test").Collection("c").InsertOne(ctx, bson.D{{Key: "pad", Value: make([]byte, 100<<10)}}) // more than nobody may send
			if (err == nil) != good {
				t.Errorf("server %d, password %s: %v", i, password, err)
			}
			noError(t, client.Disconnect(ctx))
		}
	}
	// Who has logged in goes on when the server that works is gone.
	both, err := mongo.Connect(options.Client().ApplyURI("mongodb://ann:secret@" + first.Addr + "," + second.Addr + "/"))
	noError(t, err)
	disconnectAtEnd(t, both)
	insert := func() error {
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		_, err := both.Database("test").Collection("c").InsertOne(short, bson.D{})
		return err
	}
	noError(t, insert())
	first.Kill()
	eventually(t, "one who has logged in", insert)
	// One without the key hands nobody on.
	stranger := begin()
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := connect(t, stranger).Database("admin").RunCommand(short, bson.D{{Key: "ping", Value: 1}}).Err(); err == nil {
		t.Error("a server without the key hands clients on")
	}
}
