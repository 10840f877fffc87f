package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	driver "go.mongodb.org/mongo-driver/v2/mongo/options"
)

// smallDisk mounts a disk of so many MiB in memory.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a real full disk takes the right to mount one (%v); the same is tested on a disk of our own in ./TestFullDisk and internal/kv/pebblekv", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// clog takes what is left of the disk.
func clog(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		err = nil
	}
}

// settle waits until nothing more is written to a disk: tables that are being made when somebody takes the rest of it cost the reserve, and the server
// does not start again then, which it says.
func settle(t *testing.T, dir string) {
	t.Helper()
	const looks, still = 400, 40 // two seconds: beside much other work half of one may pass between two writes
	free, same := uint64(0), 0
	for range looks {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		if same++; s.Bfree != free {
			free, same = s.Bfree, 0
		}
		if same == still {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the disk does not come to rest")
}

// A real server on a real disk: it is filled until inserts are refused, somebody else takes the rest, the server starts again on
// it, deletes, and takes data again. Without a reserve, and with nothing left, it says in one line that it cannot start.
func TestServerOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "64m")
	r := startServer(t, disk)
	coll := connect(t, r)
	next, x := 0, make([]byte, 30_000)
	for ; ; next++ {
		for i := range x {
			x[i] = byte(uint32(i*i+next*7919) * 2654435761 >> 13)
		}
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: next}, {Key: "x", Value: x}})
		if e, ok := err.(mongo.ServerError); ok && e.HasErrorCode(14031) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := func(want int) {
		t.Helper()
		if n, err := coll.CountDocuments(t.Context(), bson.D{}); err != nil || n != int64(want) {
			t.Fatalf("%d of %d documents, %v", n, want, err)
		}
	}
	check(next)
	settle(t, disk)
	clog(t, filepath.Join(disk, "others"))
	r.stop(t, syscall.SIGTERM)

	r = startServer(t, disk)
	coll = connect(t, r)
	check(next)
	if _, err := coll.DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: next - 10}}}}); err != nil {
		t.Fatal(err)
	}
	check(10)
	if err := coll.Database().Collection("gone").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(disk, "others")); err != nil {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ { // a second, until it is seen
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "more"}})
		if err == nil {
			break
		}
		if tries == 600 {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.stop(t, syscall.SIGTERM)

	clog(t, filepath.Join(disk, "others"))
	if err := os.Remove(filepath.Join(disk, "data", "store", "EBB-RESERVE")); err == nil {
		clog(t, filepath.Join(disk, "others too"))
	}
	cmd := exec.Command(binary, "serve", "--nounixsocket", "--port", "0", "--diskReserveMB", "0")
	cmd.Dir = disk
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no space left on device") || strings.Count(string(out), "\n") > 10 {
		t.Errorf("it ended with %v: %s", err, out)
	}
	if lock, err := os.ReadFile(filepath.Join(disk, "data", "ebb.lock")); err != nil || len(lock) == 0 {
		t.Errorf("the lock file holds %q: %v", lock, err)
	}
}

func connect(t *testing.T, r *running) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(driver.Client().ApplyURI("mongodb://" + r.address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, end := context.WithCancel(context.Background())
		end() // the server is gone by then
		_ = client.Disconnect(ended)
	})
	return client.Database("test").Collection("c")
}
