package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/cursor"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/history"
)

// transactionCommands end transactions. A standalone begins none, so that there is never one to end.
func transactionCommands() []*Command {
	return []*Command{
		{Name: "commitTransaction", Needs: Needs{Nothing: true}, Doc: "Makes all that was done in a transaction visible.", AdminOnly: true, WriteConcern: true, Run: endTransaction(commitTransaction)},
		{Name: "abortTransaction", Needs: Needs{Nothing: true}, Doc: "Makes all that was done in a transaction undone.", AdminOnly: true, WriteConcern: true, Run: endTransaction(abortTransaction)},
	}
}

func endTransaction(end func(*Op, *session.Seat) error) func(*Op) (bson.Doc, error) {
	return func(op *Op) (bson.Doc, error) {
		op.Args.Ignore(op.Name(), "recoveryToken", "commitTimestamp", "durableTimestamp")
		if err := op.Args.Done(); err != nil {
			return nil, err
		}
		if !op.multi {
			return nil, mongoerr.New(mongoerr.CommandFailed, "%s must be run within a transaction", op.Name())
		}
		if op.starts {
			return nil, mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot start a transaction with a %s", map[string]string{"commitTransaction": "commit", "abortTransaction": "abort"}[op.Command.Name])
		}
		return bson.EmptyDoc, end(op, op.seat)
	}
}

// work is what a session's transaction has done: a transaction of the store, and cursors.
type work struct {
	*storage.Txn
	server *Server
	lsid   string
	number int64
	// isSnapshot says that its level is "snapshot".
	isSnapshot bool
	// cursors says that it has opened some.
	cursors bool
	// memory is what it has taken for its writes.
	memory memory.Account
}

// hold takes memory for what a statement has written, or says that there is not enough.
func (w *work) hold(ctx context.Context) error {
	more := int64(w.Txn.Size()) - w.memory.Used()
	if more <= 0 {
		w.memory.Give(-more)
		return nil
	}
	return w.memory.Wait(ctx, more)
}

// Rollback implements session.Work.
func (w *work) Rollback() {
	w.endCursors()
	w.Txn.Rollback()
	w.memory.Close()
	w.forget()
}

// forget leaves nothing of what the transaction has made and not committed.
func (w *work) forget() {
	for _, coll := range w.Txn.Made() {
		w.server.Query.Forget(coll)
	}
}

func (w *work) endCursors() {
	if !w.cursors { // as a rule: nobody looks through those of all others then
		return
	}
	w.server.Cursors.KillWhere(func(c *cursor.Cursor) bool { return c.LSID == w.lsid && c.TxnNumber == w.number })
}

// commitTransaction commits the transaction once, and says that it is committed as often as it is asked.
func commitTransaction(op *Op, seat *session.Seat) error {
	t := seat.Transaction()
	if t.State == session.Committed {
		op.committed = kv.AllCommits // the one before may still be on its way to the disk
		return nil
	}
	w, ok := t.Work.(*work)
	if !ok { // nothing was done
		t.Commit()
		return nil
	}
	if err := op.enterWrites(); err != nil {
		return err // and the client may try again
	}
	defer op.Writes.Leave()
	w.endCursors()
	over := func(err error) {
		w.memory.Close()
		if err == nil {
			t.Commit()
			return
		}
		if t.State, t.Work = session.Aborted, nil; errors.Is(err, kv.ErrUndetermined) {
			t.State = session.Undetermined
		}
		w.forget()
		seat.Keep(unknown{}, -1, false) // nobody may know whether it was committed
	}
	seat.Ends()
	err := w.Txn.CommitWithin(op.Ctx, kv.Unsynced, op.commitPatience(), over)
	if op.leftCommit() != nil { // it stands, as far as is known
		op.noteMade(w.Txn.Made())
		return nil
	}
	if over(err); err != nil {
		if errors.Is(err, kv.ErrUndetermined) {
			op.noteMade(w.Txn.Made())
		}
		return err
	}
	if n := w.Txn.Number(); n > 0 {
		op.committed = n
	}
	op.noteMade(w.Txn.Made())
	return nil
}

func abortTransaction(_ *Op, seat *session.Seat) error {
	t := seat.Transaction()
	if t.State == session.Committed {
		return committedTransaction(t.Number)
	}
	t.Abort()
	return nil
}

func committedTransaction(number int64) error {
	return mongoerr.New(mongoerr.TransactionCommitted, "Transaction with { txnNumber: %d } has been committed.", number)
}

// runsInTransaction says whether the command may be one of a transaction's.
func (c *Command) runsInTransaction() bool {
	switch c.Name {
	case "abortTransaction", "aggregate", "bulkWrite", "commitTransaction", "create", "createIndexes", "delete", "distinct", "find", "findAndModify",
		"getMore", "insert", "killCursors", "update":
		return true
	}
	return false
}

func (c *Command) endsTransaction() bool {
	return c.Name == "commitTransaction" || c.Name == "abortTransaction"
}

// inTransaction runs the command as a statement of its session's transaction, which it may begin, or as its end. A statement that fails
// ends the transaction, unless it was not parsed.
func (op *Op) inTransaction() (body bson.Doc, err error) {
	if err := op.checkStatement(); err != nil {
		return nil, err
	}
	h, err := op.takeSeat()
	if err != nil {
		return nil, err
	}
	defer op.returnSeat()
	now := op.Clock.Now()
	if op.starts && !op.Command.endsTransaction() {
		lifetime := time.Duration(op.setting("transactionLifetimeLimitSeconds")) * time.Second
		if err = op.seat.Begin(op.TxnNumber, now, now.Add(lifetime)); err == nil {
			t := op.seat.Transaction()
			t.ReadConcern, t.API = op.notLocal(), op.apiParameters()
		}
	} else if !op.starts {
		err = op.seat.Continue(op.TxnNumber, now)
		if t := op.seat.Transaction(); err == nil && t.State == session.InProgress {
			err = op.checkAPI(t.API, "transaction's first command")
		}
	}
	if err != nil {
		return nil, err
	}
	op.seat.Attend(op.Running, op.ReadConcern.Level)
	if op.Command.endsTransaction() {
		return op.Command.Run(op)
	}
	body, err = op.runStatement(h)
	refused := refusedWrite(body)
	if refused != nil && op.isTransient(mongoerr.From(refused).Code, 0) {
		err = refused // of which the whole statement fails
	}
	if (err != nil || refused != nil) && !op.isAside(err) {
		op.seat.Transaction().Abort()
	}
	return body, err
}

// isAside says whether err has nothing to do with the transaction, which goes on: the command was not parsed, as MongoDB does before it
// asks for the session. It parses distinct later, and begins no transaction with a command that it cannot parse.
func (op *Op) isAside(err error) bool {
	return mongoerr.IsUnparsed(err) && !op.starts && op.Command.Name != "distinct"
}

// notLocal is the read concern of the transaction that the statement begins, as it is shown; "" for the plainest.
func (op *Op) notLocal() string {
	level := op.ReadConcern.Level
	if level == "" || level == "local" {
		return ""
	}
	b := bson.Build().Object("readConcern").String("level", level)
	if op.after != 0 {
		b.Timestamp("afterClusterTime", op.after.Seconds(), op.after.Counter())
	}
	return b.String("provenance", "clientSupplied").End().Doc().String()
}

// refusedWrite is the first error that the reply of a write tells of; nil where there is none.
func refusedWrite(body bson.Doc) error {
	first := body.Lookup("writeErrors")
	if first.Type != bson.TypeArray {
		if first = body.Lookup("nErrors"); !first.IsNumber() || first.TruncInt64() == 0 {
			return nil
		}
		first = body.Lookup("cursor").Doc().Lookup("firstBatch")
	}
	for it := first.Doc().Iter(); it.Next(); {
		d := it.Value().Doc()
		if code := d.Lookup("code"); code.Type == bson.TypeInt32 {
			return mongoerr.New(mongoerr.Code(code.Int32()), "%s", d.Lookup("errmsg").Str())
		}
	}
	return mongoerr.New(mongoerr.CommandFailed, "a write was refused")
}

// runStatement runs the command in the transaction's share of the store.
func (op *Op) runStatement(h *history.History) (bson.Doc, error) {
	t := op.seat.Transaction()
	if t.State == session.Committed {
		return nil, committedTransaction(t.Number)
	}
	if t.Work == nil {
		if h.Number != op.TxnNumber {
			h.Begin(op.TxnNumber)
		}
		past, err := op.transactionSnapshot()
		if err != nil {
			return nil, err
		}
		txn, err := op.Query.Store.BeginTransaction(context.WithoutCancel(op.Ctx), storage.TransactionOptions{
			Now: op.Now, History: h, Past: past,
			LockTimeout: time.Duration(op.setting("maxTransactionLockRequestTimeoutMillis")) * time.Millisecond})
		if err != nil {
			return nil, err
		}
		w := &work{Txn: txn, server: op.Server, lsid: op.SessionID, number: op.TxnNumber, isSnapshot: op.ReadConcern.Level == "snapshot"}
		w.memory.OpenExact(op.Query.Memory, memory.Transactions)
		t.Work = w
	}
	if c := op.Command.Name; t.ReadConcern != "" && (c == "create" || c == "createIndexes") {
		return nil, mongoerr.New(mongoerr.InvalidOptions, "Command %s does not support this transaction's %s :: caused by :: read concern not supported", c, t.ReadConcern)
	}
	w := t.Work.(*work)
	op.txn, op.isSnapshot = w.Txn, w.isSnapshot
	op.Now = op.txn.View().Now()
	op.Ctx = op.patiently() // for the numbers of what it defines
	body, err := op.perform(op.Command.Run)
	if err == nil {
		err = w.hold(op.Ctx)
	}
	return body, err
}

// transactionSnapshot is the state that the transaction reads which the operation begins, where its read concern says as of when; nil for the
// present.
func (op *Op) transactionSnapshot() (*storage.Past, error) {
	if op.ReadConcern.Level != "snapshot" {
		return nil, nil
	}
	if op.at == 0 {
		op.seat.ReadAt(uint64(op.Query.Store.LastLogged()))
		return nil, nil
	}
	past, err := op.openSnapshot()
	if err == nil {
		op.seat.ReadAt(uint64(past.At()))
	}
	return past, err
}

// checkStatement refuses what cannot be part of a transaction.
func (op *Op) checkStatement() error {
	c := op.Command
	switch {
	case c.Name == "count":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction,
			"Cannot run 'count' in a multi-document transaction. Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.")
	case !c.runsInTransaction():
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run '%s' in a multi-document transaction.", op.Name())
	case op.starts && c.Name == "killCursors":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run killCursors as the first operation in a multi-document transaction.")
	case !c.endsTransaction() && op.WriteConcern.Given:
		return mongoerr.New(mongoerr.InvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	ns := namespace.NS{DB: op.DB}
	if _, named := op.Args.first(); named.Type == bson.TypeString {
		ns.Coll = named.Str()
	}
	if err := checkStatementOn(ns); err != nil {
		return err
	}
	if !op.starts && (op.ReadConcern.Given || op.after != 0) {
		return mongoerr.New(mongoerr.InvalidOptions, "Only the first command in a transaction may specify a readConcern")
	}
	if op.ReadConcern.Given {
		switch op.ReadConcern.Level {
		case "", "local", "majority", "snapshot":
		default:
			return mongoerr.New(mongoerr.InvalidOptions, "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction")
		}
	}
	return nil
}

// checkStatementOn refuses a database or a collection that is no part of a transaction: what it has is not the transaction's. The database
// admin is part of one: the cursor of a bulkWrite is there.
func checkStatementOn(ns namespace.NS) error {
	switch {
	case ns.DB == "local":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run command against the 'local' database in a transaction.")
	case ns.DB == "config":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run command against the config database in a transaction.")
	case ns.Coll == "system.profile" || ns.Coll == "system.views":
		return mongoerr.New(mongoerr.OperationNotSupportedInTransaction, "Cannot run command against the '%s' collection in a transaction.", ns)
	}
	return nil
}

// The codes of a write to a system collection in a transaction.
const (
	systemWrite  mongoerr.Code = 50791
	systemModify mongoerr.Code = 50781 // of findAndModify
)

// checkSystemWrite refuses a transaction's write to a system collection. What refuses writes to time series speaks for their buckets.
func (op *Op) checkSystemWrite(ns namespace.NS, code mongoerr.Code) error {
	if op.txn == nil || !ns.IsSystem() || strings.HasPrefix(ns.Coll, "system.buckets.") {
		return nil
	}
	return mongoerr.New(code, "Cannot write to system collection %s within a transaction.", ns)
}

// noTxn is the number of no transaction.
const noTxn = -1

// cursorTxn is the number of the transaction that the command is part of.
func (op *Op) cursorTxn() int64 {
	if op.txn == nil {
		return noTxn
	}
	return op.TxnNumber
}

// otherTransaction refuses a cursor to who is not in its transaction.
func otherTransaction(c *cursor.Cursor, txn int64) error {
	switch {
	case txn == noTxn:
		return mongoerr.New(50740, "Cannot run getMore on cursor %d, which was created in transaction %d, without a txnNumber", c.ID, c.TxnNumber)
	case c.TxnNumber == noTxn:
		return mongoerr.New(50739, "Cannot run getMore on cursor %d, which was not created in a transaction, in transaction %d", c.ID, txn)
	}
	return mongoerr.New(50741, "Cannot run getMore on cursor %d, which was created in transaction %d, in transaction %d", c.ID, c.TxnNumber, txn)
}
