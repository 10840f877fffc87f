package ebb_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/serverlog"
)

func copyDirectory(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// isHeld says whether expiry is held, and where.
func isHeld(t *testing.T, admin *mongo.Database) string {
	t.Helper()
	return answer(t, admin, bson.D{{Key: "getParameter", Value: 1}, {Key: "ttlHold", Value: 1}}).Lookup("ttlHold").String()
}

const released = `"release"`

// TestCopied: a directory that is copied starts held where its last write was, however late; the one that it is a copy of does not, nor one that
// was renamed.
func TestCopied(t *testing.T) {
	path, at := heldDirectory(t)
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	copied := filepath.Join(t.TempDir(), "copied")
	copyDirectory(t, path, copied)
	var log bytes.Buffer
	options := ebb.Options{Port: ebb.AnyPort, DBPath: copied, Clock: week, Log: serverlog.New(&log, 0).Logger()}
	for range 3 { // the first start, and as it was left
		serving(t, options, func(admin *mongo.Database) {
			heldAt(t, admin, at)
			week.Advance(time.Hour)
			countOf(t, admin, 2)
		})
	}
	if n := strings.Count(log.String(), "The data directory is a copy"); n != 1 {
		t.Errorf("the log says %d times that it is a copy:\n%s", n, log.String())
	}
	serving(t, options, func(admin *mongo.Database) {
		answer(t, admin, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}})
		countOf(t, admin, 0)
	})
	serving(t, options, func(admin *mongo.Database) {
		if got := isHeld(t, admin); got != released {
			t.Errorf("a copy that was released is held again: %s", got)
		}
	})
	moved := filepath.Join(t.TempDir(), "moved")
	if out, err := exec.Command("mv", path, moved).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	options.DBPath = moved
	serving(t, options, func(admin *mongo.Database) {
		if got := isHeld(t, admin); got != released {
			t.Errorf("a directory that was renamed is held: %s", got)
		}
		countOf(t, admin, 0)
	})
}

// TestCopiedToGoOn: who says so on the command line has a copy go on at once, and so it stays.
func TestCopiedToGoOn(t *testing.T) {
	path, at := heldDirectory(t)
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	copied := filepath.Join(t.TempDir(), "copied")
	copyDirectory(t, path, copied)
	o := ebb.Options{Port: ebb.AnyPort, DBPath: copied, Clock: week, Parameters: map[string]string{"ttlHold": "release"}}
	serving(t, o, func(admin *mongo.Database) { countOf(t, admin, 0) })
	o.Parameters = nil
	serving(t, o, func(admin *mongo.Database) {
		if got := isHeld(t, admin); got != released {
			t.Errorf("it is held with the second start: %s", got)
		}
	})
}

// TestCopiedWhileHeld: a copy of a directory in which expiry is held is held where that was.
func TestCopiedWhileHeld(t *testing.T) {
	path, at := heldDirectory(t)
	if err := ebb.HoldDirectory(path, at.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	o := ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: ebbtest.NewClock(at.Add(2 * time.Hour))}
	serving(t, o, func(admin *mongo.Database) { heldAt(t, admin, at.Add(-time.Hour)) })
	copied := filepath.Join(t.TempDir(), "copied")
	copyDirectory(t, path, copied)
	o.DBPath = copied
	serving(t, o, func(admin *mongo.Database) { heldAt(t, admin, at.Add(-time.Hour)) })
}

// TestHoldAfter: a directory whose disk was put back to what it was is itself, and is held where it was not written for too long.
func TestHoldAfter(t *testing.T) {
	path, at := heldDirectory(t)
	o := ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: ebbtest.NewClock(at.Add(10 * time.Second)), Parameters: map[string]string{"ttlHoldAfterSecs": "3600"}}
	serving(t, o, func(admin *mongo.Database) {
		if got := isHeld(t, admin); got != released {
			t.Errorf("ten seconds later it is held: %s", got)
		}
	})
	o.Clock = ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	for range 2 {
		serving(t, o, func(admin *mongo.Database) {
			countOf(t, admin, 2)
			heldAt(t, admin, at.Add(10*time.Second))
		})
	}
	serving(t, o, func(admin *mongo.Database) {
		answer(t, admin, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}})
		countOf(t, admin, 0)
	})
}

// TestCopyUnderLock: the files of a server that fsync has locked may be copied one by one, while documents are due.
func TestCopyUnderLock(t *testing.T) {
	path, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copied")
	at := ebbtest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	const documents = 3000
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: at}, func(admin *mongo.Database) {
		c := admin.Client().Database("test").Collection("c")
		answer(t, c.Database(), bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{
			bson.D{{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at"}, {Key: "expireAfterSeconds", Value: 3600}}}}})
		for from := 0; from < documents; from += 1000 {
			docs := make([]any, 1000)
			for i := range docs {
				docs[i] = bson.D{{Key: "_id", Value: from + i}, {Key: "at", Value: at.Now().Add(time.Duration(i%2) * time.Hour)}, {Key: "x", Value: strings.Repeat("x", 1000)}}
			}
			if _, err := c.InsertMany(t.Context(), docs); err != nil {
				t.Fatal(err)
			}
		}
		answer(t, admin, bson.D{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}})
		at.Advance(90 * time.Minute)
		copyDirectory(t, path, copied)
		answer(t, admin, bson.D{{Key: "fsyncUnlock", Value: 1}})
	})
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: copied, Clock: at}, func(admin *mongo.Database) {
		test := admin.Client().Database("test")
		if reply := answer(t, test, bson.D{{Key: "validate", Value: "c"}}); !reply.Lookup("valid").Boolean() || reply.Lookup("nrecords").AsInt64() != documents {
			t.Errorf("the copy has %s", reply)
		}
	})
}
