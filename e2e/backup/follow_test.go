package backup

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestFollowUnderKill kills the server, the one who follows its oplog, or both, again and again. What was shipped then leads to exactly what is
// in the server.
func TestFollowUnderKill(t *testing.T) {
	x := newTrial(t)
	set := []string{"--dbpath", x.data, "--replSet", "rs", "--replSetInitiate"}
	x.server = binary.Start(t, x.path, set...)
	address := x.server.Addr // which it keeps, for the repository knows the source by it
	port := address[bytes.LastIndexByte([]byte(address), ':')+1:]
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
			_ = follower.Process.Kill()
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
		if what != 0 { // who has lost the server goes on by himself
			_ = follower.Wait()
			follower = x.follow()
		}
		t.Logf("round %d: %s killed, %d acknowledged", round+1, []string{"the server", "the follower", "both"}[what], x.acknowledged())
		if t.Failed() {
			t.FailNow()
		}
	}
	var last struct {
		TS bson.Timestamp `bson:"ts"`
	}
	oplog := database(t, x.server).Client().Database("local").Collection("oplog.rs")
	if err := oplog.FindOne(t.Context(), bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Decode(&last); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(callLimit); !x.hasShipped(last.TS); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the oplog up to %v is not shipped: %s", last.TS, follower.Stderr)
		}
	}
	_ = follower.Process.Kill()
	_ = follower.Wait()
	dir := filepath.Join(t.TempDir(), "back")
	t.Log(x.said("restore", x.repository, "--dbpath", dir, "--to", fmt.Sprintf("%d:%d", last.TS.T, last.TS.I)))
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

func (x *trial) follow() *exec.Cmd {
	cmd := exec.Command(x.path, "backup", "--follow", "--uri", x.server.URI("directConnection=true"), x.repository)
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// hasShipped says whether the repository has the oplog up to end. What the server writes by itself may lie behind it in the same segment.
func (x *trial) hasShipped(end bson.Timestamp) bool {
	segments, err := filepath.Glob(filepath.Join(x.repository, "log", "*", "*-*.seg"))
	return err == nil && slices.ContainsFunc(segments, func(path string) bool {
		_, last, _ := strings.Cut(filepath.Base(path), "-")
		return last >= fmt.Sprintf("%010d.%010d.seg", end.T, end.I)
	})
}

// TestFollowOverRestart: the server is stopped and started again under one follower, which goes on without a gap; where it is started on another history the
// follower ends, and says why.
func TestFollowOverRestart(t *testing.T) {
	x := newTrial(t)
	set := []string{"--dbpath", x.data, "--replSet", "rs", "--replSetInitiate"}
	x.server = binary.Start(t, x.path, set...)
	port := x.server.Addr[strings.LastIndex(x.server.Addr, ":")+1:]
	follower := x.follow()
	insert := func(n int) (last bson.Timestamp) {
		db := database(t, x.server)
		for i := range 100 {
			if _, err := db.Collection("c").InsertOne(t.Context(), bson.D{{Key: "_id", Value: 100*n + i}}); err != nil {
				t.Fatal(err)
			}
		}
		var entry struct {
			TS bson.Timestamp `bson:"ts"`
		}
		if err := db.Client().Database("local").Collection("oplog.rs").FindOne(t.Context(), bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Decode(&entry); err != nil {
			t.Fatal(err)
		}
		return entry.TS
	}
	// shipped waits until everything up to an entry is in the repository.
	shipped := func(from bson.Timestamp) {
		for deadline := time.Now().Add(callLimit); !x.hasShipped(from); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the oplog up to %v is not shipped: %s", from, follower.Stderr)
			}
		}
	}
	x.awaitBackup(t)
	shipped(insert(0))
	if err := x.server.Stop(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // in which it is asked in vain
	x.server = binary.Start(t, x.path, append(set, "--port", port)...)
	last := insert(1)
	shipped(last)
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
	err := follower.Wait()
	if said := fmt.Sprint(follower.Stderr); err == nil || !strings.Contains(said, "does not go on behind what was shipped") || !strings.Contains(said, "trying again in") {
		t.Errorf("behind another history: %v: %s", err, said)
	}
}

// awaitBackup waits until there is one.
func (x *trial) awaitBackup(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(callLimit); ; time.Sleep(50 * time.Millisecond) {
		if found, err := filepath.Glob(filepath.Join(x.repository, "backups", "*.json")); err == nil && len(found) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no backup was taken")
		}
	}
}
