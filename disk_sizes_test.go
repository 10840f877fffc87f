package ebb_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/ebbdb/ebb"
)

// TestDiskSizes holds what dbStats, collStats and compact say against the files of the store: of documents that do not compress, before and after they are deleted.
func TestDiskSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	files := func() (tables int64) {
		err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) { // one that is gone meanwhile takes nothing
				return nil
			}
			if err != nil || !strings.HasSuffix(d.Name(), ".sst") {
				return err
			}
			if info, err := d.Info(); err == nil {
				tables += info.Size()
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return tables
	}
	serving(t, ebb.Options{Port: ebb.AnyPort, DBPath: path}, func(admin *mongo.Database) {
		db := admin.Client().Database("test")
		const each, documents = 1000, 16_000
		random := rand.NewChaCha8([32]byte{1})
		for range documents / each {
			docs := make(bson.A, each)
			for i := range docs {
				data := make([]byte, 1000)
				random.Read(data)
				docs[i] = bson.D{{Key: "data", Value: data}}
			}
			answer(t, db, bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}})
		}
		number := func(reply bson.Raw, path ...string) float64 {
			n, ok := reply.Lookup(path...).AsFloat64OK()
			if !ok {
				t.Errorf("%v is no number in %s", path, reply)
			}
			return n
		}
		near := func(what string, got float64) { // tables that nobody needs any more are removed a moment later
			t.Helper()
			for {
				is := float64(files())
				if got >= 0.8*is && got <= 1.25*is {
					return
				}
				if ctx.Err() != nil {
					t.Errorf("%s is %.0f, and the files have %.0f", what, got, is)
					return
				}
			}
		}
		answer(t, db, bson.D{{Key: "compact", Value: "c"}}) // what is in memory is in tables then
		stats := func() bson.Raw { return answer(t, db, bson.D{{Key: "dbStats", Value: 1}}) }
		near("dbStats.totalSize", number(stats(), "totalSize"))
		coll := answer(t, db, bson.D{{Key: "collStats", Value: "c"}})
		near("collStats.totalSize", number(coll, "totalSize"))
		if got := number(stats(), "dataSize"); got < 1000*documents || got > 1100*documents {
			t.Errorf("dataSize is %.0f", got)
		}
		before := number(stats(), "totalSize") // the files have more until what nobody needs is removed
		answer(t, db, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: bson.D{}}, {Key: "limit", Value: 0}}}}})
		freed := number(answer(t, db, bson.D{{Key: "compact", Value: "c"}}), "bytesFreed")
		if freed < 0.8*before || freed > 1.25*before {
			t.Errorf("compact says that it freed %.0f, of %.0f", freed, before)
		}
		if got := number(stats(), "totalSize"); got > 1<<20 {
			t.Errorf("with no documents dbStats.totalSize is %.0f", got)
		}
	})
	if left := files(); left > 1<<20 {
		t.Errorf("with no documents the tables have %d bytes", left)
	}
}
