// Package history is what is kept of a session, so that a client may send a write again whose reply it has not got: the number of its last
// write or transaction, the place of that one's last entry in the oplog, and the image that a findAndModify gave back. It is written in the
// commit of what it tells of, as documents of config.transactions and config.image_collection. It does not know who writes, nor where the
// documents are read.
package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// History is what is kept of one session. Each entry of the oplog names the one before it, so all that was done under the number can be
// found.
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
	doc           document // that is being made
}

// CommittedState is the State of a transaction that was committed.
const CommittedState = "committed"

// Begin starts another number.
func (h *History) Begin(number int64) { h.Number, h.Last, h.State = number, oplog.OpTime{}, "" }

// Equal says whether both tell the same of the same session, also of what is stored.
func (h *History) Equal(o *History) bool {
	return string(h.Session) == string(o.Session) && h.Number == o.Number && h.Last == o.Last && h.State == o.State && h.record == o.record && h.image == o.image
}

// Records are documents as a view has them.
type Records interface {
	// Document is the one of a collection with the _id; nil where there is none.
	Document(ns namespace.NS, id bson.Value) (bson.Doc, error)
	// LogEntry is the oplog's at a timestamp; nil where there is none.
	LogEntry(t oplog.Timestamp) (bson.Doc, error)
}

// Read reads what is kept of a session.
func Read(session bson.Doc, from Records) (*History, error) {
	h := &History{Session: session.Clone(), Number: -1}
	record, err := from.Document(catalog.TransactionsNS, h.Session.Value())
	if err != nil || record == nil {
		return h, err
	}
	image, err := from.Document(catalog.ImagesNS, h.Session.Value())
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

// Image is the image that is kept of the findAndModify whose entry is at t; nil where it is not that one's.
func (h *History) Image(from Records, t oplog.Timestamp) (bson.Doc, error) {
	d, err := from.Document(catalog.ImagesNS, h.Session.Value())
	if err != nil || d == nil {
		return nil, err
	}
	number, ts, image := d.Lookup("txnNum"), d.Lookup("ts"), d.Lookup("image")
	if number.Type != bson.TypeInt64 || number.Int64() != h.Number || ts.Type != bson.TypeTimestamp || oplog.NewTimestamp(ts.Timestamp()) != t || image.Type != bson.TypeObject {
		return nil, nil
	}
	return image.Doc().Clone(), nil
}

// Each calls f for each operation that was done under the History's number and the entry that it is of, the last first. ok is false
// where the oplog does not reach back to the first.
func (h *History) Each(ctx context.Context, from Records, f func(entry, op bson.Doc) error) (ok bool, err error) {
	for at := h.Last.Timestamp; at != 0; {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		entry, err := from.LogEntry(at)
		if err != nil || entry == nil {
			return false, err
		}
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
