package command

import (
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/namespace"
)

// cursorOptions are what a command says of the cursor it opens.
type cursorOptions struct {
	batch       int64
	batchGiven  bool
	single      bool
	noTimeout   bool
	planSummary string
	// seen counts what is looked at; nil for what does not look. sorts says that a stage sorts.
	seen      *exec.Examined
	sorts     bool
	tailable  bool
	awaitData bool
	watches   bool
	// empty says that there is surely nothing, so that a first batch without documents is the last one, too.
	empty bool
	// during says what for documents are looked for, before the namespace, to those whom an error tells of it; "" for nothing.
	during string
}

// openCursor answers with the first batch of src, and keeps the rest for getMore. It owns src.
func (op *Op) openCursor(ns namespace.NS, src cursor.Source, o cursorOptions) (bson.Doc, error) {
	if !o.batchGiven {
		o.batch = cursor.DefaultFirstBatch
	}
	c := &cursor.Cursor{NS: ns.String(), LSID: op.SessionID, User: op.user(), TxnNumber: op.cursorTxn(), PlanSummary: o.planSummary,
		NoTimeout: o.noTimeout, Single: o.single, Tailable: o.tailable, AwaitData: o.awaitData, Durable: op.readsDurable(), Watches: o.watches, Sorts: o.sorts, Executed: op.executed, Source: src, AtClusterTime: op.readsAt()}
	b := op.build().Object("cursor").Array("firstBatch")
	more := !o.empty
	if !o.batchGiven || o.batch > 0 {
		var err error
		if more, err = c.Batch(op.Ctx, b, o.batch, op.ReplyMemory); err != nil {
			_ = src.Close() // the first error is the one to tell
			if o.during != "" {
				op.during = o.during + c.NS
			}
			return nil, err
		}
	}
	op.appendResumeToken(b.End(), c)
	if o.single {
		more = false
	}
	if !more {
		if err := src.Close(); err != nil {
			return nil, err
		}
	} else if err := op.keep(c, o.seen); err != nil {
		_ = src.Close()
		return nil, err
	}
	n, _ := c.Returned()
	op.Running.Stats.Returned.Store(n)
	op.Running.Stats.CursorID.Store(c.ID)
	op.Running.Stats.CursorExhausted.Store(!more)
	return appendAt(b.Int64("id", c.ID).String("ns", c.NS), c.AtClusterTime).End().Doc(), nil
}

// appendResumeToken appends where a client can go on behind the batch, if the cursor is one of a change stream.
func (op *Op) appendResumeToken(b *bson.Builder, c *cursor.Cursor) {
	if token := c.ResumeToken(); token != nil {
		b.Document("postBatchResumeToken", token)
		op.tellsDurable()
	}
}

// takesOne says whether a first batch has room for a document and a sign that there is no other.
func (o *cursorOptions) takesOne() bool {
	return !o.batchGiven || o.batch > 1 || o.batch == 1 && o.single
}

// replyOne answers with all there is, doc or nothing; see openCursor.
func (op *Op) replyOne(doc bson.Doc) bson.Doc {
	b := op.build().Object("cursor").Array("firstBatch")
	if doc != nil {
		b.Document("0", doc)
		op.Running.Stats.Returned.Store(1)
	}
	op.Running.Stats.CursorExhausted.Store(true)
	return b.End().Int64("id", 0).String("ns", op.Running.NS).End().Doc()
}

// keep parks c, which has what it looks at counted in seen, for getMore, with what is left of the command's time.
func (op *Op) keep(c *cursor.Cursor, seen *exec.Examined) error {
	if seen != nil {
		c.Examined = func() (keys, docs int64) { return seen.Keys, seen.Docs }
	}
	c.Command, c.API, c.ParsedBytes = op.Args.Document().Clone(), op.apiParameters(), parsedBytes(op.Args.Document())
	if op.MaxTime > 0 {
		c.MaxTime = max(time.Millisecond, op.MaxTime-(op.elapsed()-op.Running.Began))
	}
	if op.txn != nil {
		op.seat.Transaction().Work.(*work).cursors = true
	}
	c.Adopt(&op.parsing)
	return op.Cursors.Add(c)
}
