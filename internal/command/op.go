package command

import (
	"context"

	"github.com/ebbdb/ebb/internal/audit"
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/operation"
	"github.com/ebbdb/ebb/internal/query"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/wire"
)

// Op is one command under way. The documents in it share the message they came in, which lives until the reply.
type Op struct {
	*Server
	// Ctx ends when the client hangs up (unless the command Lasts), the operation is killed or its time is over; its cause says which.
	Ctx     context.Context
	Conn    *Conn
	Command *Command
	DB      string
	Args    *Args
	// Sequences are the command's document sequences.
	Sequences []wire.Sequence
	// Now is the operation's one time, in milliseconds since the epoch.
	Now     int64
	Running *operation.Operation
	Generic
	// versioned says that the command names a version of the stable API.
	versioned bool
	// APIStrict refuses commands outside of the stable API.
	APIStrict bool
	// MoreToCome asks the client's driver to expect another reply (exhaust); Next is the body of the further call.
	MoreToCome bool
	Next       bson.Doc
	// brief says that nothing that the command leaves knows its Running.
	brief bool
	// Close ends the connection after the reply.
	Close bool
	// originating is the command that opened the cursor of a getMore; statements is how many were recorded one by one.
	originating bson.Doc
	statements  int
	// executed tells how the operation's plan ran; nil where there is none.
	executed executed
	// during is what a plan was run for that failed, told before the error; "" for other errors.
	during string
	// recordedMicros is how long those took.
	recordedMicros int64
	// bootstraps says that nobody has logged in, since there is nobody who could; see bootstrap.
	bootstraps bool
	// told is what the audit log is to be told when the command is over; building says that it knows of a build of
	// the command's that goes on, and began of one that has begun.
	told            []audit.Event
	building, began bool
	// impatient says that it has waited long enough for the history of expiry to be written.
	impatient bool
	// entered says that the operation is among those that run, and ran that its command was begun.
	entered, ran bool
	// body and err are how the command ended, and committed the last Commit that is not durable yet.
	body      bson.Doc
	err       error
	committed uint64
	// staged is what fail points have made of the command; nil where they have not.
	staged *staged
	// seat is the session of a statement in a transaction, and txn what that does in the store; nil outside of transactions.
	seat *session.Seat
	txn  *storage.Txn
	// snapshot is what a read outside of transactions reads in the place of the present; nil for that. isSnapshot says that the level of its read concern,
	// or its transaction's, is "snapshot".
	snapshot   *storage.Past
	isSnapshot bool
	// retry is the retryable write that the operation is; nil where it is none.
	retry *query.Retry
	// ReplyMemory is what the reply takes its memory from until it is written; nil where nobody counts it.
	ReplyMemory *memory.Account
	// parsing is what the parsing and planning of a large command takes.
	parsing memory.Account
	// ExhaustAllowed says that the client can take it.
	ExhaustAllowed bool
}

// executed tells how a plan ran, in the form in which explain does; nil when there is nothing to tell.
type executed interface{ ExecStats() bson.Doc }

// Name is the command's name as the client wrote it.
func (op *Op) Name() string { return op.Args.Document().FirstKey() }

// Sequence gives the documents of a field that may come as an array in the body or as a document sequence; ok is false
// when it is neither.
func (op *Op) Sequence(key string) (docs []bson.Doc, ok bool) {
	for _, s := range op.Sequences {
		if s.Name == key {
			docs = make([]bson.Doc, 0, s.Len())
			for d := range s.Docs() {
				docs = append(docs, d)
			}
			return docs, true
		}
	}
	if !op.Args.Has(key) {
		op.Args.Value(key)
		return nil, false
	}
	array := op.Args.Array(key)
	if array == nil {
		return nil, true
	}
	for it := array.Iter(); it.Next(); {
		if it.Value().Type != bson.TypeObject {
			op.Args.Fail(op.Args.wrongType(key+"."+it.Key(), it.Value().Type, []bson.Type{bson.TypeObject}))
			return nil, true
		}
		docs = append(docs, it.Value().Doc())
	}
	return docs, true
}

// Durability is what the write concern asks of a commit, but for those that the end of the command waits for; see change.
func (op *Op) Durability() kv.Durability {
	if op.WriteConcern.Buffered {
		return kv.Buffered
	}
	return kv.Synced
}
