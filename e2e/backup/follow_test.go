package backup

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
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
		_ = follower.Wait() // who has lost the server ends by itself
		follower = x.follow()
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
	for deadline := time.Now().Add(callLimit); !x.hasSegment(last.TS); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the oplog up to %v is not shipped", last.TS)
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

func (x *trial) hasSegment(end bson.Timestamp) bool {
	found, err := filepath.Glob(filepath.Join(x.repository, "log", "*", fmt.Sprintf("*-%010d.%010d.seg", end.T, end.I)))
	return err == nil && len(found) > 0
}
