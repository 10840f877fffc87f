package command

import (
	"errors"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/query"
)

// parseStatements reads a command of several statements, which come under key. rest reads the fields that are this command's own,
// and parse a statement.
func parseStatements[S any](op *Op, key string, rest func(*Args, namespace.NS), parse func(namespace.NS, bson.Doc) (S, error)) (statements []S, ordered bool, err error) {
	a := op.Args
	ns := a.Collection(op.DB)
	docs, given := op.Sequence(key)
	ordered = op.ordered()
	rest(a, ns)
	if !given {
		a.Required(key)
	}
	if err := a.Done(); err != nil {
		return nil, ordered, err
	}
	if err := op.checkBatch(len(docs)); err != nil {
		return nil, ordered, err
	}
	if err := op.checkSystemWrite(ns, systemWrite); err != nil {
		return nil, ordered, err
	}
	statements = make([]S, len(docs))
	for i, d := range docs {
		if statements[i], err = parse(ns, d); err != nil {
			return nil, ordered, err
		}
	}
	return statements, ordered, writable(ns)
}

// ordered says whether the first statement that is refused is the last that runs. In a transaction it is, since it aborts it.
func (op *Op) ordered() bool { return op.Args.Bool("ordered", true) || op.txn != nil }

// runStatements runs n statements one after the other, and gives those that were refused. With ordered the first of these is the
// last that runs.
func runStatements(n int, ordered bool, run func(i int) error) (refused []query.WriteError, err error) {
	for i := range n {
		err := run(i)
		switch {
		case err == nil:
			continue
		case fatal(err):
			return nil, err
		}
		if refused = append(refused, query.WriteError{Index: i, Err: err}); ordered {
			break
		}
	}
	return refused, nil
}

// fatal says whether err ends the whole command and not one statement. What nobody knows the outcome of does: the reply says so to drivers, which send
// the write again, and to the session, which then looks what became of it.
func fatal(err error) bool {
	if errors.Is(err, kv.ErrUndetermined) {
		return true
	}
	e := mongoerr.From(err)
	switch e.Code {
	case mongoerr.IncompleteTransactionHistory, mongoerr.Interrupted, mongoerr.InterruptedAtShutdown, mongoerr.MaxTimeMSExpired, mongoerr.ClientDisconnect,
		mongoerr.TransactionExceededLifetimeLimitSeconds, mongoerr.InterruptedDueToReplStateChange, mongoerr.InternalError,
		mongoerr.HostUnreachable, mongoerr.NetworkTimeout: // of a store that is not on this machine
		return true
	}
	return false
}

// ofPlan is err with what was run before it, if it is an error of the plan of a write. What ends the whole command says so in its reply.
// What the write could not get of the store is told as it is.
func (op *Op) ofPlan(write string, call *query.Call, err error) error {
	if err == nil || !call.Executing || storageUnavailable(err) {
		return err
	}
	during := mongoerr.DuringWrite(write)
	if fatal(err) {
		op.during = during
		return err
	}
	return mongoerr.During(during, err)
}

// storageUnavailable says whether err is one that MongoDB tries again, or hands on in a transaction.
func storageUnavailable(err error) bool {
	switch mongoerr.From(err).Code {
	case mongoerr.WriteConflict, mongoerr.LockTimeout, mongoerr.TransactionTooLarge:
		return true
	}
	return false
}
