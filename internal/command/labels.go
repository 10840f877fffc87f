package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Labels tell a driver what it may do about an error.
const (
	transientTransactionError     = "TransientTransactionError"  // run the whole transaction again
	retryableWriteError           = "RetryableWriteError"        // send the write, the commit or the abort again
	noWritesPerformed             = "NoWritesPerformed"          // beside it: this time nothing was done, so an earlier error tells more
	resumableChangeStreamError    = "ResumableChangeStreamError" // resume the change stream
	nonResumableChangeStreamError = "NonResumableChangeStreamError"
)

// labels are those of the reply of an operation that failed with code, or whose write concern was not satisfied for the reason concern;
// 0 is no error. A standalone labels nothing.
func (op *Op) labels(code, concern mongoerr.Code) []string {
	switch {
	case op.staged != nil && op.staged.labelled:
		return op.staged.labels
	case op.Replica == nil || op.Command == nil:
		return nil
	case op.multi && op.isTransient(code, concern):
		return []string{transientTransactionError}
	case (op.retryable || op.multi && op.Command.endsTransaction()) && (isRetriable(code) || isRetriable(concern)):
		if op.wroteNothing() {
			return []string{retryableWriteError, noWritesPerformed}
		}
		return []string{retryableWriteError}
	case isNonResumable(code):
		return []string{nonResumableChangeStreamError}
	case concern == 0 && isResumable(code) && op.isChangeStream():
		return []string{resumableChangeStreamError}
	}
	return nil
}

// wroteNothing says whether a command that was begun is known to have left nothing: commits that nobody waits for are not counted, so of
// these it is not known, nor of one whose outcome nobody knows. MongoDB tells it by the last entry of the oplog that is of the same connection, and so nothing of a connection's
// first write.
func (op *Op) wroteNothing() bool {
	return op.ran && op.Conn.hasWritten && op.committed == 0 && !op.WriteConcern.Buffered && !errors.Is(op.err, kv.ErrUndetermined)
}

// isTransient says whether a transaction that failed has left nothing behind, so that the whole of it may be run again. Of the end of
// one that is known only where the write concern is satisfied; and how the primary fared says nothing of what was done before.
func (op *Op) isTransient(code, concern mongoerr.Code) bool {
	switch code {
	case mongoerr.WriteConflict, mongoerr.LockTimeout, mongoerr.PreparedTransactionInProgress,
		mongoerr.SnapshotTooOld, mongoerr.SnapshotUnavailable, mongoerr.StaleChunkHistory, mongoerr.MigrationConflict,
		mongoerr.StaleDbVersion, mongoerr.StaleEpoch, mongoerr.StaleConfig, mongoerr.ShardCannotRefreshDueToLocksHeld:
		return true
	case mongoerr.NoSuchTransaction:
		return !op.Command.endsTransaction() || concern == 0
	case 358: // InternalTransactionNotSupported, which is retriable in itself
		return false
	}
	return !op.Command.endsTransaction() && isRetriable(code)
}

// isRetriable says whether the error is one of the network, or of a member that is not, or not any more, the primary, or overloaded.
func isRetriable(code mongoerr.Code) bool {
	switch code {
	case mongoerr.HostUnreachable, mongoerr.HostNotFound, mongoerr.NetworkTimeout, mongoerr.ShutdownInProgress, mongoerr.ReadConcernMajorityNotAvailableYet,
		mongoerr.PrimarySteppedDown, mongoerr.ExceededTimeLimit, mongoerr.ConnectionPoolExpired, mongoerr.SocketException, mongoerr.NotWritablePrimary,
		mongoerr.InterruptedAtShutdown, mongoerr.InterruptedDueToReplStateChange, mongoerr.NotPrimaryNoSecondaryOk, mongoerr.NotPrimaryOrSecondary,
		358, 384, 402, 406, 407, 412, 453, 462, 50915, 91331, 10045600: // of clusters and overload, without a name here
		return true
	}
	return false
}

// isNotPrimary says whether the error is that of a member that is not, or not any more, the primary.
func isNotPrimary(code mongoerr.Code) bool {
	switch code {
	case mongoerr.PrimarySteppedDown, mongoerr.NotWritablePrimary, mongoerr.InterruptedDueToReplStateChange, mongoerr.NotPrimaryNoSecondaryOk,
		mongoerr.NotPrimaryOrSecondary:
		return true
	}
	return false
}

func isResumable(code mongoerr.Code) bool {
	switch code {
	case mongoerr.StaleEpoch, mongoerr.StaleConfig, mongoerr.RetryChangeStream, mongoerr.FailedToSatisfyReadPreference:
		return true
	}
	return isRetriable(code)
}

func isNonResumable(code mongoerr.Code) bool {
	return code == mongoerr.ChangeStreamFatalError || code == mongoerr.ChangeStreamHistoryLost
}

// isChangeStream says whether the command opens a change stream or reads on in one.
func (op *Op) isChangeStream() bool {
	var command bson.Doc
	switch op.Command.Name {
	case "aggregate":
		command = op.Args.Document()
	case "getMore":
		command = op.originating
	}
	stages := command.Lookup("pipeline")
	if stages.Type != bson.TypeArray {
		return false
	}
	first := stages.Doc().Lookup("0")
	return first.Type == bson.TypeObject && first.Doc().FirstKey() == "$changeStream"
}

// failure is the reply of an operation that failed.
func (op *Op) failure() bson.Doc {
	e := mongoerr.From(op.err)
	if op.Replica == nil && op.staged == nil {
		return mongoerr.Reply(e)
	}
	unlabelled := *e
	unlabelled.Labels = nil
	body := mongoerr.Reply(&unlabelled)
	b := bson.BuildOn(make([]byte, 0, len(body)+256)).Fields(body)
	concern := op.appendConcernError(b)
	appendLabels(b, append(op.labels(e.Code, concern), e.Labels...))
	if op.Replica != nil && (isNotPrimary(e.Code) || isNotPrimary(concern)) {
		b.Document("topologyVersion", op.topologyVersion())
	}
	op.appendTimes(b)
	return b.Doc()
}

// appendConcernError appends why the write concern of a command that was begun is not satisfied, and returns the reason's code; 0 where
// it is.
func (op *Op) appendConcernError(b *bson.Builder) mongoerr.Code {
	switch {
	case !op.ran || !op.Command.WriteConcern:
	case op.staged != nil && op.staged.concern != nil:
		b.Document("writeConcernError", op.staged.concern)
		code, _ := failsWith(op.staged.concern, "code")
		return code
	case op.WriteConcern.unsatisfied != nil && (op.Command.writes() || op.writesItsResult()):
		e := op.WriteConcern.unsatisfied
		b.Object("writeConcernError").Int32("code", int32(e.Code)).String("codeName", e.Code.Name()).String("errmsg", e.Message)
		if e.Info != nil {
			b.Document("errInfo", e.Info)
		}
		b.End()
		return e.Code
	}
	return 0
}

func appendLabels(b *bson.Builder, labels []string) {
	if len(labels) > 0 {
		b.Strings("errorLabels", labels)
	}
}
