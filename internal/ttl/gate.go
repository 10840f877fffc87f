package ttl

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/operation"
)

// Gate says what sweeps have to leave alone for now. Whoever opens it again calls Monitor.Wake.
type Gate interface {
	// Locked says whether nothing may be written at all (fsyncLock).
	Locked() bool
	// Enter begins a transaction, and Leave ends it: whoever locks waits for those inside. Enter waits while it is locked,
	// and fails when ctx ends.
	Enter(ctx context.Context) error
	Leave()
	// WritesBlocked says whether users may not write (setUserWriteBlockMode): only the server's own databases are swept.
	WritesBlocked() bool
}

// Open is the Gate that stops nothing.
type Open struct{}

// Locked is Gate's.
func (Open) Locked() bool { return false }

// Enter is Gate's.
func (Open) Enter(context.Context) error { return nil }

// Leave is Gate's.
func (Open) Leave() {}

// WritesBlocked is Gate's.
func (Open) WritesBlocked() bool { return false }

// Recorder takes account of deletes, for the profiler and the log of slow operations.
type Recorder interface {
	// Wants says whether deletes in the database have to be seen: then documents are deleted one by one.
	Wants(db string) bool
	// RecordSweep is told of one visit that deleted something, or took part of its time in vain; op's Stats say what it did.
	RecordSweep(op *operation.Operation, took time.Duration, err error)
	// RecordVisit is told of each visit that deleted something.
	RecordVisit(Visit)
}

// NoRecord is the Recorder that forgets.
type NoRecord struct{}

// Wants is Recorder's.
func (NoRecord) Wants(string) bool { return false }

// RecordSweep is Recorder's.
func (NoRecord) RecordSweep(*operation.Operation, time.Duration, error) {}

// RecordVisit is Recorder's.
func (NoRecord) RecordVisit(Visit) {}

// ownDatabase says whether the database is the server's own, which user write blocking does not concern.
func ownDatabase(db string) bool { return db == "admin" || db == "config" || db == "local" }

// Hooks let tests stand between the steps of a pass. A nil hook is none.
type Hooks struct {
	// BeforePass comes before anything is deleted, when the time of the pass is fixed: MongoDB's
	// hangTTLMonitorBetweenPasses.
	BeforePass func(at int64)
	// BeforeBatch comes after records were found due and before they are looked at again and deleted.
	BeforeBatch func(ns, index string)
	// BeforeSlice comes before each slice of the maintenance, in the context of what is shown of it.
	BeforeSlice func(ctx context.Context)
	// Rest comes in the place of a rest between two transactions.
	Rest func(ctx context.Context, d time.Duration) error
	// Load comes in the place of the machine's own figures, which only grow: how many processors there are, for how long
	// they were used, and for how long nobody used them; and how many operations clients have begun.
	Load func() (p host.Processors, operations int64)
	// AfterVisit is told what a visit did.
	AfterVisit func(Visit)
}

// Causes of a pass: a deadline that had come, or that it was time to look at everything.
const (
	CauseDeadline = "deadline"
	CauseInterval = "interval"
)

// Visit is what one visit did.
type Visit struct {
	NS, Index                        string
	Examined, Deleted, Keys, Batches int64
	// Swept is how many of the deleted were deleted at once.
	Swept int64
	// Bytes is how long the deleted documents were.
	Bytes int64
	// Cut is the date, in milliseconds, up to which they had expired by the rule; Series says that it is a time series' own.
	Cut    int64
	Series bool
	Took   time.Duration
	// Cause is why there was the pass: one of the Causes.
	Cause string
	// More says that a bound was hit and work may be left.
	More bool
	Err  error
}
