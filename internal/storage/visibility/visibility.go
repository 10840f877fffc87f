// Package visibility tells what a view of a collection has to be careful about by when it began. The store counts the commits of all
// collections that sweep, and those that move records; a view notes both counts when it begins; and a collection keeps the last that
// concerns it: whether there may be tombstones in a view, and whether records have moved since.
package visibility

import (
	"math"
	"sync/atomic"
)

// Tombstones tells in which views there may be tombstones of a collection: in those that began when there had been fewer sweeps, of all collections, than
// it says. It rises before a sweep that sets tombstones is committed, while the collection's lock is held exclusively; and it falls
// after the tombstones' deletion is, while the lock is held so that none can be set.
type Tombstones struct{ before atomic.Uint64 }

// Set notes that there are some, from before they can be seen.
func (m *Tombstones) Set() { m.before.Store(math.MaxUint64) }

// Deleted counts as a sweep, so that views that begin from now on are told from those that may still see the tombstones.
func (m *Tombstones) Deleted(sweeps *atomic.Uint64) { m.before.Store(sweeps.Add(1)) }

// IsSet says whether there may be tombstones in a view that begins now.
func (m *Tombstones) IsSet() bool { return m.before.Load() == math.MaxUint64 }

// MayBeIn says whether there may be some in a view that began when there had been so many sweeps.
func (m *Tombstones) MayBeIn(sweeps uint64) bool { return m.before.Load() > sweeps }

// Relocations is when records of a collection have moved last, forward in its order and back. A scan that is taken up again in
// another view learns from it whether some that it had still to come to may lie behind it now.
type Relocations struct {
	under [2]atomic.Int64  // commits on their way
	last  [2]atomic.Uint64 // the number of the last commit that has moved any, among those of all collections
}

// Begin is called before what a Commit has moved can be seen where it is now, End after: all counts the commits of all collections that
// have moved any. moved says whether any record moves meaning.Forward, and meaning.Back.
func (m *Relocations) Begin(moved [2]bool) {
	for way, any := range moved {
		if any {
			m.under[way].Add(1)
		}
	}
}

// End is called when it can be seen.
func (m *Relocations) End(moved [2]bool, all *atomic.Uint64) {
	for way, any := range moved {
		if any {
			raise(&m.last[way], all.Add(1))
			m.under[way].Add(-1)
		}
	}
}

// MaySince says whether any may have moved that way since a view began, when all stood at a number.
func (m *Relocations) MaySince(number uint64, way int) bool {
	return m.under[way].Load() > 0 || m.last[way].Load() > number // in this order: what has ended meanwhile has its number
}

// UnderWay is how many commits are on their way that move any, by way.
func (m *Relocations) UnderWay() [2]int64 { return [2]int64{m.under[0].Load(), m.under[1].Load()} }

func raise(to *atomic.Uint64, n uint64) {
	for old := to.Load(); old < n && !to.CompareAndSwap(old, n); old = to.Load() {
	}
}
