// Package hostile has many clients, in a process of their own, ask the real server for as much as they can, at random: large sorts, groups and facets,
// scripts, regular expressions, replies that they do not read, cursors that they leave. Another client looks for documents by
// _id meanwhile: the server must live, and that client must hardly notice.
//
//	go test ./e2e/hostile -v -timeout 0 -args -for 1h -group /sys/fs/cgroup/memory/small
//
// The group is a control group, of version 1 or 2, that was made with a limit before; the server is started in it.
package hostile

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
	"github.com/ebbdb/ebb/internal/clock"
)

var (
	length = flag.Duration("for", 10*time.Second, "how long the server is under attack")
	seed   = flag.Uint64("seed", 0, "of what is asked; 0 takes one and prints it")
	group  = flag.String("group", "", "the folder of a control group to start the server in")
	kinds  = flag.String("kinds", "", "the attacks to make, separated by commas; all of them by default")
	bound  = flag.Duration("p99", 0, "what 99 of 100 finds by _id must stay below; 0 only prints it")
	each   = flag.Int("clients", 3, "how many clients make each attack")
	target = flag.String("attack", "", "the address of a server to attack: the test is the attackers' process and does nothing else")
)

const (
	dbName = "hostile"
	// smallDocs of about a kilobyte and largeDocs of some megabytes are there from the beginning.
	smallDocs = 60_000
	largeDocs = 8
	largeSize = 6 << 20
	// victimPause is between two finds by _id.
	victimPause = 2 * time.Millisecond
	// endLimit is how long what was begun may go on when the attack is over.
	endLimit = time.Minute
	// tellEach is how often a long run tells how it stands.
	tellEach = 5 * time.Minute
)

func TestHostileClients(t *testing.T) {
	if *target != "" {
		attackAll(t, *target)
		return
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-args -for %v -seed %d -kinds '%s'", *length, *seed, *kinds)
	path := binary.Build(t)
	if *group != "" {
		path = inGroup(t, path)
	}
	server := binary.Start(t, path, "--dbpath", t.TempDir(), "--quiet")
	client := connect(t, server)
	fill(t, client.Database(dbName))

	quiet := newVictim(client)
	quiet.run(t, 2*time.Second, 0)
	t.Logf("find by _id before: %s", quiet)

	attackers := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestHostileClients", "-test.v", "-test.timeout=0", "-attack="+server.Addr,
		fmt.Sprint("-for=", *length), fmt.Sprint("-seed=", *seed), "-kinds="+*kinds, fmt.Sprint("-clients=", *each))
	var told bytes.Buffer
	attackers.Stdout, attackers.Stderr = &told, &told
	if err := attackers.Start(); err != nil {
		t.Fatal(err)
	}
	v := newVictim(client)
	v.run(t, *length, server.PID())
	err := attackers.Wait()
	if how := server.Crashed(); how != "" {
		t.Fatalf("the server ended: %s\n%s", how, server.Log())
	}
	t.Logf("the attackers: %s", &told)
	if err != nil {
		t.Error(err)
	}
	t.Logf("find by _id under attack: %s", v)
	t.Logf("memory: %d MB resident at most; %s", v.resident>>20, memoryOf(t, client))
	if *bound > 0 && v.quantile(0.99) > *bound {
		t.Errorf("p99 %v", v.quantile(0.99))
	}
	time.Sleep(2 * time.Second)
	t.Logf("memory 2 s later: %d MB resident", resident(server.PID())>>20)
}

// attackAll has all attackers attack the server at addr.
func attackAll(t *testing.T, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), *length)
	defer cancel()
	var all sync.WaitGroup
	counts := map[string]*tally{}
	for i, a := range attacks() {
		if *kinds != "" && !slices.Contains(strings.Split(*kinds, ","), a.name) {
			continue
		}
		n := &tally{}
		counts[a.name] = n
		for k := range *each {
			random := rand.New(rand.NewPCG(*seed, uint64(i*1000+k)))
			all.Go(func() { attack(ctx, t, addr, a, random, n) })
		}
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(endLimit):
		t.Errorf("some attacks still went on %v later", endLimit)
	}
	for _, a := range attacks() {
		if n := counts[a.name]; n != nil {
			t.Logf("%-12s %6d done, %5d refused: %s", a.name, n.done.Load(), n.failed.Load(), n.last())
		}
	}
}

// inGroup is a script that starts the server in the control group.
func inGroup(t *testing.T, path string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "ebb")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > '%s/cgroup.procs' && exec '%s' \"$@\"\n", *group, path)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return script
}

func connect(t *testing.T, server *binary.Server) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI("directConnection=true&serverSelectionTimeoutMS=5000")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

func fill(t *testing.T, db *mongo.Database) {
	t.Helper()
	pad := strings.Repeat("lorem ipsum ", 80)
	for at := 0; at < smallDocs; at += 1000 {
		var docs []any
		for i := at; i < at+1000; i++ {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: (i * 7919) % smallDocs}, {Key: "k", Value: i % 97},
				{Key: "next", Value: i + 1}, {Key: "s", Value: fmt.Sprintf("%x-%d", i*7919, i%13)}, {Key: "pad", Value: pad}})
		}
		if _, err := db.Collection("small").InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	large := strings.Repeat("x", largeSize)
	for i := range largeDocs {
		if _, err := db.Collection("large").InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: large}}); err != nil {
			t.Fatal(err)
		}
	}
}

// tally counts what became of one kind of attack.
type tally struct {
	done, failed atomic.Int64
	mu           sync.Mutex
	why          map[string]int
}

func (n *tally) add(err error) {
	if err == nil {
		n.done.Add(1)
		return
	}
	n.failed.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.why == nil {
		n.why = map[string]int{}
	}
	why := err.Error()
	var command mongo.CommandError
	if errors.As(err, &command) {
		why = command.Name
	}
	n.why[why[:min(len(why), 60)]]++
}

func (n *tally) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.why)
}

// attack makes one attack after the other, over a connection of its own, until ctx ends.
func attack(ctx context.Context, t *testing.T, addr string, a attackKind, random *rand.Rand, n *tally) {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + addr + "/?directConnection=true&maxPoolSize=2&serverSelectionTimeoutMS=5000"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	for ctx.Err() == nil {
		err := a.make(ctx, &attacker{client.Database(dbName), addr, random})
		if ctx.Err() == nil {
			n.add(err)
		}
	}
}

// victim looks for documents by _id.
type victim struct {
	coll     *mongo.Collection
	times    []time.Duration
	resident int64
}

func newVictim(client *mongo.Client) *victim {
	return &victim{coll: client.Database(dbName).Collection("small")}
}

func (v *victim) run(t *testing.T, d time.Duration, pid int) {
	wall := clock.Wall()
	told := time.Duration(0)
	for began := wall.Now(); clock.Since(wall, began) < d; {
		if ran := clock.Since(wall, began); ran-told >= tellEach {
			told = ran
			t.Logf("after %v: %v, %d MB resident at most", told.Round(time.Second), &victim{times: slices.Sorted(slices.Values(v.times))}, v.resident>>20)
		}
		started := wall.Now()
		id := rand.IntN(smallDocs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		doc, err := v.coll.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Raw()
		cancel()
		if err != nil || doc.Lookup("_id").AsInt64() != int64(id) {
			t.Errorf("find by _id: %v, %v", doc, err)
			return
		}
		v.times = append(v.times, clock.Since(wall, started))
		if pid > 0 && len(v.times)%50 == 0 {
			v.resident = max(v.resident, resident(pid))
		}
		time.Sleep(victimPause)
	}
	slices.Sort(v.times)
}

func (v *victim) quantile(q float64) time.Duration {
	if len(v.times) == 0 {
		return 0
	}
	return v.times[min(len(v.times)-1, int(q*float64(len(v.times))))]
}

func (v *victim) String() string {
	return fmt.Sprintf("%d, p50 %v, p90 %v, p99 %v, p99.9 %v, at most %v", len(v.times), v.quantile(0.5), v.quantile(0.9), v.quantile(0.99), v.quantile(0.999), v.quantile(1))
}

// resident is how many bytes of memory the process has, 0 where the system does not say.
func resident(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

func memoryOf(t *testing.T, client *mongo.Client) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Raw()
	if err != nil {
		t.Error(err)
		return ""
	}
	return status.Lookup("ebbMemory").String()
}
