package storage

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/header"
)

// TestNumbersTakenElsewhere: a change of the catalogue goes on from the numbers that are stored, whoever has stored them.
func TestNumbersTakenElsewhere(t *testing.T) {
	f := newFixture(t)
	f.must(f.insert(namespace.NS{DB: "db", Coll: "before"}, `{_id: 1}`))
	txn, err := f.engine.Begin()
	f.must(err)
	header.Numbers{Collection: 100, Index: 200}.Set(txn)
	f.must(txn.Commit(context.Background(), kv.Buffered))
	made, err := f.CreateCollection(context.Background(), namespace.NS{DB: "db", Coll: "after"}, nil)
	f.must(err)
	if made.ID != 100 || made.Indexes[0].ID != 200 {
		t.Errorf("the collection has number %d and its index %d", made.ID, made.Indexes[0].ID)
	}
}
