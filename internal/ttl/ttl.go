// Package ttl deletes what has expired: it finds what is due, visits the TTL indexes in fair turns, and sleeps until there
// is work again. It does not decide when a document expires (policy does), nor who may see it (storage does), and it knows
// nothing of commands.
//
// # The parts
//
//   - due.go, schedule.go and agenda.go are pure: what is due and how much of it one visit takes; whose turn it is; and
//     which collection has to be looked at when.
//   - visit.go visits one target: it deletes all at once (at_once.go) where it can, else in batches, through the same door as
//     a client's delete.
//   - maintenance.go puts records in the order that deleting at once needs, and vacuums after it.
//   - pace.go lets clients go first: how long sweeps rest between two transactions; telling.go, those that tell of each document.
//   - pass.go strings visits together, and between.go lets others have a turn during a long one; monitor.go is the loop that sleeps and runs passes.
//   - status.go and explain.go say what is waiting, and why one document expires or does not.
//
// # A pass
//
// The time of a pass is taken once, at its start, and holds for all it does. A pass is a series of sub-passes. Each reads
// anew which targets there are and goes around them: every target gets one visit, bounded in documents and in time, and
// those that hit a bound get another once all had theirs, until nothing is left or the sub-pass has lasted long enough.
// The pass ends with a sub-pass that leaves nothing.
//
// # Waking
//
// Every ttlMonitorSleepSecs there is a pass over everything. In between, with ttlMonitorPrecise, there is one over the
// collections whose next deadline has come: the agenda knows it for each, from the last pass, and from commits since.
//
// # Invariants
//
//   - Nothing is deleted but by Sweeper.Sweep, and by Writer.ExpireMany, which looks at the document and the rule in the deleting
//     transaction.
//   - With ttlMonitorPrecise, the agenda's time for a collection is never later than its earliest deadline that is still
//     to come; deadlines that have passed were dealt with, or wait for the next pass over everything.
//   - One pass runs at a time, and no record is put in order during a visit.
package ttl

import (
	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Target is one thing to sweep: a TTL index, or a collection by its own TTL.
type Target struct {
	Collection uint32
	// Index is the index's number, 0 for a collection's own TTL.
	Index uint32
}

func targetOf(collection uint32, rule *policy.Rule) Target {
	if rule.Index == nil {
		return Target{Collection: collection}
	}
	return Target{collection, rule.Index.ID}
}

// rule finds the target's rule as the reader's catalogue has it; ok is false when it is gone.
func (t Target) rule(r *storage.Reader) (rule *policy.Rule, ok bool) {
	if t.Index == 0 {
		return r.Rules().Own()
	}
	return r.Rules().ForIndexID(t.Index)
}

// hasTTL says whether anything about coll looks like a TTL, good or not.
func hasTTL(coll *catalog.Collection) bool {
	if coll.IsView() {
		return false
	}
	if coll.Options.HasTTL && (coll.IsClustered() || coll.IsTimeSeries()) {
		return true
	}
	for _, d := range coll.Indexes {
		if d.TTL {
			return true
		}
	}
	return false
}
