package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
)

// told are how often the oplog tells that each document has expired.
func (f *fixture) told() map[string]int {
	f.t.Helper()
	n := map[string]int{}
	docs, _ := f.entries()
	for _, d := range docs {
		ops := d.Lookup("o").Doc().Lookup("applyOps")
		if ops.IsMissing() {
			ops = bson.Build().Document("0", d).Doc().Value()
		}
		for it := ops.Doc().Iter(); it.Next(); {
			if op := it.Value().Doc(); op.Lookup("op").Str() == "d" && !op.Lookup("expiration").IsMissing() {
				n[op.Lookup("o").Doc().Lookup("_id").String()]++
			}
		}
	}
	return n
}

// TestSweepTells: a sweep that tells of each document does so in commits of a few, also in the middle of a date, beside others that
// write and over restarts; each document is told of once, and the rest is as if each were deleted by itself.
func TestSweepTells(t *testing.T) {
	for _, c := range []struct{ options, index, doc string }{
		{`{}`, `{key: {d: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, d: Date(%d), a: %d}`},
		{`{}`, `{key: {d: -1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, d: Date(%d), a: %d}`},
		{`{}`, `{key: {_ts: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, d: Date(%d), a: %d}`},
		{`{clusteredIndex: {key: {_id: 1}, unique: true}, expireAfterSeconds: NumberLong(1)}`, ``, `{_id: Date(%[2]d), i: %[1]d, a: %[3]d}`},
	} {
		f := logged(t)
		_, err := f.CreateCollection(context.Background(), testNS, bson.MustDoc(c.options))
		f.must(err)
		clustered := c.index == ""
		if !clustered {
			f.createIndexes(testNS, c.index, `{key: {a: 1}, name: "a"}`)
		}
		const n = 40
		now := f.Now()
		ids := map[string]bool{}
		for i := range n {
			date := now - int64(i/15)*7
			if clustered {
				date = now - int64(i)
			}
			doc := bson.MustDoc(fmt.Sprintf(c.doc, i, date, i%4))
			ids[doc.Lookup("_id").String()] = true
			f.must(f.insert(testNS, doc.String()))
		}
		f.clock.Advance(2 * time.Second)
		at := f.Now()
		swept, more := int64(0), true
		for i := 0; more; i++ {
			f.Bounds().MostTold = 6
			coll := f.tested()
			beside := f.beginTransaction()
			before := seen(t, beside.Statement(context.Background()), testNS)
			done, ok, err := f.Sweep(context.Background(), coll.ID, coll.order.Rule, at)
			if err != nil || !ok || done.Documents > 6 {
				t.Fatalf("%s: swept %+v, %v, %v", c.index, done, ok, err)
			}
			swept += done.Documents
			more = done.More
			if got := int64(len(f.told())); got != swept {
				t.Fatalf("%s: told of %d, swept %d", c.index, got, swept)
			}
			if after := seen(t, beside.Statement(context.Background()), testNS); after != before {
				t.Fatalf("%s: a transaction saw %s, and then %s", c.index, before, after)
			}
			beside.Rollback()
			f.validate(testNS)
			if i%3 == 1 {
				f.reopen()
			}
			if i == 2 { // one that comes late, with a date that was swept
				late := bson.MustDoc(fmt.Sprintf(c.doc, 1000, now-1000, 1))
				ids[late.Lookup("_id").String()] = true
				f.must(f.insert(testNS, late.String()))
				if c.index != "" && f.tested().order.Rule.Field() == "_ts" {
					f.clock.Advance(2 * time.Second)
					at = f.Now()
				}
			}
		}
		if swept != n+1 || f.ids(testNS) != "none" {
			t.Errorf("%s: swept %d, there are %s", c.index, swept, f.ids(testNS))
		}
		told := f.told()
		for id := range ids {
			if told[id] != 1 {
				t.Errorf("%s: %s is told of %d times", c.index, id, told[id])
			}
		}
		f.validate(testNS)
	}
}

// TestSweepTellsSideBySide: what sweeps that tell of each document delete of one date are stretches side by side, each behind the last,
// and not all of them from the date on; those that a transaction has written lie among them, and go when it has ended.
func TestSweepTellsSideBySide(t *testing.T) {
	for _, c := range []struct{ index, doc string }{
		{`{key: {d: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, d: Date(%d)}`},
		{`{key: {d: -1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, d: Date(%d)}`},
		{`{key: {_ts: 1}, name: "t", expireAfterSeconds: 1}`, `{_id: %d, n: %d}`},
	} {
		f := logged(t)
		var deleted []kv.Range
		f.options.OnCommit = func(c *kv.Commit) { deleted = append(deleted, c.Ranges()...) }
		f.reopen()
		f.createIndexes(testNS, c.index, `{key: {a: 1}, name: "a"}`)
		f.must(f.insert(testNS, fmt.Sprintf(c.doc, -1, f.Now()-100))) // which is deleted with the first of the date
		const n = 60
		now := f.Now()
		for i := range n {
			f.must(f.insert(testNS, fmt.Sprintf(c.doc, i, now)))
		}
		f.clock.Advance(2 * time.Second)
		at := f.Now()
		f.Bounds().MostTold = 6
		left := int64(n + 1)
		sweep := func() bool {
			t.Helper()
			done, ok, err := f.Sweep(context.Background(), f.tested().ID, f.tested().order.Rule, at)
			if err != nil || !ok {
				t.Fatalf("%s: swept %+v, %v, %v", c.index, done, ok, err)
			}
			if left -= done.Documents; done.More && done.Left != left {
				t.Errorf("%s: %d are left, as the sweep says %d", c.index, left, done.Left)
			}
			f.validate(testNS)
			return done.More
		}
		deleted = nil
		for i := range 4 {
			if sweep(); i == 1 {
				f.reopen()
				f.Bounds().MostTold = 6
			}
		}
		for i, a := range deleted {
			for _, b := range deleted[:i] {
				if string(a.Start) < string(b.End) && string(b.Start) < string(a.End) {
					t.Errorf("%s: both %x-%x and %x-%x were deleted", c.index, a.Start, a.End, b.Start, b.End)
				}
			}
		}
		if len(deleted) < 4 {
			t.Errorf("%s: deleted %v", c.index, deleted)
		}
		txn := f.beginTransaction()
		f.must(txn.Write(context.Background(), testNS, creating, func(w *Writer) error {
			rec, _, err := w.GetByID(bson.MustDoc("{_id: 30}").Lookup("_id"))
			if err != nil {
				return err
			}
			return w.Delete(rec.Clone())
		}))
		for range 3 {
			sweep()
		}
		txn.Rollback()
		for sweep() {
		}
		if told := f.told(); f.ids(testNS) != "none" || len(told) != n+1 {
			t.Errorf("%s: told of %d, there are %s", c.index, len(told), f.ids(testNS))
		}
		for id, times := range f.told() {
			if times != 1 {
				t.Errorf("%s: %s is told of %d times", c.index, id, times)
			}
		}
	}
}
