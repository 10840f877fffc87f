package build

import (
	"fmt"
	"sync/atomic"
)

// Phase is how far a build has come; the numbers are MongoDB's.
type Phase int32

// The phases of a build.
const (
	PhaseBegin Phase = iota
	PhaseScan
	PhaseLoad
	PhaseDrain
)

// String is the phase in MongoDB's words.
func (p Phase) String() string {
	return [...]string{"initialized", "collection scan", "bulk load", "drain writes"}[p]
}

func (p Phase) message() string {
	return [...]string{"Index Build", "Index Build: scanning collection",
		"Index Build: inserting keys from external sorter into index", "Index Build: draining writes received during build"}[p]
}

// Progress of a build, which others may read while it moves.
type Progress struct {
	phase       atomic.Int32
	done, total atomic.Int64
	reported    atomic.Int64 // tenths of total
}

// Begin begins a phase.
func (p *Progress) Begin(phase Phase, total int64) {
	p.phase.Store(int32(phase))
	p.total.Store(total)
	p.done.Store(0)
	p.reported.Store(0)
}

// Add counts what is done of the phase, and says how much that is.
func (p *Progress) Add(n int64) (done int64) { return p.done.Add(n) }

// Phase is what the build is at.
func (p *Progress) Phase() Phase { return Phase(p.phase.Load()) }

// Message is how much of the phase is done: records, entries, or rows to catch up with.
func (p *Progress) Message() (message string, done, total int64) {
	done = p.done.Load()
	total = max(p.total.Load(), done) // which was counted before it began
	message = p.Phase().message()
	percent := int64(100)
	if total > 0 {
		percent = 100 * done / total
	}
	return fmt.Sprintf("%s %s: %d/%d %d%%", message, message, done, total, percent), done, total
}

// Tenth says whether another tenth of the phase is done since it was asked last.
func (p *Progress) Tenth() (done, total int64, another bool) {
	_, done, total = p.Message()
	if total == 0 {
		return done, total, false
	}
	tenths := 10 * done / total
	return done, total, tenths > p.reported.Swap(tenths)
}
