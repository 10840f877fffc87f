package indexddl

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
)

// cap makes the collection capped.
func (f *fixture) cap(ctx context.Context, options string) error {
	_, err := f.Cap(ctx, testNS, ttlchange.OnHidden{}, func(c *catalog.Collection) (*catalog.Collection, error) {
		return c.WithIndexes(c.Indexes[:min(len(c.Indexes), 1)]).WithOptions(catalog.ReadOptions(bson.MustDoc(options))), nil
	})
	return err
}

// copied is the copy that takes the collection's place, if there is one now.
func (f *fixture) copied() *catalog.Collection {
	for _, coll := range f.store.Catalog().All() {
		if coll.Options.Temp {
			return coll
		}
	}
	return nil
}

// records are the _ids of the collection's documents as they lie, with the seconds since the epoch at which each was modified.
func (f *fixture) records() (text string) {
	f.t.Helper()
	view, err := f.store.View(context.Background())
	f.must(err)
	defer view.Close()
	r, _ := view.Collection(testNS)
	cursor, err := r.Scan(storage.RecordScan{})
	f.must(err)
	defer cursor.Close()
	for cursor.Next() {
		rec := cursor.Record()
		text += fmt.Sprintf("%s@%d ", rec.Doc.Lookup("_id"), (rec.Modified-epoch.UnixMilli())/1000)
	}
	f.must(cursor.Err())
	return text
}

// Nobody writes to a collection while a copy is made that takes its place; when that fails nothing is left of it.
func TestCapByCopy(t *testing.T) {
	for name, make := range map[string]func(*fixture){
		"clustered": func(f *fixture) {
			_, err := f.store.CreateCollection(context.Background(), testNS, bson.MustDoc(`{clusteredIndex: {v: 2, key: {_id: 1}, name: "_id_", unique: true}}`))
			f.must(err)
		},
		"ordered by a TTL": func(f *fixture) {
			f.must(f.insert())
			f.createIndexes(`{v: 2, key: {d: 1}, name: "d", expireAfterSeconds: 3600}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			ended, end := context.WithCancel(context.Background())
			end() // who takes a lock under it does not wait
			var source storage.Collection
			var commits, free int
			onCopy := func() {}
			f.options.OnCommit = func(*kv.Commit) {
				if f.DDL == nil || f.copied() == nil {
					return
				}
				commits++
				if unlock, err := source.Lock(ended); err == nil {
					unlock()
					free++
				}
				onCopy()
			}
			f.reopen()
			make(f)
			for i, hours := range []int{3, 1, 2} {
				f.must(f.insert(fmt.Sprintf(`{_id: %d, d: {$date: %d}}`, i, f.clock.Now().Add(time.Duration(hours)*time.Hour).UnixMilli())))
				f.clock.Advance(10 * time.Second)
			}
			source = f.tested()

			stopped, stop := context.WithCancel(context.Background())
			onCopy = stop
			if err := f.cap(stopped, `{capped: true, size: 4096}`); err == nil {
				t.Fatal("a copy was made though its operation had ended")
			}
			onCopy = func() {}
			f.reopen() // which waits for what goes on in the background, since the operation has ended
			if f.copied() != nil || string(f.tested().UUID[:]) != string(source.UUID[:]) {
				t.Fatal("a copy is left, or has taken the collection's place")
			}
			source = f.tested()
			unlock, err := source.Lock(ended)
			f.must(err) // when nobody has it
			unlock()

			commits = 0
			f.must(f.cap(context.Background(), `{capped: true, size: 4096}`))
			if free > 0 || commits < 2 {
				t.Errorf("the collection could be written to at %d commits of %d", free, commits)
			}
			if got, want := f.records(), "0@0 1@10 2@20 "; got != want {
				t.Errorf("there are %s, want %s", got, want)
			}
			if c := f.tested(); c.Options.Temp || !c.Options.Capped || f.copied() != nil {
				t.Errorf("the collection is %s", c.Options.Doc)
			}
			f.validate()
		})
	}
}
