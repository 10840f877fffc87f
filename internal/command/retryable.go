package command

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/replset"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/storage/history"
	"github.com/ebbdb/ebb/internal/storage/memberlog"
)

// A retryable write is one with a txnNumber and without autocommit. Its client may send it again, when it has got no answer, and what
// of it was executed is not executed again (history.History, query.Retry).

// isRetryable says whether the command is a write that may be sent again under the same number.
func (c *Command) isRetryable() bool {
	switch c.Name {
	case "insert", "update", "delete", "findAndModify", "bulkWrite":
		return true
	}
	return false
}

// readStatementIDs reads the numbers that a client gives the statements of a write: that of the first, or one each.
func (op *Op) readStatementIDs(a *Args) {
	first, one := a.typed("stmtId", bson.TypeInt32)
	all, several := a.typed("stmtIds", bson.TypeArray)
	switch {
	case one && several:
		a.Fail(mongoerr.New(mongoerr.InvalidOptions, "May not specify both stmtId and stmtIds in write command"))
	case one:
		op.statementID = first.Int32()
	case several:
		op.statementIDs = []int32{}
		for it := all.Doc().Iter(); it.Next(); {
			if it.Value().Type != bson.TypeInt32 {
				a.Fail(a.wrongType("stmtIds."+it.Key(), it.Value().Type, []bson.Type{bson.TypeInt32}))
				return
			}
			op.statementIDs = append(op.statementIDs, it.Value().Int32())
		}
	}
}

// checkStatementIDs refuses numbers that are not one for each statement.
func (op *Op) checkStatementIDs(statements int) error {
	if op.statementIDs != nil && len(op.statementIDs) != statements {
		return mongoerr.New(mongoerr.InvalidLength, "Number of statement ids must match the number of batch entries")
	}
	return nil
}

// unknown is kept of a session whose last write may still be on its way.
type unknown struct{}

// history is what is kept of the session that the operation has in hand.
func (op *Op) history() (*history.History, error) {
	switch h := op.seat.History().(type) {
	case *history.History:
		return h, nil
	case unknown:
		// What has become of it has to be known before anybody looks: who looked before it is visible, and wrote after that, would do it again.
		if op.grouped() { // where its commit was waited for (returnSeat)
			break
		}
		if err := op.Query.Store.AwaitOrdered(op.Ctx); err != nil {
			return nil, err
		}
	}
	h, err := op.Query.Store.History(op.Ctx, session.Document(op.SessionID))
	if err != nil {
		return nil, err
	}
	op.seat.Keep(h, h.Number, h.State == history.CommittedState)
	return h, nil
}

// takeSeat checks the session out, with its history.
func (op *Op) takeSeat() (h *history.History, err error) {
	if op.seat, err = op.Sessions.Checkout(op.Ctx, op.SessionID); err != nil {
		return nil, err
	}
	if h, err = op.history(); err != nil {
		op.seat.Return()
	}
	return h, err
}

// returnSeat has the session be another operation's. Who sends again what has left a commit waits for what becomes of that.
func (op *Op) returnSeat() {
	settled := op.leftCommit()
	if settled == nil {
		op.seat.Return()
		return
	}
	seat := op.seat
	op.Server.done.Go(func() {
		<-settled
		seat.Return()
	})
}

// retryably runs a retryable write.
func (op *Op) retryably() (body bson.Doc, err error) {
	h, err := op.takeSeat()
	if err != nil {
		return nil, err
	}
	known := false // what the write has left
	defer func() {
		if !known || op.leftCommit() != nil {
			op.seat.Keep(unknown{}, -1, false)
		}
		op.returnSeat()
	}()
	if _, err := op.seat.Write(op.TxnNumber); err != nil {
		known = true
		return nil, err
	}
	if h.Number != op.TxnNumber {
		h.Begin(op.TxnNumber)
	}
	if op.retry, err = op.Query.NewRetry(op.Ctx, h, op.statementID, op.statementIDs); err != nil {
		return nil, err
	}
	if op.failPoints != nil {
		op.retry.Before = op.failWrite
	}
	if body, err = op.perform(op.Command.Run); err != nil {
		return nil, err
	}
	known = true
	return op.withRepeated(body), nil
}

// withRepeated is the reply of a retryable write with the numbers of the statements that were executed before.
func (op *Op) withRepeated(body bson.Doc) bson.Doc {
	if len(op.retry.Repeated) == 0 {
		return body
	}
	op.tally.retriedCommands.Add(1)
	op.tally.retriedStatements.Add(int64(len(op.retry.Repeated)))
	op.committed = kv.AllCommits // what was executed may still be on its way to the disk
	b := op.extend(body, 32)
	if op.Command.Name == "findAndModify" {
		return b.Int32("retriedStmtId", op.retry.Repeated[0]).Doc()
	}
	b.Array("retriedStmtIds")
	for i, number := range op.retry.Repeated {
		b.Int32(bson.IndexKey(i), number)
	}
	return b.End().Doc()
}

// reapEvery is how often histories are looked through for those of sessions that are over.
const reapEvery = 5 * time.Minute

// reap forgets what sessions did that have been over for as long as a session lives.
func (s *Server) reap(ctx context.Context) error {
	if s.Replica.View().State != replset.Primary {
		return nil
	}
	select {
	case s.reaping <- struct{}{}:
		defer func() { <-s.reaping }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := clock.Millis(s.Clock) - int64(s.sessionMinutes())*60_000
	return memberlog.Sessions(ctx, s.Query.Store, func(lsid bson.Doc, wrote int64) error {
		id, ok := session.FromDocument(lsid)
		if wrote > before || !ok {
			return nil
		}
		return s.Sessions.IfOver(id, func() error { return memberlog.Reap(ctx, s.Query.Store, lsid) })
	})
}
