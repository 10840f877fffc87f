package query

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/oplog"
)

// Retry is a retryable write under way: one whose client may send it again when it has got no answer. Each of its statements has a
// number. One that was executed before, and that changed anything, is not executed again: what is replied is made of what the oplog
// tells of it.
type Retry struct {
	history *history.History
	first   int32
	numbers []int32        // of the statements; nil: first and those that follow
	wanted  map[int32]bool // numbers; nil where they follow one another
	done    map[int32]executed
	// incomplete says that the oplog does not reach back to the first statement.
	incomplete bool
	// Before, unless nil, is called before what a statement has written is committed; its error prevents that.
	Before func() error
	// Repeated are the numbers of the statements that were not executed again.
	Repeated []int32
}

// executed is a statement that was executed before.
type executed struct {
	op byte // of its entry: i, u or d
	// id is that of the document that was inserted by an op i.
	id bson.Value
}

// NewRetry is the write with the history's number. The statements are numbered from first on, or as numbers says.
func (e *Engine) NewRetry(ctx context.Context, h *history.History, first int32, numbers []int32) (*Retry, error) {
	r := &Retry{history: h, first: first, numbers: numbers}
	if numbers != nil {
		r.wanted = make(map[int32]bool, len(numbers))
		for _, n := range numbers {
			r.wanted[n] = true
		}
	}
	if h.Last.Timestamp == 0 {
		return r, nil
	}
	view, err := e.Store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	r.done = map[int32]executed{}
	complete, err := h.Each(ctx, view, func(_, op bson.Doc) error {
		number := op.Lookup("stmtId")
		if number.Type != bson.TypeInt32 || !r.mayHave(number.Int32()) {
			return nil
		}
		x := executed{op: op.Lookup("op").Str()[0]}
		if x.op == 'i' {
			x.id = op.Lookup("o").Doc().Lookup("_id").Clone()
		}
		r.done[number.Int32()] = x // of several operations of one statement the first remains
		return nil
	})
	r.incomplete = !complete
	return r, err
}

// maxStatements is how many statements a write has at most: what else was done under its number is not remembered.
const maxStatements = 100_000

// mayHave says whether one of the statements may have the number.
func (r *Retry) mayHave(number int32) bool {
	if r.numbers != nil {
		return r.wanted[number]
	}
	return number >= r.first && int64(number) < int64(r.first)+maxStatements
}

// number is that of the i-th statement.
func (r *Retry) number(i int) int32 {
	if r.numbers != nil {
		return r.numbers[i]
	}
	return r.first + int32(i)
}

// before says whether the i-th statement, which writes to a collection, was executed before.
func (r *Retry) before(ns namespace.NS, i int) (x executed, done bool, err error) {
	if r == nil {
		return x, false, nil
	}
	if ns.DB == catalog.LocalDB {
		return x, false, mongoerr.New(mongoerr.IllegalOperation, "retryable writes is not supported for unreplicated ns: %s", ns)
	}
	x, done = r.done[r.number(i)]
	switch {
	case done:
		r.Repeated = append(r.Repeated, r.number(i))
	case r.incomplete:
		return x, false, mongoerr.New(mongoerr.IncompleteTransactionHistory, "Incomplete history detected for transaction %d on session %s", r.history.Number, r.history.Session)
	}
	return x, done, nil
}

// of is what the store has to know to write the i-th statement.
func (r *Retry) of(i int, image oplog.Image) *history.Retry {
	if r == nil {
		return nil
	}
	return &history.Retry{History: r.history, Statement: r.number(i), Image: image, Before: r.Before}
}

// errRepeated stands for a document that was inserted before.
var errRepeated = errors.New("query: the document was inserted before")

// updated is what an update did that was executed before.
func (x executed) updated() Updated {
	if x.op == 'i' {
		return Updated{UpsertedID: x.id}
	}
	return Updated{Matched: 1, Modified: 1}
}

// modifiedBefore is what a findAndModify did that was executed before.
func (e *Engine) modifiedBefore(ctx context.Context, f FindAndModify, call *Call) (done Modified, err error) {
	view, err := e.Store.View(ctx)
	if err != nil {
		return done, err
	}
	defer view.Close()
	r := call.Retry
	var entry, op bson.Doc
	_, err = r.history.Each(ctx, view, func(from, o bson.Doc) error {
		if number := o.Lookup("stmtId"); number.Type == bson.TypeInt32 && number.Int32() == r.number(call.Statement) {
			entry, op = from.Clone(), o.Clone() // of several operations the first is the statement's own
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	at := oplog.NewTimestamp(entry.Lookup("ts").Timestamp())
	if err := checkModifiedBefore(f, entry, op); err != nil {
		return done, err
	}
	var image bson.Doc
	kind := op.Lookup("op").Str()
	if kind != "i" {
		if image, err = r.history.Image(view, at); err != nil {
			return done, err
		}
		if image == nil {
			return done, mongoerr.New(5637602, "image collection no longer contains the complete write history of this transaction, record with sessionId: %s cannot be found", r.history.Session)
		}
	}
	fields, err := e.returnedFields(ctx, nil, f, call)
	if err != nil {
		return done, err
	}
	switch kind {
	case "i":
		doc := op.Lookup("o").Doc()
		done.UpsertedID, done.Changed = doc.Lookup("_id"), true
		if f.New {
			image = doc
		}
	default:
		done.Found, done.Changed = true, true
	}
	if image == nil {
		return done, nil
	}
	details, err := fields.matched(e, f.Filter, image)
	if err == nil {
		done.Value, err = fields.of(image, details)
	}
	return done, err
}

// checkModifiedBefore refuses a findAndModify that cannot be what was executed before.
func checkModifiedBefore(f FindAndModify, entry, op bson.Doc) error {
	kind, image := op.Lookup("op").Str(), op.Lookup("needsRetryImage")
	seconds, counter := entry.Lookup("ts").Timestamp()
	other := func(code mongoerr.Code, what string) error {
		return mongoerr.New(code, "findAndModify retry request %s, oplogTs: Timestamp(%d, %d)", what, seconds, counter)
	}
	const incompatible = "is not compatible with previous write in the transaction of type: "
	stored := oplog.NoImage
	if image.Type == bson.TypeString {
		stored = oplog.Image(image.Str())
	}
	switch {
	case kind == "d" && !f.Remove:
		return other(40606, incompatible+"d")
	case kind == "i" && !f.Upsert:
		return other(40608, incompatible+"i")
	case kind != "d" && kind != "i" && kind != "u":
		return other(40609, incompatible+kind)
	case kind == "u" && f.New && stored == oplog.PreImage:
		return other(40611, "wants the document after update returned, but only before update document is stored")
	case kind == "u" && !f.New && stored == oplog.PostImage:
		return other(40612, "wants the document before update returned, but only after update document is stored")
	case kind != "i" && stored == oplog.NoImage:
		return mongoerr.New(mongoerr.IncompleteTransactionHistory, "Retrying a findAndModify operation after it has been executed but the image is no longer available")
	}
	return nil
}
