package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// History is what is kept of a session, so that a client may send a write again whose reply it has not got: the number of its last
// write or transaction, and the place of that one's last entry in the oplog. Each entry names the one before it, so all that was done
// under the number can be found. It is written in the commit of what it tells of, as a document of config.transactions.
//
// One operation at a time has a session, and with it its History.
type History struct {
	// Session is the session's id, {id, uid}.
	Session bson.Doc
	// Number is that of its last write or transaction, -1 before the first.
	Number int64
	// Last is the last entry under Number; the zero OpTime is none.
	Last oplog.OpTime
	// State is CommittedState when Last is of a transaction.
	State string

	record, image int             // how many bytes the documents have that are stored; 0: none is
	id            layout.RecordID // of the one in the collection idOf; nil: not made yet
	idOf          uint32
}

// CommittedState is the State of a transaction that was committed.
const CommittedState = "committed"

// Begin starts another number.
func (h *History) Begin(number int64) { h.Number, h.Last, h.State = number, oplog.OpTime{}, "" }

// createHistories makes the collections that keep what sessions did, and how documents were.
func (s *Store) createHistories(ctx context.Context) error {
	options := bson.Build().Object("clusteredIndex").Int32("v", 2).Object("key").Int32("_id", 1).End().String("name", "_id_").Bool("unique", true).End().Doc()
	for _, ns := range []namespace.NS{catalog.TransactionsNS, catalog.ImagesNS, catalog.PreImagesNS} {
		if err := s.createOnce(ctx, ns, options); err != nil {
			return err
		}
		if c := s.Catalog().Collection(ns); c == nil || !c.IsHistory() || len(c.Indexes) > 0 {
			return mongoerr.New(mongoerr.IllegalOperation, "%s is there, and not as a member of a replica set needs it: drop or rename it first", ns)
		}
	}
	return nil
}

// historyOf is the collection of histories with the name; nil where there is none.
func (v *version) historyOf(ns namespace.NS) *collection {
	for _, c := range v.histories {
		if c.NS == ns {
			return c
		}
	}
	return nil
}

// History reads what is kept of a session.
func (s *Store) History(ctx context.Context, session bson.Doc) (*History, error) {
	view, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	h := &History{Session: session.Clone(), Number: -1}
	record, err := h.stored(view, catalog.TransactionsNS)
	if err != nil || record == nil {
		return h, err
	}
	image, err := h.stored(view, catalog.ImagesNS)
	if err != nil {
		return nil, err
	}
	h.record, h.image = len(record), len(image)
	at := record.Lookup("lastWriteOpTime").Doc()
	ts, term := at.Lookup("ts"), at.Lookup("t")
	number, state := record.Lookup("txnNum"), record.Lookup("state")
	if number.Type != bson.TypeInt64 || ts.Type != bson.TypeTimestamp || term.Type != bson.TypeInt64 {
		return nil, fmt.Errorf("what is kept of a session cannot be read: %s", record)
	}
	h.Number, h.Last = number.Int64(), oplog.OpTime{Timestamp: oplog.NewTimestamp(ts.Timestamp()), Term: term.Int64()}
	if state.Type == bson.TypeString && state.Str() == CommittedState {
		h.State = CommittedState
	}
	return h, nil
}

// stored is the session's document in one of the collections, nil where there is none.
func (h *History) stored(view *View, ns namespace.NS) (bson.Doc, error) {
	r, ok := view.Collection(ns)
	if !ok {
		return nil, nil
	}
	rec, ok, err := r.GetByID(h.Session.Value())
	if err != nil || !ok {
		return nil, err
	}
	return rec.Doc.Clone(), nil
}

// Image is the image that is kept of the findAndModify whose entry is at t; nil where it is not that one's.
func (h *History) Image(view *View, t oplog.Timestamp) (bson.Doc, error) {
	d, err := h.stored(view, catalog.ImagesNS)
	if err != nil || d == nil {
		return nil, err
	}
	number, ts, image := d.Lookup("txnNum"), d.Lookup("ts"), d.Lookup("image")
	if number.Type != bson.TypeInt64 || number.Int64() != h.Number || ts.Type != bson.TypeTimestamp || oplog.NewTimestamp(ts.Timestamp()) != t || image.Type != bson.TypeObject {
		return nil, nil
	}
	return image.Doc(), nil
}

// Each calls f for each operation that was done under the History's number and the entry that it is of, the last first. ok is false
// where the oplog does not reach back to the first.
func (h *History) Each(ctx context.Context, view *View, f func(entry, op bson.Doc) error) (ok bool, err error) {
	r, found := view.Collection(catalog.OplogNS)
	if !found {
		return h.Last.Timestamp == 0, nil
	}
	for at := h.Last.Timestamp; at != 0; {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		rec, found, err := r.Get(layout.SequenceID(uint64(at)))
		if err != nil || !found {
			return false, err
		}
		entry := rec.Doc
		if err := eachOperation(entry, f); err != nil {
			return false, err
		}
		before := entry.Lookup("prevOpTime").Doc().Lookup("ts")
		if before.Type != bson.TypeTimestamp {
			return false, errors.New("an entry of a session does not name the one before it")
		}
		previous := oplog.NewTimestamp(before.Timestamp())
		if previous >= at {
			return false, errors.New("an entry of a session names a later one as the one before it")
		}
		at = previous
	}
	return true, nil
}

// eachOperation calls f for the operations of one entry, the last first.
func eachOperation(entry bson.Doc, f func(entry, op bson.Doc) error) error {
	all := entry.Lookup("o").Doc().Lookup("applyOps")
	if all.Type != bson.TypeArray {
		return f(entry, entry)
	}
	var ops []bson.Doc
	for it := all.Doc().Iter(); it.Next(); {
		ops = append(ops, it.Value().Doc())
	}
	for i := len(ops) - 1; i >= 0; i-- {
		if err := f(entry, ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// Retry is a statement of a retryable write, or several.
type Retry struct {
	*History
	// Statement is the number of the statement; who writes several says before each which it is (Writer.Statement).
	Statement int32
	// Image is what is kept of the document that the statement changes.
	Image oplog.Image
	// Before, unless nil, is called before what was written is committed; its error prevents that.
	Before func() error
}

// write is one commit under a History.
type write struct {
	*History
	state string
	image bson.Doc // or nil
	kind  oplog.Image
	sizes [2]int  // of what is stored when it is committed
	doc   keptDoc // that is being made
}

// retry has the transaction be a statement of a retryable write.
func (t *Txn) retry(r *Retry) {
	t.history = &write{History: r.History, kind: r.Image}
	t.log.Statement(r.Statement, r.Image)
}

// Statement says which statement of a retryable write is written next.
func (w *Writer) Statement(number int32) { w.txn.log.Statement(number, oplog.NoImage) }

// keepImage keeps what a findAndModify gives back.
func (t *Txn) keepImage(before, after bson.Doc) {
	if t.history == nil || t.history.kind == oplog.NoImage {
		return
	}
	t.history.image = before
	if t.history.kind == oplog.PostImage {
		t.history.image = after
	}
	t.history.image = t.history.image.Clone()
}

// stamp writes what is kept of the session.
func (w *write) stamp(t kv.Txn, m *meaning.Meaning, v *version, c oplog.Circumstances) {
	m.Before = w.Last
	d := w.begin(c, historyOverhead)
	d.b.Object("lastWriteOpTime")
	d.timestamp().Int64("t", c.Term).End().Date("lastWriteDate", c.Wall)
	if w.state != "" {
		d.b.String("state", w.state)
	}
	w.sizes = [2]int{w.put(t, m, v, catalog.TransactionsNS, w.record, d), w.History.image}
	if w.image == nil {
		return
	}
	d = w.begin(c, historyOverhead+len(w.image))
	d.timestamp().String("imageKind", string(w.kind)).Document("image", w.image).Bool("invalidated", false)
	w.sizes[1] = w.put(t, m, v, catalog.ImagesNS, w.History.image, d)
}

// historyOverhead is about what a document that is kept takes beside the session and the image.
const historyOverhead = 128

// keptDoc is a document that is kept of a session, behind the header of its record.
type keptDoc struct {
	b  bson.Builder
	ts int // where in the record its timestamp is
}

func (w *write) begin(c oplog.Circumstances, more int) *keptDoc {
	d := &w.doc
	d.b.Reset(layout.AppendRecord(make([]byte, 0, layout.HeaderLength+len(w.Session)+more), c.Wall, nil))
	d.b.Document("_id", w.Session).Int64("txnNum", w.Number)
	return d
}

// timestamp adds the one that is known when the commit is ordered.
func (d *keptDoc) timestamp() *bson.Builder {
	d.b.Timestamp("ts", 0, 0)
	d.ts = len(d.b.Buffer()) - 8
	return &d.b
}

// put stamps a document that takes the place of one of so many bytes, 0 for none, and returns how many it has.
func (w *write) put(t kv.Txn, m *meaning.Meaning, v *version, ns namespace.NS, was int, d *keptDoc) int {
	to := v.historyOf(ns)
	if to == nil {
		return 0
	}
	record := d.b.Bytes()
	d.b.Replace(nil) // the commit keeps it
	m.References = append(m.References, oplog.Reference{Stamped: len(m.Entries) + len(m.References), At: d.ts})
	t.Stamp(kv.Op{Key: w.key(to), Value: record})
	if was == 0 {
		t.Add(to.documentsKey, 1)
	}
	length := len(record) - layout.HeaderLength
	if grown := length - was; grown != 0 {
		t.Add(to.bytesKey, int64(grown))
	}
	return length
}

// key is that of the session's record. The id is kept for the next write, since all of a session have the same.
func (w *write) key(to *collection) []byte {
	if w.id == nil || w.idOf != to.ID {
		w.id, w.idOf = to.appendID(nil, w.Session.Value()), to.ID
	}
	return layout.RecordKey(make([]byte, 0, layout.TableLength+len(w.id)), to.ID, w.id)
}

// HistoryWrites is how many commits there were since the start that something is kept of for their session.
func (s *Store) HistoryWrites() int64 { return s.historyWrites.Load() }

// committed takes note of what was committed.
func (w *write) committed(s *Store, m *meaning.Meaning) {
	if w == nil || m.Timestamp == 0 {
		return
	}
	s.historyWrites.Add(1)
	w.Last, w.State = oplog.OpTime{Timestamp: m.Timestamp, Term: m.Term}, w.state
	w.record, w.History.image = w.sizes[0], w.sizes[1]
}

// Reap deletes what is kept of a session.
func (s *Store) Reap(ctx context.Context, session bson.Doc) error {
	for _, ns := range []namespace.NS{catalog.TransactionsNS, catalog.ImagesNS} {
		err := s.Write(ctx, ns, WriteOptions{Durability: kv.Buffered, history: true}, func(w *Writer) error {
			rec, ok, err := w.GetByID(session.Value())
			if err != nil || !ok {
				return err
			}
			return w.Delete(rec)
		})
		if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
			return err
		}
	}
	return nil
}

// Sessions calls f for each session of which something is kept, and when it wrote last.
func (s *Store) Sessions(ctx context.Context, f func(session bson.Doc, wrote int64) error) error {
	view, err := s.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	r, ok := view.Collection(catalog.TransactionsNS)
	if !ok {
		return nil
	}
	return r.each(func(rec Record) error {
		id, date := rec.Doc.Lookup("_id"), rec.Doc.Lookup("lastWriteDate")
		if id.Type != bson.TypeObject || date.Type != bson.TypeDate {
			return nil
		}
		return f(id.Doc(), date.Millis())
	})
}
