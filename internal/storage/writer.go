package storage

import (
	"bytes"
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/duplicate"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/indexwrite"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/oplog"
	"github.com/ebbdb/ebb/internal/storage/ownership"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// MaxDocumentBytes is the largest document.
const MaxDocumentBytes = 16 << 20

// Writer changes one collection in a transaction. Its Reader sees what it has done. A change that is refused with an
// error leaves nothing of itself in the transaction, which may go on.
type Writer struct {
	*Reader
	txn     *Txn
	log     *oplog.Log // or nil
	claimed ownership.Stripes
	// What the transaction adds to the collection's counters, written once before the commit.
	documents, bytes int64
	entries          indexwrite.Writer
	expired          int64              // documents that were deleted because they had expired
	summary          oplog.Summary      // of those that are not told of one by one
	change           meaning.Change     // what its writes mean
	lowest           expiryorder.Floors // dates of what it wrote
	witnessed        bool               // see package witness
	modified         int64              // when what it writes is modified; see Txn.modifiedAt
	inTheWay         []Record           // expired ones that go when the change under way is not refused
}

// begin has a new Writer change c.
func (w *Writer) begin(t *Txn, c *collection) {
	w.Reader, w.txn, w.log, w.change, w.lowest = t.view.read(c), t, t.logOf(c), meaning.NewChange(c.ID), expiryorder.NoFloors()
	w.change.Listed, w.witnessed, w.modified = true, t.store.isWitnessed(c.NS), t.modifiedAt()
	w.entries.Begin(t.kv, c.Collection, c.order, c.indexes, &w.Reader.key)
	for _, b := range c.state.building() {
		for _, t := range b.Tables {
			w.entries.Build(indexwrite.Building{Index: t.Index, Side: t.Side, Generation: b.Generation})
		}
	}
}

// Txn is the transaction that w writes in.
func (w *Writer) Txn() *Txn { return w.txn }

// Insert adds doc and returns its record's id. The document must have an _id that may be one. An expired document that is
// hidden is no obstacle: it is deleted first.
func (w *Writer) Insert(doc bson.Doc) (RecordID, error) {
	if err := checkDocument(doc); err != nil {
		return nil, err
	}
	if err := w.txn.hasRoom(len(doc)); err != nil {
		return nil, err
	}
	w.inTheWay = w.inTheWay[:0]
	id, err := w.place(doc)
	if err != nil {
		return nil, err
	}
	if err := w.entries.Insert(doc); err != nil {
		return nil, err
	}
	if err := w.makeRoom(nil); err != nil {
		return nil, err
	}
	rec := Record{ID: id, Modified: w.modified, Doc: doc}
	w.putRecord(rec)
	w.keepPlace()
	w.entries.Move(Record{}, rec)
	w.documents++
	w.bytes += int64(len(doc))
	w.note(meaning.DocumentChange{Op: meaning.DocumentInserted, ID: id, Bytes: int64(len(doc))})
	w.witness(meaning.DocumentInserted, doc)
	w.change.Inserted = true
	w.noteDeadline(rec)
	if w.log != nil {
		w.log.Series(w.c.Options.TimeSeries)
		w.log.Insert(w.c.NS, w.c.UUID, doc)
	}
	return id, w.trimCapped()
}

// InsertCopy is Insert of a record of another collection, which was modified when it was there.
func (w *Writer) InsertCopy(rec Record) (RecordID, error) {
	defer func(was int64) { w.modified = was }(w.modified)
	w.modified = rec.Modified
	return w.Insert(rec.Doc)
}

// place is the id for a new record: the next in sequence, where the collection's order wants it, or in a clustered collection what _id says, or in a time series
// what is measured, and when.
func (w *Writer) place(doc bson.Doc) (RecordID, error) {
	switch {
	case w.c.id != nil:
		n, err := w.nextSequence()
		if err != nil || w.c.order == nil {
			return layout.SequenceID(n), err
		}
		var room [layout.PlaceLength]byte
		return layout.OrderedID(w.c.order.AppendPlace(room[:0], doc, w.modified), n), nil
	case w.c.IsTimeSeries():
		return w.placeInSeries(doc)
	}
	id, err := w.c.placement.Clustered(doc)
	if err != nil {
		return nil, err
	}
	rec, there, err := w.stored(id)
	switch {
	case err != nil:
		return nil, err
	case there && !w.hidden(&rec):
		return nil, duplicate.ID(w.c.Collection, rec.Doc)
	case there:
		w.isInTheWay(rec)
	}
	w.claim(layout.RecordKey(w.key[:0], w.c.ID, id))
	return id, nil
}

// placeInSeries is the id for a new measurement. It needs no claim: nobody else in this process gets its number, and of
// those of earlier ones the view knows all.
func (w *Writer) placeInSeries(doc bson.Doc) (RecordID, error) {
	id, err := w.c.placement.Measurement(doc)
	if err != nil {
		return nil, err
	}
	for {
		binary.BigEndian.PutUint64(id[len(id)-8:], w.c.state.measured.Add(1))
		if _, taken, err := w.stored(id); err != nil || !taken {
			return id, err
		}
	}
}

// Update puts doc in the place of old, which must have been read through this Writer or its transaction's View. changed
// is false, and nothing is written, when the bytes are the same. id is the record's id from now on.
func (w *Writer) Update(old Record, doc bson.Doc) (id RecordID, changed bool, err error) {
	return w.UpdateAs(oplog.Telling{}, old, doc)
}

// Logs says whether the oplog tells of what is written.
func (w *Writer) Logs() bool { return w.log != nil }

// UpdateAs is Update; how is in which way the oplog tells of it.
func (w *Writer) UpdateAs(how oplog.Telling, old Record, doc bson.Doc) (id RecordID, changed bool, err error) {
	if bytes.Equal(old.Doc, doc) {
		return old.ID, false, nil
	}
	if err := checkDocument(doc); err != nil {
		return nil, false, err
	}
	if !bson.Equal(old.Doc.Lookup("_id"), doc.Lookup("_id")) {
		return nil, false, mongoerr.New(mongoerr.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s", doc.Lookup("_id"))
	}
	if err := w.txn.hasRoom(len(doc)); err != nil {
		return nil, false, err
	}
	w.inTheWay = w.inTheWay[:0]
	if id, err = w.replace(old.ID, doc); err != nil {
		return nil, false, err
	}
	moved := !bytes.Equal(id, old.ID)
	if err := w.entries.Change(old.Doc, doc, moved); err != nil {
		return nil, false, err
	}
	if err := w.makeRoom(old.ID); err != nil {
		return nil, false, err
	}
	rec := Record{ID: id, Modified: w.modified, Doc: doc}
	w.write(meaning.DocumentUpdated, old, rec)
	w.witness(meaning.DocumentUpdated, doc)
	w.noteDeadline(rec)
	if w.log != nil {
		w.log.Series(w.c.Options.TimeSeries)
		w.log.Update(w.c.NS, w.c.UUID, old.Doc, doc, how)
		w.txn.history.KeepImage(old.Doc, doc)
		w.keepPreImage(old.Doc)
	}
	return rec.ID, true, nil
}

// write puts rec in the place of old, when the keys that it has and had are computed.
func (w *Writer) write(op meaning.DocumentOp, old, rec Record) {
	w.key = layout.RecordKey(w.key[:0], w.c.ID, old.ID)
	w.claimRecord(w.key)
	done := meaning.DocumentChange{Op: op, ID: rec.ID, Bytes: int64(len(rec.Doc)), WasBytes: int64(len(old.Doc))}
	if !bytes.Equal(old.ID, rec.ID) {
		w.txn.kv.Delete(w.key)
		w.noteRelocation(old.ID, rec.ID)
		done.Was = old.ID
	}
	w.putRecord(rec)
	if done.Was != nil {
		w.keepPlace()
	}
	w.entries.Move(old, rec)
	w.bytes += int64(len(rec.Doc) - len(old.Doc))
	w.note(done)
}

// Delete removes a record that was read through this Writer or its transaction's View.
func (w *Writer) Delete(rec Record) error { return w.remove(meaning.DocumentDeleted, rec) }

// remove deletes a record, hidden or not, with its entries.
func (w *Writer) remove(op meaning.DocumentOp, rec Record) error {
	if err := w.entries.Remove(rec.Doc); err != nil {
		return err
	}
	key := layout.RecordKey(w.key[:0], w.c.ID, rec.ID)
	w.claimRecord(key)
	w.txn.kv.Delete(key)
	w.key = key
	w.entries.Move(rec, Record{})
	w.documents--
	w.bytes -= int64(len(rec.Doc))
	w.note(meaning.DocumentChange{Op: op, ID: rec.ID, WasBytes: int64(len(rec.Doc))})
	w.witness(op, rec.Doc)
	if w.log != nil {
		w.logRemoval(op, rec)
	}
	return nil
}

func checkDocument(doc bson.Doc) error {
	if n := len(doc); n > MaxDocumentBytes {
		return mongoerr.New(mongoerr.BSONObjectTooLarge,
			"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", n, n, MaxDocumentBytes)
	}
	switch t := doc.Lookup("_id").Type; t {
	case bson.TypeMissing:
		return mongoerr.New(mongoerr.InvalidIdField, "Document must have an _id")
	case bson.TypeArray, bson.TypeRegex, bson.TypeUndefined:
		return mongoerr.New(mongoerr.InvalidIdField, "The '_id' value cannot be of type %s", t)
	}
	return nil
}

func (w *Writer) claim(key []byte) {
	w.txn.kv.Claim(key)
	if t := w.txn; t.statements != nil {
		t.take(key)
	} else if t.blocked == nil {
		t.blocked = t.store.intents.Held(key)
	}
	w.claimed |= w.txn.store.latches.Of(key)
}

// claimRecord is claim for the key of a record that was read.
func (w *Writer) claimRecord(key []byte) {
	if w.txn.statements == nil {
		w.claim(key)
		return
	}
	w.txn.kv.Claim(key)
	w.txn.takeRecord(w.c, key)
}

// keepPlace has sweeps know of the place where putRecord has just put a record, until a transaction of several statements has ended.
func (w *Writer) keepPlace() {
	if w.txn.statements != nil && w.c.order.Relocates() {
		w.txn.take(w.key)
	}
}

func (w *Writer) putRecord(rec Record) {
	w.key = layout.RecordKey(w.key[:0], w.c.ID, rec.ID)
	w.entries.Value = layout.AppendRecord(w.entries.Value[:0], rec.Modified, rec.Doc)
	if w.c.Options.Capped || w.c.IsTimeSeries() { // which are read in order
		w.txn.kv.Set(w.key, w.entries.Value)
		return
	}
	w.txn.kv.SetCached(w.key, w.entries.Value)
}

// noteDeadline keeps the earliest deadline of what is written, for those who wait for it.
func (w *Writer) noteDeadline(rec Record) {
	if !w.c.rules.Any() {
		return
	}
	if d, _ := w.c.rules.Deadline(rec.Doc, rec.Modified); d != policy.Never {
		w.change.Earliest = min(w.change.Earliest, d)
	}
}

// flush adds what w counted to the counters, once.
func (w *Writer) flush() {
	if w.documents != 0 {
		w.txn.kv.Add(w.c.documentsKey, w.documents)
	}
	if w.bytes != 0 {
		w.txn.kv.Add(w.c.bytesKey, w.bytes)
	}
	if w.expired != 0 {
		w.txn.kv.Add(layout.CounterKey(nil, layout.OfCollection, w.c.ID, layout.CountExpired), w.expired)
	}
	w.entries.Flush()
	w.documents, w.bytes, w.expired = 0, 0, 0
}

// note takes note of what happens to a document. Where records are ordered, what the transaction reads itself may lie before
// all others.
func (w *Writer) note(d meaning.DocumentChange) {
	w.change.Note(d)
	if d.Op > meaning.DocumentMoved {
		return
	}
	if span, date, ok := w.c.order.Of(d.ID); ok {
		w.lowest.Lower(span, date)
	}
}
