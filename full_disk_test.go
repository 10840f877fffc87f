package ebb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv/smalldisk"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/standin"
)

var (
	fullRounds = flag.Int("full-rounds", 3, "how often TestFullDisk fills its disk, expires and restarts")
	fullSeed   = flag.Uint64("full-seed", 0, "the seed of TestFullDisk; 0 for any")
)

const (
	fullDisk       = 64 << 20
	outOfDiskSpace = 14031
	filledBytes    = 20_000 // of a document
	// Room that comes back in the background is looked for so often, which is two minutes: it ends at all.
	patientLooks = 12_000
	lookPause    = 10 * time.Millisecond
)

// fullServer is a server on a small disk.
type fullServer struct {
	*testing.T
	disk   *smalldisk.Disk
	clock  *clock.Fake
	path   string
	server *Server
	client *mongo.Client
	coll   *mongo.Collection
	stop   context.CancelFunc
	served chan error
	log    lockedLog
}

// lockedLog may be read while it is written.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// turned is a Clock that the test turns.
type turned struct{ *clock.Fake }

func (c turned) NewTimer(d time.Duration) Timer { return c.Fake.NewTimer(d) }

func (s *fullServer) start() {
	s.Helper()
	s.log.text.Reset()
	_, err := s.disk.Stat("store/EBB-RESERVE")
	reserved := err == nil
	o := Options{Port: AnyPort, DBPath: s.path, Clock: turned{s.clock}, Machine: &standin.Machine{Disk: s.disk}, Log: serverlog.New(&s.log, 0).Logger(), ScriptsInProcess: true,
		OnFailure: func(err error) { s.Errorf("the store failed: %v", err) }}
	s.server, err = Open(o)
	if err != nil && !reserved && strings.Contains(err.Error(), "too little to open the store") { // which it may say, once that is used up
		s.Logf("%v", err)
		s.disk.Resize(fullDisk + fullDisk/4) // somebody makes room: it may be all the store's
		s.server, err = Open(o)
	}
	if err != nil {
		s.Fatalf("%v (reserve: %v)\n%s\n%s", err, reserved, s.files(), &s.log)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.served = make(chan error, 1)
	go func() { s.served <- s.server.Serve(ctx) }()
	if s.client, err = mongo.Connect(options.Client().ApplyURI("mongodb://" + s.server.Addr())); err != nil {
		s.Fatal(err)
	}
	s.coll = s.client.Database("test").Collection("c")
}

// files are those of the store, and what each takes.
func (s *fullServer) files() string {
	var b strings.Builder
	names, _ := s.disk.List("store")
	for _, name := range names {
		if info, err := s.disk.Stat("store/" + name); err == nil {
			fmt.Fprintf(&b, "%9d %s\n", info.Size(), name)
		}
	}
	used, _ := s.disk.Used()
	fmt.Fprintf(&b, "%9d in use\n", used)
	return b.String()
}

func (s *fullServer) end() {
	s.Helper()
	if err := s.client.Disconnect(context.Background()); err != nil {
		s.Error(err)
	}
	s.stop()
	if err := <-s.served; err != nil {
		s.Fatal(err)
	}
	err := s.server.Close()
	if err != nil && strings.Contains(err.Error(), "the disk is full: what is not acknowledged is lost") {
		// Something waited for room, and has the disk for good in this process. Another one finds what is there.
		s.Logf("%v", err)
		s.disk, err = s.disk.Crash(0, rand.New(rand.NewPCG(0, 0)))
	}
	if err != nil {
		s.Fatal(err)
	}
}

// fill inserts documents until they are refused, and says which were acknowledged: their numbers follow from first. So many of them have room, though maybe not
// at once: the server looks at its disk once a second, and what is compacted takes some until it is done.
func (s *fullServer) fill(first, least int, rng *rand.Rand) (next int) {
	s.Helper()
	filling := make([]byte, filledBytes)
	for n, refused := first, 0; ; {
		for i := range filling {
			filling[i] = byte(rng.Uint32())
		}
		_, err := s.coll.InsertOne(s.Context(), bson.D{{Key: "_id", Value: n}, {Key: "at", Value: s.clock.Now()}, {Key: "x", Value: filling}})
		switch {
		case err == nil:
			n++
		case !isOutOfDiskSpace(err):
			s.Fatal(err)
		case n >= first+least:
			return n
		case refused == patientLooks:
			s.Fatalf("%d documents fill a disk of %d\n%s\n%s", n-first, fullDisk, s.files(), &s.log)
		default:
			refused++
			<-clock.Wall().NewTimer(lookPause).C()
		}
	}
}

func isOutOfDiskSpace(err error) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(outOfDiskSpace)
}

func (s *fullServer) count(want int) {
	s.Helper()
	if n, err := s.coll.CountDocuments(s.Context(), bson.D{}); err != nil || n != int64(want) {
		s.Fatalf("%d of %d documents, %v\n%s", n, want, err, &s.log)
	}
}

// TestFullDisk fills a disk through a server, lets everything expire on the full disk, and restarts: nothing that was
// acknowledged is lost before its time, all of it goes in time, and the room comes back.
func TestFullDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	seed := *fullSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("go test . -run TestFullDisk -args -full-rounds %d -full-seed %d", *fullRounds, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &fullServer{T: t, disk: smalldisk.New(fullDisk), clock: clock.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), path: t.TempDir()}
	s.start()
	_, err := s.coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(3600)})
	if err != nil {
		t.Fatal(err)
	}
	for round := range *fullRounds {
		t.Logf("round %d", round)
		first := round * 1_000_000
		next := s.fill(first, fullDisk/3/filledBytes, rng)
		if _, err := s.disk.Stat("store/EBB-RESERVE"); err == nil && round%2 == 1 { // somebody else takes the rest
			used, _ := s.disk.Used()
			s.disk.Resize(used)
		}
		s.count(next - first)
		for tries := 0; !s.refuse(first, rng); tries++ { // a compaction has ended since, and there is room again
			if tries == 50 {
				t.Fatalf("round %d: the disk does not get full\n%s", round, s.files())
			}
			if tries >= 10 { // what is taken back leaves room again and again: somebody else takes that
				used, _ := s.disk.Used()
				s.disk.Resize(used)
			}
			next = s.fill(next, 0, rng)
		}
		s.end()
		s.start()
		s.count(next - first)
		if _, err := s.coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: first}}); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		s.clock.Advance(2 * time.Hour)
		if err := s.server.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.count(0)
		if n := strings.Count(s.log.String(), "\n") - strings.Count(s.log.String(), `"Slow query"`); n > 200 { // a busy machine is slow
			t.Fatalf("round %d: %d lines in the log\n%s", round, n, &s.log)
		}
		s.end()
		used, _ := s.disk.Used()
		s.disk.Resize(max(fullDisk, used)) // a disk that was made larger does not get smaller than what is on it
		s.start()
		s.count(0)
		s.awaitRoom()
	}
	s.end()
}

// TestOpenAgain: a server that cannot be opened since its disk is full leaves nothing open that keeps another from it, in the same process.
func TestOpenAgain(t *testing.T) {
	disk := smalldisk.New(fullDisk)
	o := Options{Port: AnyPort, DBPath: t.TempDir(), Machine: &standin.Machine{Disk: disk}, ScriptsInProcess: true, MinFreeBytes: -1, ReserveBytes: -1, Quiet: true}
	run := func(f func(*mongo.Collection)) {
		asServer(t, o, func(_ *Server, c *mongo.Client) { f(c.Database("d").Collection("c")) })
	}
	docs := make([]any, 1000)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}}
	}
	run(func(c *mongo.Collection) {
		if _, err := c.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	})
	used, _ := disk.Used()
	disk.Resize(used)
	for range 2 {
		if s, err := Open(o); err == nil {
			_ = s.Close()
			t.Fatal("it was opened on a full disk")
		} else if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	disk.Resize(fullDisk)
	run(func(c *mongo.Collection) {
		if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(len(docs)) {
			t.Errorf("%d documents, %v", n, err)
		}
	})
}

// refuse tries what adds data, each of which is refused with MongoDB's code for it. Where one is not, as there is room, it takes
// back what was added, and says so. An update that was taken stays: each try has other data, as one that changes nothing is never refused.
func (s *fullServer) refuse(id int, rng *rand.Rand) (all bool) {
	s.Helper()
	y := make([]byte, 8<<20)
	binary.LittleEndian.PutUint64(y, rng.Uint64())
	large := bson.D{{Key: "$set", Value: bson.D{{Key: "y", Value: y}}}}
	_, update := s.coll.UpdateOne(s.Context(), bson.D{{Key: "_id", Value: id}}, large)
	_, upsert := s.coll.UpdateOne(s.Context(), bson.D{{Key: "_id", Value: "none"}}, large, options.UpdateOne().SetUpsert(true))
	_, unordered := s.coll.InsertMany(s.Context(), []any{bson.D{{Key: "_id", Value: "more"}, {Key: "y", Value: y}}}, options.InsertMany().SetOrdered(false))
	all = true
	for name, err := range map[string]error{"update": update, "upsert": upsert, "insert": unordered} {
		switch {
		case err == nil:
			all = false
		case !isOutOfDiskSpace(err):
			s.Fatalf("%s on a full disk: %v", name, err)
		}
	}
	if !all {
		if _, err := s.coll.DeleteMany(s.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: "string"}}}}); err != nil {
			s.Fatal(err)
		}
	}
	return all
}

// awaitRoom returns when the disk is nearly empty again: files go in the background.
func (s *fullServer) awaitRoom() {
	s.Helper()
	var used int64
	for range patientLooks {
		if used, _ = s.disk.Used(); used < fullDisk/4 {
			return
		}
		<-clock.Wall().NewTimer(lookPause).C()
	}
	s.Fatalf("%d bytes of %d stay in use\n%s\n%s", used, fullDisk, s.files(), &s.log)
}
