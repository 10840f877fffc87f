package ebb

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb/internal/serverlog"
)

// TestDamagedMember: a primary that meets a damaged table, since when it takes no writes, has a sound member take over and says so. It ends when it
// has to apply what that one writes.
func TestDamagedMember(t *testing.T) {
	t.Parallel() // it mostly waits
	var logs [3]lockedLog
	var dirs [3]string
	s := startThree(t, func(i int, o *Options) {
		dirs[i] = t.TempDir()
		o.Engine, o.DBPath, o.CacheBytes, o.Log = Pebble, dirs[i], 16<<20, serverlog.New(&logs[i], 0).Logger()
	})
	coll := s.client.Database("d").Collection("c")
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 20 { // so that all else is far from the middle of the table
		docs := make([]any, 200)
		for i := range docs {
			docs[i] = bson.M{"_id": 200*n + i, "text": random(r, 500)}
		}
		if _, err := coll.InsertMany(t.Context(), docs); err != nil {
			t.Fatal(err)
		}
	}
	damaged := s.primary()
	if err := s.command(s.direct(damaged), bson.M{"ebbBackup": "begin"}); err != nil { // which makes tables of what is in memory
		t.Fatal(err)
	}
	damageTables(t, dirs[damaged])
	var all []bson.M
	found, err := s.direct(damaged).Database("d").Collection("c").Find(t.Context(), bson.M{})
	if err == nil {
		err = found.All(t.Context(), &all)
	}
	if e := mongo.ServerError(nil); !errors.As(err, &e) || !e.HasErrorCode(301) {
		t.Fatalf("%d documents were read, %v", len(all), err)
	}
	s.until("it hands over, and ends where it has to write", func() error {
		select {
		case err = <-s.served[damaged]:
			return nil
		default:
			return errors.New("it goes on")
		}
	})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("it has ended with %v", err)
	}
	s.stop[damaged]()
	_ = s.servers[damaged].Close()
	s.servers[damaged] = nil
	if text := logs[damaged].String(); !strings.Contains(text, "A file of the primary is damaged: it has stepped down for another member") {
		t.Error("the log does not say why it has stepped down")
	}
	if p := s.primary(); p == damaged {
		t.Error("the damaged member is the primary")
	}
	s.until("a write", func() error {
		_, err := coll.InsertOne(t.Context(), bson.M{"_id": "behind"})
		if mongo.IsDuplicateKeyError(err) {
			err = nil
		}
		return err
	})
}

// random are bytes that cannot be compressed.
func random(r *rand.Rand, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// damageTables changes bytes in the middle of all tables of a server.
func damageTables(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err == nil {
			for _, part := range []int64{3, 4, 5} {
				_, e := file.WriteAt([]byte("damaged"), info.Size()*part/8)
				err = errors.Join(err, e)
			}
		}
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
