package history

import (
	"slices"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

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

// Commit is one commit under a History, on its way.
type Commit struct {
	*History
	state string
	image bson.Doc // or nil
	kind  oplog.Image
	sizes [2]int // of what is stored when it is committed
	// room is memory for the key of what is kept.
	room [96]byte
}

// Commit is that of the statement.
func (r *Retry) Commit() *Commit { return &Commit{History: r.History, kind: r.Image} }

// Transaction is the commit of a transaction of several statements.
func (h *History) Transaction() *Commit { return &Commit{History: h, state: CommittedState} }

// KeepImage keeps what a findAndModify gives back.
func (w *Commit) KeepImage(before, after bson.Doc) {
	if w == nil || w.kind == oplog.NoImage {
		return
	}
	w.image = before
	if w.kind == oplog.PostImage {
		w.image = after
	}
	w.image = w.image.Clone()
}

// Stamp writes what is kept of the session, where transactions and images are the collections of it; nil for those that are not there.
func (w *Commit) Stamp(t kv.Txn, m *meaning.Meaning, transactions, images *meaning.Target, c oplog.Circumstances) {
	m.Before = w.Last
	d := w.begin(c, overhead)
	d.b.Object("lastWriteOpTime")
	d.timestamp().Int64("t", c.Term).End().Date("lastWriteDate", c.Wall)
	if w.state != "" {
		d.b.String("state", w.state)
	}
	w.sizes = [2]int{w.put(t, m, transactions, w.record, d), w.History.image}
	if w.image == nil {
		return
	}
	d = w.begin(c, overhead+len(w.image))
	d.timestamp().String("imageKind", string(w.kind)).Document("image", w.image).Bool("invalidated", false)
	w.sizes[1] = w.put(t, m, images, w.History.image, d)
}

// overhead is about what a document that is kept takes beside the session and the image.
const overhead = 128

// document is a document that is kept of a session, behind the header of its record.
type document struct {
	b  bson.Builder
	ts int // where in the record its timestamp is
}

func (w *Commit) begin(c oplog.Circumstances, more int) *document {
	d := &w.doc
	d.b.Reset(layout.AppendRecord(make([]byte, 0, layout.HeaderLength+len(w.Session)+more), c.Wall, nil))
	d.b.Document("_id", w.Session).Int64("txnNum", w.Number)
	return d
}

// timestamp adds the one that is known when the commit is ordered.
func (d *document) timestamp() *bson.Builder {
	d.b.Timestamp("ts", 0, 0)
	d.ts = len(d.b.Buffer()) - 8
	return &d.b
}

// put stamps a document that takes the place of one of so many bytes, 0 for none, and returns how many it has.
func (w *Commit) put(t kv.Txn, m *meaning.Meaning, to *meaning.Target, was int, d *document) int {
	if to == nil {
		return 0
	}
	record := d.b.Bytes()
	d.b.Replace(nil) // the commit keeps it
	room := w.room[:0]
	if len(m.References) > 0 { // the first has it
		room = nil
	}
	m.Stamp(t, kv.Op{Key: w.key(room, to), Value: record}, oplog.Reference{At: d.ts})
	documents, length := int64(0), len(record)-layout.HeaderLength
	if was == 0 {
		documents = 1
	}
	to.Add(t, documents, int64(length-was))
	return length
}

// key is that of the session's record, in room if it fits. The id is kept for the next write, since all of a session have the same.
func (w *Commit) key(room []byte, to *meaning.Target) []byte {
	if w.id == nil || w.idOf != to.ID {
		w.id, w.idOf = to.AppendID(nil, w.Session.Value()), to.ID
	}
	return layout.RecordKey(slices.Grow(room, layout.TableLength+len(w.id)), to.ID, w.id)
}

// Committed takes note of what was committed; it says whether anything was.
func (w *Commit) Committed(m *meaning.Meaning) bool {
	if w == nil || m.Timestamp == 0 {
		return false
	}
	w.Last, w.State = oplog.OpTime{Timestamp: m.Timestamp, Term: m.Term}, w.state
	w.record, w.History.image = w.sizes[0], w.sizes[1]
	return true
}
