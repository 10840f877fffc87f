package storage

import (
	"bytes"
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

// TestLargestID: the largest _id stays what it was while others read by iterators that use the same memory again.
func TestLargestID(t *testing.T) {
	f := newFixture(t)
	ns := namespace.NS{DB: "db", Coll: "coll"}
	f.must(f.insert(ns, `{_id: "aaaaaaaaaaaaaaaa"}`, `{_id: "bbbbbbbbbbbbbbbb"}`))
	f.must(f.Write(context.Background(), ns, WriteOptions{}, func(w *Writer) error {
		largest, err := (*idEntries)(w.Reader).Largest()
		f.must(err)
		was := bytes.Clone(largest)
		for range 100 {
			it, err := w.view.reader.NewIter(kv.IterOptions{})
			f.must(err)
			for ok := it.First(); ok; ok = it.Next() {
			}
			f.must(it.Err())
			it.Close()
		}
		if !bytes.Contains(was, []byte("bbbbbbbb")) || !bytes.Equal(largest, was) {
			t.Errorf("it was %q and is %q", was, largest)
		}
		return nil
	}))
}
