package backup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/ebbdb/ebb/e2e/binary"
)

// TestCopiedDirectory: cp -a of a data directory, by the real server's clock: all that was alive in the copy is there however long it lies, while the
// directory itself lets go what is due, killed or not. Put back over the directory the copy is recognised as well.
func TestCopiedDirectory(t *testing.T) {
	program, dir := binary.Build(t), t.TempDir()
	data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "saved")
	server := binary.Start(t, program, "--dbpath", data, "--setParameter", "ttlMonitorSleepSecs=1")
	c := database(t, server).Collection(mortal)
	if _, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "at", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0)}); err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(4 * time.Second)
	for i := range 100 {
		if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "at", Value: due}}); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	if time.Now().After(due) {
		t.Skip("the machine is too slow for what is due in four seconds")
	}
	run(t, "cp", "-a", data, saved)
	time.Sleep(time.Until(due))

	server = binary.Start(t, program, "--dbpath", data, "--setParameter", "ttlMonitorSleepSecs=1")
	awaitCount(t, database(t, server), 0)
	copied := binary.Start(t, program, "--dbpath", saved)
	if log := copied.Log(); !strings.Contains(log, "The data directory is a copy") || !strings.Contains(log, "TTL: expiry is held") {
		t.Errorf("the copy's log does not say so: %s", log)
	}
	awaitCount(t, database(t, copied), 100)
	copied.Kill()
	server.Kill()

	run(t, "cp", "-a", saved+"/.", data) // as if it had been lost
	server = binary.Start(t, program, "--dbpath", data, "--setParameter", "ttlMonitorSleepSecs=1")
	awaitCount(t, database(t, server), 100)
	if _, err := database(t, server).Client().Database("admin").RunCommand(t.Context(), bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}}).Raw(); err != nil {
		t.Fatal(err)
	}
	awaitCount(t, database(t, server), 0)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(dir, "moved")
	if err := os.Rename(data, moved); err != nil {
		t.Fatal(err)
	}
	if log := binary.Start(t, program, "--dbpath", moved).Log(); strings.Contains(log, "is a copy") || strings.Contains(log, "is held") {
		t.Errorf("a directory that was renamed is taken for a copy: %s", log)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// awaitCount waits until so many mortals are there. That none goes is asked of the monitor: it deletes nothing while it is held.
func awaitCount(t *testing.T, db *mongo.Database, want int64) {
	t.Helper()
	var n int64
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var err error
		if n, err = db.Collection(mortal).CountDocuments(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
	}
	t.Fatalf("%d documents, and not %d", n, want)
}
