package e2e

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/e2e/launch"
)

// threeServers are the processes of a replica set.
type threeServers struct {
	t       *testing.T
	path    string
	args    [3][]string
	servers [3]*launch.Server
	hosts   [3]string
	mu      sync.Mutex // guards directs
	directs [3]*mongo.Client
}

func startThreeServers(t *testing.T, more ...string) *threeServers {
	t.Helper()
	s := &threeServers{t: t, path: binary.Build(t)}
	for i := range s.servers {
		dir := t.TempDir()
		first := binary.Start(t, s.path, "--dbpath", dir)
		_, port, err := net.SplitHostPort(first.Addr) // one that is free
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		s.hosts[i] = first.Addr
		s.args[i] = append([]string{"serve", "--nounixsocket", "--port", port, "--dbpath", dir, "--replSet", "rs0"}, more...)
		s.start(i)
	}
	t.Cleanup(func() {
		for i, server := range s.servers {
			if err := server.Stop(); err != nil {
				t.Errorf("stopping member %d: %v\n%s", i, err, server.Log())
			}
		}
	})
	return s
}

func (s *threeServers) start(i int) {
	s.t.Helper()
	server, err := launch.Start(s.t.Context(), exec.Command(s.path, s.args[i]...))
	if err != nil {
		s.t.Fatal(err)
	}
	s.servers[i] = server
}

func (s *threeServers) direct(i int) *mongo.Client {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directs[i] == nil {
		s.directs[i] = s.connect("mongodb://" + s.hosts[i] + "/?directConnection=true&readPreference=secondaryPreferred&serverSelectionTimeoutMS=500")
	}
	return s.directs[i]
}

func (s *threeServers) connect(uri string) *mongo.Client {
	s.t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}

// initiate begins the set and returns a client of it.
func (s *threeServers) initiate() *mongo.Client {
	s.t.Helper()
	members := bson.A{}
	for i, host := range s.hosts {
		members = append(members, bson.M{"_id": i, "host": host})
	}
	if err := s.direct(0).Database("admin").RunCommand(s.t.Context(), bson.M{"replSetInitiate": bson.M{"_id": "rs0", "members": members}}).Err(); err != nil {
		s.t.Fatal(err)
	}
	return s.connect(fmt.Sprintf("mongodb://%s,%s,%s/?replicaSet=rs0", s.hosts[0], s.hosts[1], s.hosts[2]))
}

// primary is which member is the primary, once one is.
func (s *threeServers) primary() int {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for i := range s.servers {
			var r struct{ IsWritablePrimary bool }
			if err := s.direct(i).Database("admin").RunCommand(s.t.Context(), bson.M{"hello": 1}).Decode(&r); err == nil && r.IsWritablePrimary {
				return i
			}
		}
	}
	s.t.Fatal("nobody is the primary")
	return 0
}

// until returns when f is happy.
func (s *threeServers) until(what string, f func() error) {
	s.t.Helper()
	var err error
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	s.t.Fatalf("%s: %v", what, err)
}

// TestThreeServers: of three processes the primary is killed again and again while clients write. The writers see no error, since their
// driver sends again what got no answer; nothing that was acknowledged is lost and nothing is there twice, on any member; and what
// expires is gone from all of them.
func TestThreeServers(t *testing.T) {
	s := startThreeServers(t)
	client := s.initiate()
	db := client.Database("d")
	if err := db.CreateCollection(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	after := int32(1)
	if _, err := db.Collection("short").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.M{"at": 1}, Options: options.Index().SetExpireAfterSeconds(after)}); err != nil {
		t.Fatal(err)
	}
	const writers, rounds = 4, 3
	var acknowledged [writers]int
	var working sync.WaitGroup
	var over atomic.Bool
	var slowest atomic.Int64
	for w := range writers {
		working.Go(func() {
			for n := 0; !over.Load(); n++ {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				began := time.Now()
				_, err := db.Collection("c").InsertOne(ctx, bson.M{"_id": w*1_000_000 + n})
				if err == nil {
					_, err = db.Collection("sums").UpdateOne(ctx, bson.M{"_id": w}, bson.M{"$inc": bson.M{"n": 1}}, options.UpdateOne().SetUpsert(true))
				}
				if err == nil && n%10 == 0 {
					_, err = db.Collection("short").InsertOne(ctx, bson.M{"at": time.Now()})
				}
				cancel()
				if err != nil {
					t.Errorf("writer %d, write %d: %v", w, n, err)
					return
				}
				acknowledged[w] = n + 1
				if took := int64(time.Since(began)); took > slowest.Load() {
					slowest.Store(took)
				}
			}
		})
	}
	for range rounds {
		time.Sleep(2 * time.Second)
		p := s.primary()
		s.servers[p].Kill()
		time.Sleep(3 * time.Second)
		s.start(p)
	}
	time.Sleep(time.Second)
	over.Store(true)
	working.Wait()
	t.Logf("%v were acknowledged; the slowest write took %v", acknowledged, time.Duration(slowest.Load()))
	for i := range s.servers {
		own := s.direct(i).Database("d")
		s.until(fmt.Sprintf("member %d has all", i), func() error {
			for w := range writers {
				n, err := own.Collection("c").CountDocuments(t.Context(), bson.M{"_id": bson.M{"$gte": w * 1_000_000, "$lt": (w + 1) * 1_000_000}})
				if err != nil || int(n) != acknowledged[w] {
					return fmt.Errorf("of writer %d there are %d documents (%v), and %d were acknowledged", w, n, err, acknowledged[w])
				}
				var sum struct{ N int }
				if err := own.Collection("sums").FindOne(t.Context(), bson.M{"_id": w}).Decode(&sum); err != nil || sum.N != acknowledged[w] {
					return fmt.Errorf("writer %d has added %d (%v), and %d were acknowledged", w, sum.N, err, acknowledged[w])
				}
			}
			n, err := own.Collection("short").CountDocuments(t.Context(), bson.M{})
			if err == nil && n > 0 {
				err = fmt.Errorf("%d documents have not expired", n)
			}
			return err
		})
	}
	var hashes []string
	for i := range s.servers {
		var r struct{ MD5 string }
		if err := s.direct(i).Database("d").RunCommand(t.Context(), bson.M{"dbHash": 1}).Decode(&r); err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, r.MD5)
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Errorf("the members have different data: %v", hashes)
	}
}

// term is that of a member's last election.
func (s *threeServers) term(i int) int64 {
	s.t.Helper()
	var r struct{ Term int64 }
	if err := s.direct(i).Database("admin").RunCommand(s.t.Context(), bson.M{"replSetGetStatus": 1}).Decode(&r); err != nil {
		s.t.Fatal(err)
	}
	return r.Term
}

// counts is an error unless the collections have so many documents.
func (s *threeServers) counts(db *mongo.Database, want map[string]int) error {
	for name, n := range want {
		if got, err := db.Collection(name).CountDocuments(s.t.Context(), bson.M{}); err != nil || int(got) != n {
			return fmt.Errorf("%s has %d documents (%v), and there should be %d", name, got, err, n)
		}
	}
	return nil
}
