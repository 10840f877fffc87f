package ttl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl"
)

// A forecast that may not walk all keys says up to when it is right: 100 documents, one of which expires each second, in
// buckets of 20 s.
func TestForecastIsCut(t *testing.T) {
	w := newWorld(t)
	ns := namespace.NS{DB: "test", Coll: "c"}
	_, err := w.ddl.CreateIndexes(context.Background(), ns, func(*catalog.Collection) ([]*index.Definition, error) {
		d, err := w.indexes.Parse(bson.MustDoc("{key: {d: 1}, name: 'd', expireAfterSeconds: 0}"), nil)
		return []*index.Definition{d}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = w.store.Write(context.Background(), ns, storage.WriteOptions{Durability: kv.Buffered}, func(wr *storage.Writer) error {
		for n := range 100 {
			doc := bson.Build().Int32("_id", int32(n)).Date("d", zero.Add(time.Duration(n)*time.Second).UnixMilli()).Doc()
			if _, err := wr.Insert(doc); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.store.View(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	r, _ := v.Collection(ns)
	now := zero.UnixMilli()
	for _, c := range []struct {
		keys int64
		want string
	}{
		{0, "due 0 [0 0 0] later 0, exact false"},
		{1, "due 1 [0 0 0] later 0, exact false to -1ms"},
		{25, "due 1 [20 4 0] later 0, exact false to 23.999s"},
		{90, "due 1 [20 20 20] later 29, exact false to 1m28.999s"},
		{100, "due 1 [20 20 20] later 39, exact true last 1m39s never 0"},
	} {
		documents, all, err := ttl.Forecasts(r, ttl.Horizon{Now: now, Until: now + 60_000, Buckets: 3, Keys: c.keys}, false)
		if err != nil || documents != 100 || len(all) != 1 {
			t.Fatal(documents, all, err)
		}
		f := all[0]
		got := fmt.Sprintf("due %d %d later %d, exact %v", f.Backlog, f.Counts, f.Later, f.Walked.All)
		since := func(at int64) time.Duration { return time.UnixMilli(at).Sub(zero) }
		switch {
		case f.Walked.All:
			got += fmt.Sprintf(" last %s never %d", since(f.Last), f.Never)
		case c.keys > 0:
			got += fmt.Sprintf(" to %s", since(f.CountedTo))
		}
		if got != c.want {
			t.Errorf("%d keys: %s\nwant %s", c.keys, got, c.want)
		}
	}
}
