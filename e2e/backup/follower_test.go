package backup

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// output is what a process writes, which may be read meanwhile.
type output struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// follower is a running "ebb backup --follow".
type follower struct {
	cmd         *exec.Cmd
	said, wrong output
	ended       chan struct{}
	err         error // how it ended; good once it has
}

func (x *trial) follow() *follower {
	f := &follower{cmd: exec.Command(x.path, "backup", "--follow", "--uri", x.server.URI("directConnection=true"), x.repository), ended: make(chan struct{})}
	f.cmd.Stdout, f.cmd.Stderr = &f.said, &f.wrong
	if err := f.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	go func() {
		defer close(f.ended)
		f.err = f.cmd.Wait()
	}()
	x.t.Cleanup(f.kill)
	return f
}

func (f *follower) kill() {
	_ = f.cmd.Process.Kill()
	<-f.ended
}

// goesOn gives a follower whose server was killed and is back: the same one, or another where the first had not begun to follow. Such a one ends, and
// what runs it is to start it anew.
func (x *trial) goesOn(f *follower) *follower {
	x.t.Helper()
	await(x.t, "the follower neither follows nor ends", f, func() bool { return f.hasBegun() || f.hasEnded() })
	if !f.hasEnded() {
		return f
	}
	if f.hasBegun() {
		x.t.Errorf("a follower has ended with its server, %v: %v", f.err, &f.wrong)
	}
	return x.follow()
}

func (f *follower) hasBegun() bool { return strings.Contains(f.said.String(), "following the oplog") }

func (f *follower) hasEnded() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

func (x *trial) awaitFollowing(f *follower) {
	x.t.Helper()
	await(x.t, "the follower does not begin", f, func() bool { return f.hasBegun() || f.hasEnded() })
	if f.hasEnded() {
		x.t.Fatalf("the follower has ended, %v: %v", f.err, &f.wrong)
	}
}

// awaitShipped waits until everything up to an entry is in the repository.
func (x *trial) awaitShipped(f *follower, last bson.Timestamp) {
	x.t.Helper()
	await(x.t, fmt.Sprintf("the oplog up to %v is not shipped", last), f, func() bool { return x.hasShipped(last) })
}

func await(t *testing.T, otherwise string, f *follower, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(callLimit); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = f.cmd.Process.Signal(syscall.SIGQUIT) // for its stacks
			<-f.ended
			t.Fatalf("%s: %v%v", otherwise, &f.said, &f.wrong)
		}
	}
}

// lastEntry is the timestamp of the oplog's last entry.
func lastEntry(t *testing.T, db *mongo.Database) bson.Timestamp {
	t.Helper()
	var last struct {
		TS bson.Timestamp `bson:"ts"`
	}
	oplog := db.Client().Database("local").Collection("oplog.rs")
	if err := oplog.FindOne(t.Context(), bson.D{}, options.FindOne().SetSort(bson.D{{Key: "$natural", Value: -1}})).Decode(&last); err != nil {
		t.Fatal(err)
	}
	return last.TS
}

// hasShipped says whether the repository has the oplog up to end. What the server writes by itself may lie behind it in the same segment.
func (x *trial) hasShipped(end bson.Timestamp) bool {
	segments, err := filepath.Glob(filepath.Join(x.repository, "log", "*", "*-*.seg"))
	return err == nil && slices.ContainsFunc(segments, func(path string) bool {
		_, last, _ := strings.Cut(filepath.Base(path), "-")
		return last >= fmt.Sprintf("%010d.%010d.seg", end.T, end.I)
	})
}
