package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/namespace"
)

// TestWriteGoesOn: a write that others get in the way of, again and again, is done when they no longer do, or ends with its context.
func TestWriteGoesOn(t *testing.T) {
	const others = promptTries + 3
	for name, cancels := range map[string]bool{"done": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			ns := namespace.NS{DB: "db", Coll: "coll"}
			f.must(f.insert(ns, `{_id: 1, n: 0}`))
			id := bson.MustDoc(`{_id: 1}`).Lookup("_id")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			ended := errors.New("ended")
			tries := 0
			err := f.Write(ctx, ns, creating, func(w *Writer) error {
				rec, _, err := w.GetByID(id)
				f.must(err)
				if tries++; tries <= others {
					_, err = f.change(ns, id, fmt.Sprintf(`{_id: 1, n: %d}`, tries))
					f.must(err)
				}
				if cancels && tries == others {
					cancel(ended)
				}
				_, _, err = w.Update(rec, bson.MustDoc(`{_id: 1, n: -1}`))
				return err
			})
			if cancels && (err != ended || tries != others) || !cancels && (err != nil || tries != others+1) {
				t.Errorf("%d tries: %v", tries, err)
			}
			want := int64(-1)
			if cancels {
				want = others
			}
			f.read(ns, func(r *Reader) error {
				rec, _, err := r.GetByID(id)
				if n := rec.Doc.Lookup("n").TruncInt64(); n != want {
					t.Errorf("n is %d, want %d", n, want)
				}
				return err
			})
		})
	}
}
