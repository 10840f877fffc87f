package ebb_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
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

// heldDirectory is a data directory in which documents 1 and 2 expire a minute and an hour after the date that is returned, by an index
// that hides.
func heldDirectory(t *testing.T) (path string, at time.Time) {
	at = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	path = filepath.Join(t.TempDir(), "data")
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: ebbtest.NewClock(at)}, func(admin *mongo.Database) {
		db := admin.Client().Database("test")
		answer(t, db, bson.D{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: bson.A{bson.D{{Key: "key", Value: bson.D{{Key: "d", Value: 1}}},
			{Key: "name", Value: "d_1"}, {Key: "expireAfterSeconds", Value: 0}, {Key: "hideExpired", Value: true}}}}})
		answer(t, db, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{
			bson.D{{Key: "_id", Value: 1}, {Key: "d", Value: at.Add(time.Minute)}}, bson.D{{Key: "_id", Value: 2}, {Key: "d", Value: at.Add(time.Hour)}}}}})
	})
	return path, at
}

func countOf(t *testing.T, admin *mongo.Database, want int64) {
	t.Helper()
	n, err := admin.Client().Database("test").Collection("c").CountDocuments(t.Context(), bson.D{})
	if err != nil || n != want {
		t.Errorf("%d documents, %v; want %d", n, err, want)
	}
}

func heldAt(t *testing.T, admin *mongo.Database, want time.Time) {
	t.Helper()
	expect(t, answer(t, admin, bson.D{{Key: "serverStatus", Value: 1}}), bson.NewDateTimeFromTime(want), "metrics", "ttl", "ebb", "hold", "at")
	status := answer(t, admin.Client().Database("test"), bson.D{{Key: "ebbTTL", Value: 1}})
	expect(t, status, bson.NewDateTimeFromTime(want), "hold", "at")
}

// TestHoldFile: a copied directory with a file ttlHoldAt starts held, stays held over restarts, and lets go what was due when it is released.
func TestHoldFile(t *testing.T) {
	path, at := heldDirectory(t)
	hold := at.Add(10 * time.Second)
	if err := ebb.HoldDirectory(path, hold); err != nil {
		t.Fatal(err)
	}
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	var log bytes.Buffer
	options := ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: week, Log: serverlog.New(&log, 0).Logger()}
	serving(t, options, func(admin *mongo.Database) {
		if _, err := os.Stat(filepath.Join(path, ebb.HoldFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
		countOf(t, admin, 2)
		heldAt(t, admin, hold)
		week.Advance(time.Hour)
		countOf(t, admin, 2)
		warnings := answer(t, admin, bson.D{{Key: "getLog", Value: "startupWarnings"}})
		if !strings.Contains(warnings.String(), "Expiry is held") {
			t.Errorf("no warning: %s", warnings)
		}
	})
	for _, want := range []string{"The data directory asks for expiry to be held", `"holdAt":"2024-01-01T00:00:10.000Z"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
	serving(t, options, func(admin *mongo.Database) {
		heldAt(t, admin, hold)
		countOf(t, admin, 2)
		answer(t, admin, bson.D{{Key: "setParameter", Value: 1}, {Key: "ttlHold", Value: "release"}})
		countOf(t, admin, 0)
	})
	serving(t, options, func(admin *mongo.Database) {
		if status := answer(t, admin, bson.D{{Key: "ebbTTL", Value: 1}}); status.Lookup("hold").Type != 0 {
			t.Errorf("held again: %s", status)
		}
	})
}

// TestHoldFileTwice: a start that was cut off between the hold and the removal of the file has not released anything, and the next one does
// the same.
func TestHoldFileTwice(t *testing.T) {
	path, at := heldDirectory(t)
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	for range 2 {
		if err := ebb.HoldDirectory(path, at.Add(10*time.Second)); err != nil {
			t.Fatal(err)
		}
		serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: week}, func(admin *mongo.Database) {
			countOf(t, admin, 2)
			heldAt(t, admin, at.Add(10*time.Second))
		})
	}
}

// TestHoldFileOverruled: the command line stands above the file, which is gone all the same.
func TestHoldFileOverruled(t *testing.T) {
	path, at := heldDirectory(t)
	if err := ebb.HoldDirectory(path, at.Add(10*time.Second)); err != nil {
		t.Fatal(err)
	}
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	o := ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: week, Parameters: map[string]string{"ttlHold": "2024-01-01T00:30:00Z"}}
	serving(t, o, func(admin *mongo.Database) {
		countOf(t, admin, 1)
		heldAt(t, admin, at.Add(30*time.Minute))
		if _, err := os.Stat(filepath.Join(path, ebb.HoldFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
	})
}

// TestHoldFileRefused: who cannot understand the file does not start, and so lets nothing go.
func TestHoldFileRefused(t *testing.T) {
	path, at := heldDirectory(t)
	week := ebbtest.NewClock(at.Add(7 * 24 * time.Hour))
	name := filepath.Join(path, ebb.HoldFile)
	for _, text := range []string{"", "soon", strings.Repeat("2024-01-01 ", 200), "2024-13-01"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ebb.Open(ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: week})
		if err == nil {
			t.Errorf("%.20q: started", text)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if err := os.WriteFile(name, []byte("lastWrite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path, Clock: week}, func(admin *mongo.Database) { countOf(t, admin, 2) })
}
