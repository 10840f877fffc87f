package command

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/bson"
)

// counters is what serverStatus tells of the commands run so far.
type counters struct {
	inserts, queries, updates, deletes, getMores, commands atomic.Int64
}

// calls counts how often one command was run.
type calls struct{ total, failed atomic.Int64 }

func (op *Op) countCommand() {
	op.Command.calls.total.Add(1)
	switch op.Command.Name {
	case "insert", "update", "delete", "bulkWrite": // counted by document or statement
	case "find":
		op.counts.queries.Add(1)
	case "getMore":
		op.counts.getMores.Add(1)
	default:
		op.counts.commands.Add(1)
	}
}

// finish notes how the operation ended: counters, the slow log and the profiler.
func (op *Op) finish(reply bson.Doc, err error) {
	if err != nil {
		op.Command.calls.failed.Add(1)
	}
	op.Running.Stats.ResponseBytes.Store(int64(len(reply)))
	micros := op.Ops.Micros(op.Running)
	op.account(micros, err)
	if op.Tracer != nil && !op.Command.Quiet {
		op.trace(micros, err)
	}
	op.record(micros, err)
}
