package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

var historyNS = namespace.NS{DB: "db", Coll: "c"}

// historyOf reads what is stored of a session, and looks whether the collections count what they have.
func (f *fixture) historyOf(session string) *history.History {
	f.t.Helper()
	h, err := f.History(context.Background(), bson.MustDoc(session))
	f.must(err)
	for _, ns := range []namespace.NS{catalog.TransactionsNS, catalog.ImagesNS} {
		f.read(ns, func(r *Reader) error {
			var n, bytes int64
			err := r.each(func(rec Record) error { n++; bytes += int64(len(rec.Doc)); return nil })
			f.must(err)
			documents, size, err := r.storedCounts()
			if documents != n || size != bytes {
				f.t.Errorf("%s counts %d documents of %d bytes and has %d of %d", ns, documents, size, n, bytes)
			}
			return err
		})
	}
	return h
}

// did is what was done under a History's number, the last first.
func (f *fixture) did(h *history.History) (text string, complete bool) {
	f.t.Helper()
	view, err := f.View(context.Background())
	f.must(err)
	defer func() { f.must(view.Close()) }()
	var out []string
	complete, err = h.Each(context.Background(), view, func(_, op bson.Doc) error {
		out = append(out, fmt.Sprintf("%s%s", op.Lookup("op").Str(), op.Lookup("stmtId")))
		return nil
	})
	f.must(err)
	return strings.Join(out, " "), complete
}

func (f *fixture) retryable(h *history.History, statement int32, image oplog.Image, do func(*Writer) error) {
	f.t.Helper()
	f.must(f.Write(context.Background(), historyNS, WriteOptions{Durability: kv.Synced, Create: true, Retry: &history.Retry{History: h, Statement: statement, Image: image}}, do))
}

// TestHistory: what a session did is found again, also by a server that was started since.
func TestHistory(t *testing.T) {
	f := logged(t)
	h := f.historyOf("{id: 1}")
	if h.Number != -1 || h.Last.Timestamp != 0 {
		t.Fatalf("%+v", h)
	}
	h.Begin(5)
	f.retryable(h, 0, oplog.NoImage, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 1, a: 1}"))
		return err
	})
	f.retryable(h, 1, oplog.NoImage, func(w *Writer) error {
		for i := range 3 {
			w.Statement(int32(i + 1))
			if _, err := w.Insert(bson.Build().Int32("_id", int32(i+2)).Doc()); err != nil {
				return err
			}
		}
		return nil
	})
	f.must(f.insert(historyNS, "{_id: 9}")) // by somebody else
	f.retryable(h, 7, oplog.PreImage, func(w *Writer) error {
		rec, _, err := w.GetByID(bson.Int32(1))
		if err == nil {
			_, _, err = w.Update(rec.Clone(), bson.MustDoc("{_id: 1, a: 2}"))
		}
		return err
	})
	last := h.Last
	check := func(when string) {
		t.Helper()
		stored := f.historyOf("{id: 1}")
		if stored.Number != 5 || stored.Last != last || stored.State != "" {
			t.Errorf("%s: stored is %+v, remembered %+v", when, stored, h)
		}
		if text, complete := f.did(stored); text != "u7 i3 i2 i1 i0" || !complete {
			t.Errorf("%s: it did %s", when, text)
		}
		view, err := f.View(context.Background())
		f.must(err)
		defer func() { f.must(view.Close()) }()
		if image, err := stored.Image(view, stored.Last.Timestamp); err != nil || image.String() != "{ _id: 1, a: 1 }" {
			t.Errorf("%s: the image is %s, %v", when, image, err)
		}
		if image, err := stored.Image(view, stored.Last.Timestamp-1); err != nil || image != nil {
			t.Errorf("%s: the image of another entry is %s, %v", when, image, err)
		}
	}
	check("at first")
	f.reopen()
	check("opened again")

	// A write that fails leaves nothing, and one that changes nothing neither.
	f.retryable(h, 8, oplog.NoImage, func(*Writer) error { return nil })
	if err := f.Write(context.Background(), historyNS, WriteOptions{Retry: &history.Retry{History: h, Statement: 8, Image: oplog.NoImage}}, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 9}"))
		return err
	}); !mongoerr.Is(err, mongoerr.DuplicateKey) {
		t.Fatal(err)
	}
	check("after writes that were none")

	// Another number begins anew, with what a transaction did, too.
	h.Begin(6)
	txn, err := f.BeginTransaction(context.Background(), TransactionOptions{Now: f.Now(), History: h, LockTimeout: -1})
	f.must(err)
	f.must(txn.Write(context.Background(), historyNS, WriteOptions{}, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 10}"))
		return err
	}))
	check("while a transaction is open")
	f.must(txn.Commit(context.Background(), kv.Synced))
	f.reopen()
	if stored := f.historyOf("{id: 1}"); stored.Number != 6 || stored.State != history.CommittedState || stored.Last != h.Last {
		t.Errorf("after a transaction: stored is %+v, remembered %+v", stored, h)
	}

	// Where the oplog does not reach back it says so.
	h = f.historyOf("{id: 2}")
	h.Begin(1)
	f.retryable(h, 0, oplog.NoImage, func(w *Writer) error {
		_, err := w.Insert(bson.MustDoc("{_id: 20}"))
		return err
	})
	h.Last.Timestamp++
	if text, complete := f.did(h); text != "" || complete {
		t.Errorf("%q, %v", text, complete)
	}

	// Sessions are forgotten one by one, by nobody but the store.
	var sessions []string
	f.must(f.Sessions(context.Background(), func(session bson.Doc, wrote int64) error {
		sessions = append(sessions, fmt.Sprint(session, wrote-f.clock.Now().UnixMilli()))
		return nil
	}))
	if got := strings.Join(sessions, " "); got != "{ id: 1 } 0 { id: 2 } 0" {
		t.Error(got)
	}
	f.must(f.Reap(context.Background(), bson.MustDoc("{id: 1}")))
	f.must(f.Reap(context.Background(), bson.MustDoc("{id: 3}")))
	if h := f.historyOf("{id: 1}"); h.Number != -1 {
		t.Errorf("%+v", h)
	}
	if h := f.historyOf("{id: 2}"); h.Number != 1 {
		t.Errorf("%+v", h)
	}
	if err := f.insert(catalog.TransactionsNS, "{_id: 1}"); !mongoerr.Is(err, mongoerr.IllegalOperation) {
		t.Error(err)
	}
}
