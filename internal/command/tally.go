package command

import (
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/operation"
)

// tally is what all finished operations have done together, for serverStatus.
type tally struct {
	reads, writes, commands              latency
	inserted, deleted, updated, returned atomic.Int64
	keysExamined, docsExamined           atomic.Int64
	collectionScans, nonTailableScans    atomic.Int64
	writeConflicts, sorts, userErrors    atomic.Int64
	furtherBatches                       atomic.Int64
	retriedCommands, retriedStatements   atomic.Int64
}

// latency is how many operations of a kind there were and how long they took together, and one by one where that is asked
// for.
type latency struct {
	count, micros atomic.Int64
	spread        atomic.Pointer[histogram]
}

func (l *latency) add(micros int64) {
	l.count.Add(1)
	l.micros.Add(micros)
}

// sort counts micros among others as long.
func (l *latency) sort(micros int64) {
	h := l.spread.Load()
	if h == nil {
		l.spread.CompareAndSwap(nil, &histogram{})
		h = l.spread.Load()
	}
	h.add(micros)
}

func (t *tally) add(c *Command, s *operation.Stats, micros int64, err error) {
	t.latencyOf(c).add(micros)
	for _, of := range []struct {
		total *atomic.Int64
		n     int64
	}{
		{&t.inserted, s.Inserted.Load()}, {&t.deleted, s.Deleted.Load()}, {&t.updated, s.Modified.Load()},
		{&t.returned, s.Returned.Load()}, {&t.keysExamined, s.KeysExamined.Load()}, {&t.docsExamined, s.DocsExamined.Load()},
		{&t.writeConflicts, s.WriteConflicts.Load()},
	} {
		if of.n != 0 { // most are, and shared counters are dear
			of.total.Add(of.n)
		}
	}
	if s.HasSortStage.Load() {
		t.sorts.Add(1)
	}
	if c.Name == "getMore" && err == nil {
		t.furtherBatches.Add(1)
	}
	if err != nil {
		t.userErrors.Add(1)
	}
}

// latencyOf is the kind of operation that c is in opLatencies.
func (t *tally) latencyOf(c *Command) *latency {
	switch c.Name {
	case "find", "getMore", "aggregate", "count", "distinct":
		return &t.reads
	case "insert", "update", "delete", "findAndModify", "bulkWrite":
		return &t.writes
	}
	return &t.commands
}

// scan counts a plan, by its summary, where it reads a whole collection.
func (t *tally) scan(summary string, tailable bool) {
	if !strings.HasPrefix(summary, "COLLSCAN") {
		return
	}
	t.collectionScans.Add(1)
	if !tailable {
		t.nonTailableScans.Add(1)
	}
}

// account adds the finished operation to what serverStatus and top tell.
func (op *Op) account(micros int64, err error) {
	op.tally.add(op.Command, &op.Running.Stats, micros, err)
	switch op.Command.Name {
	case "find", "aggregate", "count", "distinct", "findAndModify": // a write's statements are counted one by one
		op.tally.scan(op.Running.Stats.PlanSummary(), op.Command.Name == "find" && op.Args.peek("tailable").Truthy())
	}
	op.usage.add(op.Command.Name, op.Running.NS, micros, err)
	if err == nil {
		op.countQuery(micros)
	}
}
