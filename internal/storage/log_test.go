package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// logged is a fixture with an oplog.
func logged(t *testing.T) *fixture {
	f := newFixture(t)
	f.options.Oplog = func() int64 { return 1 }
	f.reopen()
	f.must(f.CreateOplog(context.Background(), 1<<30))
	return f
}

// entries are the oplog's, and the ids that they are stored under.
func (f *fixture) entries() (docs []bson.Doc, ids []RecordID) {
	f.t.Helper()
	f.read(catalog.OplogNS, func(r *Reader) error {
		c, err := r.Scan(RecordScan{})
		if err != nil {
			return err
		}
		defer c.Close()
		for c.Next() {
			rec := c.Record().Clone()
			docs, ids = append(docs, rec.Doc), append(ids, rec.ID)
		}
		return c.Err()
	})
	return docs, ids
}

var entryUUIDs = regexp.MustCompile(`ui: UUID\("[^"]*"\), `)

// log is what the oplog says of documents.
func (f *fixture) log() string {
	f.t.Helper()
	docs, ids := f.entries()
	var out []string
	for i, d := range docs {
		seconds, counter := d.Lookup("ts").Timestamp()
		if want := layout.SequenceID(uint64(oplog.NewTimestamp(seconds, counter))); string(ids[i]) != string(want) {
			f.t.Errorf("%s is stored as %s", d, ids[i])
		}
		if op := d.Lookup("op").Str(); op != "c" || !d.Lookup("o").Doc().Lookup("applyOps").IsMissing() {
			text := entryUUIDs.ReplaceAllString(d.String(), "")
			text = strings.Replace(text, ", t: 1, v: 2", "", 1)
			out = append(out, text)
		}
	}
	r, err := f.View(context.Background())
	f.must(err)
	defer func() { f.must(r.Close()) }()
	if reader, ok := r.Collection(catalog.OplogNS); ok {
		n, err := reader.Count()
		f.must(err)
		if n != int64(len(docs)) {
			f.t.Errorf("the oplog counts %d entries and has %d", n, len(docs))
		}
	}
	if n := len(ids); n > 0 && f.LastLogged() != oplog.Timestamp(ids[n-1].Number()) {
		f.t.Errorf("the youngest entry is %d, and its timestamp %d", f.LastLogged(), ids[n-1].Number())
	}
	return strings.Join(out, "\n")
}

func (f *fixture) wantLog(want ...string) {
	f.t.Helper()
	if got := f.log(); got != strings.Join(want, "\n") {
		f.t.Errorf("\n got %s\nwant %s", got, strings.Join(want, "\n"))
	}
}

// TestOplog: each change of a document is an entry of the commit that makes it, in the order of commits.
func TestOplog(t *testing.T) {
	f := logged(t)
	ns := namespace.NS{DB: "db", Coll: "c"}
	f.must(f.insert(ns, "{_id: 1, a: 1}"))
	f.must(f.insert(namespace.NS{DB: "local", Coll: "c"}, "{_id: 1}")) // is nobody else's
	f.clock.Advance(time.Second)
	f.must(f.insert(ns, "{_id: 2}", "{_id: 3}"))
	_, err := f.change(ns, bson.Int32(1), "{_id: 1, a: 2}")
	f.must(err)
	_, err = f.change(ns, bson.Int32(1), "{_id: 1, a: 2}") // is as it was
	f.must(err)
	_, err = f.change(ns, bson.Int32(1), "")
	f.must(err)
	refused := errors.New("refused")
	if err := f.Write(context.Background(), ns, creating, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 9}"))
		return errors.Join(err, refused)
	}); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if err := f.insert(ns, "{_id: 2}"); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Fatal(err)
	}
	want := []string{
		`{ op: "i", ns: "db.c", o: { _id: 1, a: 1 }, o2: { _id: 1 }, ts: Timestamp(1000000000, 2), wall: new Date(1000000000000) }`,
		`{ op: "c", ns: "admin.$cmd", o: { applyOps: [ { op: "i", ns: "db.c", o: { _id: 2 }, o2: { _id: 2 } }, { op: "i", ns: "db.c", o: { _id: 3 }, o2: { _id: 3 } } ] }, ts: Timestamp(1000000001, 1), wall: new Date(1000000001000) }`,
		`{ op: "u", ns: "db.c", o: { $v: 2, diff: { u: { a: 2 } } }, o2: { _id: 1 }, ts: Timestamp(1000000001, 2), wall: new Date(1000000001000) }`,
		`{ op: "d", ns: "db.c", o: { _id: 1 }, ts: Timestamp(1000000001, 3), wall: new Date(1000000001000) }`,
	}
	f.wantLog(want...)

	// After a restart timestamps go on, even where the clock was turned back.
	f.clock.Step(-time.Minute)
	f.reopen()
	f.must(f.insert(ns, "{_id: 4}"))
	want = append(want, `{ op: "i", ns: "db.c", o: { _id: 4 }, o2: { _id: 4 }, ts: Timestamp(1000000001, 4), wall: new Date(999999941000) }`)
	f.wantLog(want...)

	// Nobody writes to it but commits.
	if err := f.insert(catalog.OplogNS, "{_id: 1}"); !mongoerr.Is(err, mongoerr.InvalidNamespace) {
		t.Error(err)
	}
	f.must(f.CreateOplog(context.Background(), 5)) // which is there

	// A server without it writes none, and leaves what is there.
	f.options.Oplog = nil
	f.reopen()
	f.must(f.insert(ns, "{_id: 5}"))
	if got := f.log(); got != strings.Join(want, "\n") {
		t.Errorf("without an oplog there is %s", got)
	}
}

// TestFormatOfOplog: a store has another format from the commit on that makes its oplog, so that nobody writes past it who does not know of
// it. One that got its oplog before there was that format is given it when it is opened.
func TestFormatOfOplog(t *testing.T) {
	f := newFixture(t)
	format := func(want uint32) {
		t.Helper()
		x, err := f.engine.Begin()
		f.must(err)
		defer x.Rollback()
		if v, err := x.Get(layout.FormatKey()); err != nil || binary.BigEndian.Uint32(v) != want {
			t.Errorf("the format is %x (%v), want %d", v, err, want)
		}
	}
	f.must(f.insert(testNS, `{_id: 1}`))
	format(header.Plain)
	f.options.Oplog = func() int64 { return 1 }
	f.reopen()
	format(header.Plain)
	f.must(f.CreateOplog(context.Background(), 1<<30))
	format(header.Version)
	f.reopen()
	format(header.Version)
	for _, older := range []uint32{header.Plain, 6} {
		x, err := f.engine.Begin()
		f.must(err)
		x.Set(layout.FormatKey(), binary.BigEndian.AppendUint32(nil, older))
		f.must(x.Commit(context.Background(), kv.Buffered))
		f.options.Oplog = nil
		f.reopen()
		format(header.Version)
	}
	f.validate(testNS)
}

// TestOplogOfTransaction: a transaction over several collections is one entry, in the order of its writes.
func TestOplogOfTransaction(t *testing.T) {
	f := logged(t)
	a, b := namespace.NS{DB: "db", Coll: "a"}, namespace.NS{DB: "other", Coll: "b"}
	f.must(f.insert(a, "{_id: 1}"))
	f.must(f.insert(b, "{_id: 1}"))
	txn, err := f.Begin(context.Background())
	f.must(err)
	for i, ns := range []namespace.NS{b, a, b} {
		w, err := txn.Writer(ns)
		f.must(err)
		_, err = w.Insert(bson.MustDoc(fmt.Sprintf("{_id: %d}", 10+i)))
		f.must(err)
	}
	f.must(txn.Commit(context.Background(), 0))
	docs, _ := f.entries()
	last := docs[len(docs)-1].Lookup("o").Doc().Lookup("applyOps").Doc()
	var got []string
	for it := last.Iter(); it.Next(); {
		d := it.Value().Doc()
		got = append(got, fmt.Sprint(d.Lookup("ns").Str(), d.Lookup("o").Doc().Lookup("_id")))
	}
	if want := "other.b10 db.a11 other.b12"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	none, err := f.Begin(context.Background())
	f.must(err)
	w, err := none.Writer(a)
	f.must(err)
	_, err = w.Insert(bson.MustDoc("{_id: 20}"))
	f.must(err)
	none.Rollback()
	if after, _ := f.entries(); len(after) != len(docs) {
		t.Error("a transaction that was rolled back is told")
	}
}

// TestOplogOfCapped: what makes room in a capped collection is told.
func TestOplogOfCapped(t *testing.T) {
	f := logged(t)
	ns := namespace.NS{DB: "db", Coll: "c"}
	_, err := f.CreateCollection(context.Background(), ns, bson.MustDoc("{capped: true, size: 1000, max: 2}"))
	f.must(err)
	f.must(f.insert(ns, "{_id: 1}"))
	f.must(f.insert(ns, "{_id: 2}"))
	f.must(f.insert(ns, "{_id: 3}"))
	docs, _ := f.entries()
	got := entryUUIDs.ReplaceAllString(docs[len(docs)-1].Lookup("o").Doc().String(), "")
	if want := `{ applyOps: [ { op: "i", ns: "db.c", o: { _id: 3 }, o2: { _id: 3 } }, { op: "d", ns: "db.c", o: { _id: 1 } } ] }`; got != want {
		t.Errorf("got %s", got)
	}
}

// TestOplogHasNoHoles: whoever reads it while many write sees entries without one that comes between them later.
func TestOplogHasNoHoles(t *testing.T) {
	const writers, each = 4, 60
	f := logged(t)
	ns := namespace.NS{DB: "db", Coll: "c"}
	f.must(f.insert(ns, "{_id: 'first'}"))
	var work sync.WaitGroup
	stop := make(chan struct{})
	for w := range writers {
		work.Go(func() {
			for i := range each {
				if err := f.insert(ns, fmt.Sprintf("{_id: '%d-%d'}", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { work.Wait(); close(stop) }()
	var before []RecordID
	for over := false; !over; {
		select {
		case <-stop:
			over = true
		default:
		}
		_, ids := f.entries()
		for i, id := range before {
			if string(id) != string(ids[i]) {
				t.Fatalf("entry %d was %s and is %s", i, id, ids[i])
			}
		}
		before = ids
	}
	if len(before) < writers*each+1 {
		t.Errorf("%d entries of %d commits", len(before), writers*each+1)
	}
}

// commands is what the oplog says of the catalogue.
func (f *fixture) commands() string {
	f.t.Helper()
	docs, _ := f.entries()
	var out []string
	for _, d := range docs {
		o := d.Lookup("o").Doc()
		if d.Lookup("op").Str() == "c" && o.FirstKey() != "applyOps" {
			text := d.Lookup("ns").Str() + " " + o.String()
			if o2 := d.Lookup("o2"); !o2.IsMissing() {
				text += " from " + o2.String()
			}
			if d.Lookup("ui").IsMissing() {
				text += " without a uuid"
			}
			out = append(out, anyUUID.ReplaceAllString(text, "UUID(…)"))
		}
	}
	return strings.Join(out, "\n")
}

var anyUUID = regexp.MustCompile(`UUID\("[^"]*"\)`)

// TestOplogOfCatalog: each change of the catalogue is the command that makes it.
func TestOplogOfCatalog(t *testing.T) {
	f := logged(t)
	ctx := context.Background()
	ns, to := namespace.NS{DB: "db", Coll: "c"}, namespace.NS{DB: "db", Coll: "d"}
	_, err := f.CreateCollection(ctx, ns, bson.MustDoc("{validationLevel: 'strict'}"))
	f.must(err)
	_, err = f.CreateCollection(ctx, namespace.NS{DB: "local", Coll: "c"}, nil)
	f.must(err)
	_, err = f.CreateCollection(ctx, namespace.NS{DB: "db", Coll: "v"}, bson.MustDoc("{viewOn: 'c', pipeline: []}"))
	f.must(err)
	f.createIndexes(ns, "{key: {a: 1}, name: 'a_1', expireAfterSeconds: 5}", "{key: {b: 1}, name: 'b_1'}")
	f.must(f.insert(to, "{_id: 1}"))
	f.must(f.Rename(ctx, ns, to, true))
	_, err = f.DropIndexes(ctx, to, func(c *catalog.Collection) ([]*index.Definition, error) {
		return []*index.Definition{c.Index("b_1")}, nil
	})
	f.must(err)
	_, err = f.DropCollection(ctx, to)
	f.must(err)
	_, err = f.DropDatabase(ctx, "db")
	f.must(err)
	const id = "idIndex: { v: 2, key: { _id: 1 }, name: \"_id_\" }"
	want := []string{
		`db.$cmd { create: "c", validationLevel: "strict", ` + id + ` }`,
		`db.$cmd { create: "v", viewOn: "c", pipeline: [] } without a uuid`,
		`db.$cmd { createIndexes: "c", v: 2, key: { a: 1 }, name: "a_1", expireAfterSeconds: 5 }`,
		`db.$cmd { createIndexes: "c", v: 2, key: { b: 1 }, name: "b_1" }`,
		`db.$cmd { create: "d", ` + id + ` }`,
		`db.$cmd { renameCollection: "db.c", to: "db.d", stayTemp: false, dropTarget: UUID(…) }`,
		`db.$cmd { dropIndexes: "d", index: "b_1" } from { v: 2, key: { b: 1 }, name: "b_1" }`,
		`db.$cmd { drop: "d" }`,
		`db.$cmd { drop: "v" } without a uuid`,
		`db.$cmd { dropDatabase: 1 } without a uuid`,
	}
	if got := f.commands(); got != strings.Join(want, "\n") {
		t.Errorf("\n got %s\nwant %s", got, strings.Join(want, "\n"))
	}
}

// TestOplogOfExpiry: what is deleted because its time is over says so, and by what; none goes untold.
func TestOplogOfExpiry(t *testing.T) {
	f := logged(t)
	ns := namespace.NS{DB: "db", Coll: "c"}
	f.must(f.insert(ns, "{_id: 0, keep: true}"))
	f.createIndexes(ns, "{key: {_ts: 1}, name: 'ts', expireAfterSeconds: 100}", "{key: {d: 1}, name: 'd_1', expireAfterSeconds: 5}")
	f.must(f.insert(ns, "{_id: 1, ttl: 3}", "{_id: 2, d: ISODate('2001-09-09T01:46:41Z')}", "{_id: 3}"))
	f.clock.Advance(200 * time.Second)
	c := f.Store.current.Load().catalog.Collection(ns)
	rules := c.ExpiryRules()
	for i := range rules.All() {
		err := f.Write(context.Background(), ns, creating, func(w *Writer) error {
			ids, _, err := w.Dates().All(&rules.All()[i], f.Now(), nil, 100)
			if err != nil {
				return err
			}
			return w.ExpireMany(&rules.All()[i], ids, func(Record, bool) bool { return true })
		})
		f.must(err)
	}
	var got []string
	docs, _ := f.entries()
	for _, d := range docs {
		ops := d.Lookup("o").Doc().Lookup("applyOps")
		if ops.IsMissing() {
			ops = bson.Build().Document("0", d).Doc().Value()
		}
		for it := ops.Doc().Iter(); it.Next(); {
			if op := it.Value().Doc(); op.Lookup("op").Str() == "d" {
				got = append(got, fmt.Sprint(op.Lookup("o").Doc().Lookup("_id"), " ", op.Lookup("expiration")))
			}
		}
	}
	want := []string{
		`1 { index: "ts", field: "_ts", deadline: new Date(1000000003000), rule: "ttl" }`,
		`2 { index: "d_1", field: "d", deadline: new Date(1000000006000), rule: "index" }`,
		`0 { index: "ts", field: "_ts", deadline: new Date(1000000100000), rule: "_ts" }`,
		`3 { index: "ts", field: "_ts", deadline: new Date(1000000100000), rule: "_ts" }`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
