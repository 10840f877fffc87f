package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
)

// What a transaction trimmed that was not committed is still the oldest for the next.
func TestCappedTrimsFromTheOldest(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateCollection(ctx, raceNS, bson.MustDoc(`{capped: true, size: 100000, max: 3}`))
	f.must(err)
	insert := func(id int, fails error) error {
		return f.Write(ctx, raceNS, WriteOptions{}, func(w *Writer) error {
			if _, err := w.Insert(bson.MustDoc(fmt.Sprintf("{_id: %d}", id))); err != nil {
				return err
			}
			return fails
		})
	}
	ids := func() (text string) {
		view, err := f.View(ctx)
		f.must(err)
		defer view.Close()
		r, _ := view.Collection(raceNS)
		cursor, err := r.Scan(RecordScan{})
		f.must(err)
		defer cursor.Close()
		for cursor.Next() {
			text += cursor.Record().Doc.Lookup("_id").String() + " "
		}
		f.must(cursor.Err())
		return text
	}
	expect := func(want string) {
		t.Helper()
		if got := ids(); got != want {
			t.Fatalf("there are %s, want %s", got, want)
		}
	}
	for id := range 6 {
		f.must(insert(id, nil))
	}
	expect("3 4 5 ")
	refused := errors.New("no")
	if err := insert(6, refused); err != refused {
		t.Fatal(err)
	}
	expect("3 4 5 ")
	f.must(insert(7, nil))
	expect("4 5 7 ")
	f.must(f.Write(ctx, raceNS, WriteOptions{}, func(w *Writer) error {
		for id := 10; id < 15; id++ {
			if _, err := w.Insert(bson.MustDoc(fmt.Sprintf("{_id: %d}", id))); err != nil {
				return err
			}
		}
		return nil
	}))
	expect("12 13 14 ")
	f.reopen()
	f.must(insert(15, nil))
	expect("13 14 15 ")
}
