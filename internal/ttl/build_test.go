package ttl_test

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestUnfinishedBuild (R17): nothing is deleted through an index until it is ready.
func TestUnfinishedBuild(t *testing.T) {
	w := newWorld(t)
	if err := w.do("fill", "c 10 {d: Date(0)}", ""); err != nil {
		t.Fatal(err)
	}
	ns := namespace.NS{DB: "db", Coll: "c"}
	passes := 0
	_, err := w.ddl.CreateIndexes(context.Background(), ns, func(c *catalog.Collection) ([]*index.Definition, error) {
		passes++
		if err := w.monitor.RunPass(context.Background()); err != nil {
			t.Error(err)
		}
		d, err := w.indexes.Parse(bson.MustDoc(`{key: {d: 1}, name: "d_1", expireAfterSeconds: 1}`), nil)
		return []*index.Definition{d}, err
	})
	if err != nil || passes == 0 {
		t.Fatal(err, passes)
	}
	if v := w.validate(0); v != 10 {
		t.Errorf("%d documents are left of 10 while the index was built", v)
	}
	w.clock.Advance(time.Minute) // the grace of a new TTL
	if err := w.monitor.RunPass(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v := w.validate(0); v != 0 {
		t.Errorf("%d documents are left when it was ready", v)
	}
}
