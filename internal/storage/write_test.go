package storage

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestWriteGivesUp: a write that somebody gets in the way of each time it is tried ends with an error, and changes nothing.
func TestWriteGivesUp(t *testing.T) {
	f := newFixture(t)
	ns := namespace.NS{DB: "db", Coll: "coll"}
	f.must(f.insert(ns, `{_id: 1, n: 0}`))
	id := bson.MustDoc(`{_id: 1}`).Lookup("_id")
	tries := 0
	err := f.Write(context.Background(), ns, creating, func(w *Writer) error {
		rec, _, err := w.GetByID(id)
		f.must(err)
		tries++
		_, err = f.change(ns, id, fmt.Sprintf(`{_id: 1, n: %d}`, tries))
		f.must(err)
		_, _, err = w.Update(rec, bson.MustDoc(`{_id: 1, n: -1}`))
		return err
	})
	if !mongoerr.Is(err, mongoerr.WriteConflict) || tries != maxTries {
		t.Errorf("%d tries: %v", tries, err)
	}
	f.read(ns, func(r *Reader) error {
		rec, _, err := r.GetByID(id)
		if n := rec.Doc.Lookup("n").TruncInt64(); n != maxTries {
			t.Errorf("n is %d", n)
		}
		return err
	})
}
