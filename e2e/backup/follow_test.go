package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestFollowUnderKill kills the server, the one who follows its oplog, or both, again and again. What was shipped then leads to exactly what is
// in the server.
func TestFollowUnderKill(t *testing.T) {
	x := newTrial(t)
	set := []string{"--dbpath", x.data, "--replSet", "rs", "--replSetInitiate"}
	x.server = binary.Start(t, x.path, set...)
	address := x.server.Addr // which it keeps, for the repository knows the source by it
	port := address[strings.LastIndex(address, ":")+1:]
	follower := x.follow()
	for round := range *rounds {
		ctx, stop := context.WithCancel(t.Context())
		db := database(t, x.server)
		var all sync.WaitGroup
		for _, w := range x.writers {
			all.Go(func() { w.run(ctx, db) })
		}
		time.Sleep(time.Duration(100+x.random.IntN(900)) * time.Millisecond)
		what := x.random.IntN(3)
		if what != 0 {
			follower.kill()
		}
		if what != 1 {
			x.server.Kill()
		}
		stop()
		all.Wait()
		for _, w := range x.writers {
			if w.refused != nil {
				t.Errorf("writer %d: the server refused a write: %v", w.number, w.refused)
			}
		}
		if what != 1 {
			x.server = binary.Start(t, x.path, append(set, "--port", port)...)
		}
		if what != 0 {
			follower = x.follow()
		} else {
			follower = x.goesOn(follower)
		}
		t.Logf("round %d: %s killed, %d acknowledged", round+1, []string{"the server", "the follower", "both"}[what], x.acknowledged())
		if t.Failed() {
			t.FailNow()
		}
	}
	x.awaitFollowing(follower)
	db := database(t, x.server)
	if _, err := db.Collection("end").InsertOne(t.Context(), bson.D{}); err != nil { // a backup of a moment ago has all before it, and nothing would be shipped
		t.Fatal(err)
	}
	last := lastEntry(t, db)
	x.awaitShipped(follower, last)
	follower.kill()
	dir := filepath.Join(t.TempDir(), "back")
	t.Log(x.said("restore", x.repository, "--dbpath", dir, "--to", fmt.Sprintf("%d:%d", last.T, last.I)))
	restored := database(t, binary.Start(t, x.path, "--dbpath", dir))
	for _, w := range x.writers {
		done, _ := w.books()
		w.compare(t, restored, done, w.hasSent())
	}
	if got, want := contents(t, restored), contents(t, database(t, x.server)); got != want {
		t.Errorf("the restored data are not those of the server: %d bytes and %d", len(got), len(want))
	}
	x.server.Kill()
}

// TestFollowOverRestart: the server is stopped and started again under one follower, which goes on without a gap; where it is started on another history the
// follower ends, and says why.
func TestFollowOverRestart(t *testing.T) {
	x := newTrial(t)
	set := []string{"--dbpath", x.data, "--replSet", "rs", "--replSetInitiate"}
	x.server = binary.Start(t, x.path, set...)
	port := x.server.Addr[strings.LastIndex(x.server.Addr, ":")+1:]
	follower := x.follow()
	insert := func(n int) bson.Timestamp {
		db := database(t, x.server)
		for i := range 100 {
			if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 100*n + i}}); err != nil {
				t.Fatal(err)
			}
		}
		return lastEntry(t, db)
	}
	x.awaitFollowing(follower)
	x.awaitShipped(follower, insert(0))
	if err := x.server.Stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // in which it is asked in vain
	x.server = binary.Start(t, x.path, append(set, "--port", port)...)
	last := insert(1)
	x.awaitShipped(follower, last)
	dir := filepath.Join(t.TempDir(), "back")
	x.ebb("restore", x.repository, "--dbpath", dir, "--to", fmt.Sprintf("%d:%d", last.T, last.I))
	restored := binary.Start(t, x.path, "--dbpath", dir)
	if n, err := database(t, restored).Collection("c").CountDocuments(t.Context(), bson.D{}); err != nil || n != 200 {
		t.Errorf("%d documents, %v; want 200", n, err)
	}
	if ids, err := filepath.Glob(filepath.Join(x.repository, "backups", "*.json")); err != nil || len(ids) != 1 {
		t.Errorf("there are %d backups, and one is enough for one follower: %v", len(ids), err)
	}

	if err := x.server.Stop(); err != nil {
		t.Fatal(err)
	}
	set[1] = filepath.Join(t.TempDir(), "other")
	x.server = binary.Start(t, x.path, append(set, "--port", port)...)
	<-follower.ended
	if said := follower.wrong.String(); follower.err == nil || !strings.Contains(said, "does not go on behind what was shipped") || !strings.Contains(said, "trying again in") {
		t.Errorf("behind another history: %v: %s", follower.err, said)
	}
}
