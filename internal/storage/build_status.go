package storage

import (
	"fmt"
	"sync/atomic"
)

// Phase is how far a Build has come; the numbers are MongoDB's.
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

// progress of a build, which others may read while it moves.
type progress struct {
	phase       atomic.Int32
	done, total atomic.Int64
	reported    atomic.Int64 // tenths of total, in the log
}

func (p *progress) begin(phase Phase, total int64) {
	p.phase.Store(int32(phase))
	p.total.Store(total)
	p.done.Store(0)
	p.reported.Store(0)
}

// Phase is what the build is at.
func (b *Build) Phase() Phase { return Phase(b.progress.phase.Load()) }

// Progress is how much of the phase is done: records, entries, or rows to catch up with.
func (b *Build) Progress() (message string, done, total int64) {
	done = b.progress.done.Load()
	total = max(b.progress.total.Load(), done) // which was counted before it began
	message = b.Phase().message()
	percent := int64(100)
	if total > 0 {
		percent = 100 * done / total
	}
	return fmt.Sprintf("%s %s: %d/%d %d%%", message, message, done, total, percent), done, total
}

// Builds are the index builds under way on a collection, oldest first.
func (s *Store) Builds(collection uint32) []*Build {
	c := s.current.Load().collections[collection]
	if c == nil {
		return nil
	}
	return c.state.building()
}

// report tells the log of each tenth of a phase.
func (b *Build) report() {
	_, done, total := b.Progress()
	if total == 0 {
		return
	}
	if tenths := 10 * done / total; tenths > b.progress.reported.Swap(tenths) {
		b.log("Index build: "+b.Phase().String(), "done", done, "total", total)
	}
}

func (b *Build) log(message string, args ...any) {
	all := append([]any{"buildUUID", uuidText(b.UUID), "collectionUUID", uuidText(b.CollectionUUID), "namespace", b.NS.String()}, args...)
	if b.Phase() == PhaseBegin {
		all = append(all, "indexes", b.specs())
	}
	b.store.options.Logger.Info(message, all...)
}
