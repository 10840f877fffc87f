// Package memory shares out the memory that the process may use beside its store's caches: what operations keep, parked
// cursors, messages and replies under way, indexes being built, open transactions. It does not know what any of that is.
//
// Who keeps much has an Account and takes bytes before, or as, it keeps them. While there is enough, that is an addition;
// the Governor is asked for a chunk at a time. When there is not enough, the caller chooses: it goes on in files, makes do
// with less, or waits for a bounded time and then gives up with an error. So the newcomer is refused and everybody else
// lives on. Meanwhile the Governor asks those who hold memory without using it (OnShortage) to part with some.
//
// Accounts that hold little may have all of the memory, others leave an eighth of it alone: small operations go on while
// large ones wait.
//
// Not every byte is counted, and the collector is behind. So Watch looks at what the process really has of the machine: where
// that comes near the limit, the accounts may have less, and in the end nothing, until it is less again.
//
// Invariants: what is used is the sum of what the accounts were granted. Charge alone may go beyond the total, for what is
// there already. No lock is held while anybody else's code runs.
package memory

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Kind is what memory is used for.
type Kind int

// The kinds of use.
const (
	// Operators are stages and plans at work.
	Operators Kind = iota
	// Cursors wait for their next getMore.
	Cursors
	// Requests are messages that are being read or handled.
	Requests
	// Replies are being put together or wait for their clients to read them.
	Replies
	// IndexBuilds sort the entries of new indexes.
	IndexBuilds
	// Scripts are users' functions.
	Scripts
	// Transactions have written what is not committed.
	Transactions
	// Buffers are kept for the next who needs one, see Account.Enlarge.
	Buffers
	kinds
)

// String is the kind's name in serverStatus.
func (k Kind) String() string {
	return [kinds]string{"operators", "cursors", "requests", "replies", "indexBuilds", "scripts", "transactions", "buffers"}[k]
}

const (
	// MaxWait is how long an account waits for memory until it is refused.
	MaxWait = 3 * time.Second
	// SmallBytes is up to which size an account may have the last of the memory.
	SmallBytes = 4 << 20
	// reservedShare is which part of the memory is kept for small accounts: an eighth.
	reservedShare = 8
	// relieveEvery is how often those who hold memory without using it are asked while somebody waits.
	relieveEvery = 50 * time.Millisecond
	// warnEvery is how often the log tells of refusals at most.
	warnEvery = time.Second
)

// Governor shares a number of bytes. A nil one gives everybody what he asks for.
type Governor struct {
	total int64
	clock clock.Clock
	log   *slog.Logger

	buffers   buffers
	closed    chan struct{}
	relieving sync.WaitGroup

	mu struct {
		sync.Mutex
		used int64
		by   [kinds]int64
		// squeezed is how much less than the total may be used, because the process has more memory than is counted.
		squeezed int64
		denied   bool // somebody something, since it was looked at
		waiting  []*waiter
		// wanted is what somebody did not get and does not wait for.
		wanted    int64
		holders   []*Holder
		relieving bool
		over      bool // Close was called
		warned    time.Time
		stats     Stats
	}
}

// Holder gives back about want bytes of memory that nobody uses just now, and says how many it was.
type Holder func(want int64) (freed int64)

// waiter is an account that waits for n bytes, of which it will hold so many then; ready is closed when it has them.
type waiter struct {
	kind    Kind
	n, held int64
	ready   chan struct{}
	// size, unless 0, is the size of a buffer that would do as well, and lent the one it was given.
	size int
	lent []byte
}

// Stats are serverStatus's figures.
type Stats struct {
	Total, Used, Peak int64
	By                [kinds]int64
	// Waiting is how many accounts wait now. Waits and Refusals count since the start, and Reclaimed the bytes that holders
	// gave back.
	Waiting, Waits, Refusals, Reclaimed int64
	// Resident is what the process had of the machine when it was looked at last, and Squeezed how much less than Total may be
	// used on account of it.
	Resident, Squeezed int64
}

// New returns a Governor of total bytes. The clock times waits: it is that of the machine even where the database's is not.
func New(total int64, c clock.Clock, log *slog.Logger) *Governor {
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Governor{total: total, clock: c, log: log, closed: make(chan struct{})}
}

// OnShortage has h asked when memory is short, after those that were named before it. h is called on a goroutine of the
// Governor's, once at a time, until forget is called.
func (g *Governor) OnShortage(h Holder) (forget func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	named := &h
	g.mu.holders = append(g.mu.holders, named)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.mu.holders = slices.DeleteFunc(slices.Clone(g.mu.holders), func(other *Holder) bool { return other == named })
	}
}

// Close ends the asking of holders, and waits for it. Accounts may be used all the same.
func (g *Governor) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	over := g.mu.over
	g.mu.over = true
	g.mu.Unlock()
	if !over {
		close(g.closed)
	}
	g.relieving.Wait()
}

// Total is how many bytes there are.
func (g *Governor) Total() int64 {
	if g == nil {
		return 0
	}
	return g.total
}

// Short says whether more than half of the memory is in use: what can be had again should not be kept.
func (g *Governor) Short() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.used > (g.total-g.mu.squeezed)/2 || len(g.mu.waiting) > 0
}

// Stats is a look at the figures now.
func (g *Governor) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.mu.stats
	s.Total, s.Used, s.By, s.Waiting, s.Squeezed = g.total, g.mu.used, g.mu.by, int64(len(g.mu.waiting)), g.mu.squeezed
	return s
}

// limit is up to what an account that will hold so much may raise the use. The caller holds the lock.
func (g *Governor) limit(held int64) int64 {
	if held <= SmallBytes {
		return g.total - g.mu.squeezed
	}
	return g.total - max(g.total/reservedShare, g.mu.squeezed)
}

// take gives n bytes to an account that will then hold so many, if they are there.
func (g *Governor) take(kind Kind, n, held int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.used+n > g.limit(held) {
		g.mu.denied = true
		return false
	}
	g.add(kind, n)
	return true
}

// charge takes n bytes whether they are there or not.
func (g *Governor) charge(kind Kind, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(kind, n)
	if over := g.mu.used - g.total; over > 0 {
		g.mu.wanted = max(g.mu.wanted, over)
		g.relieve()
	}
}

// add notes that n bytes more are used. The caller holds the lock.
func (g *Governor) add(kind Kind, n int64) {
	g.mu.used += n
	g.mu.by[kind] += n
	g.mu.stats.Peak = max(g.mu.stats.Peak, g.mu.used)
}

// move has n bytes used for something else.
func (g *Governor) move(from, to Kind, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.by[from] -= n
	g.mu.by[to] += n
}

// release takes n bytes back, and gives them to those who wait.
func (g *Governor) release(kind Kind, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(kind, -n)
	g.serve()
}

// serve gives those who wait what is there, in their order, past those for whom it is not enough. The caller holds the lock.
func (g *Governor) serve() {
	left := g.mu.waiting[:0]
	for _, w := range g.mu.waiting {
		if g.mu.used+w.n > g.limit(w.held) {
			left = append(left, w)
			continue
		}
		g.add(w.kind, w.n)
		close(w.ready)
	}
	clear(g.mu.waiting[len(left):])
	g.mu.waiting = left
}

// wait has w wait until its bytes are there. It gives up when ctx ends, and after MaxWait.
func (g *Governor) wait(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	if g.mu.used+w.n <= g.limit(w.held) {
		g.add(w.kind, w.n)
		g.mu.Unlock()
		return nil
	}
	if w.n > g.limit(w.held)+g.mu.squeezed { // they never will be
		g.mu.Unlock()
		return g.refuse(w.kind, w.n)
	}
	g.mu.waiting = append(g.mu.waiting, w)
	g.mu.denied = true
	g.mu.stats.Waits++
	g.relieve()
	g.mu.Unlock()

	timer := g.clock.NewTimer(MaxWait)
	defer timer.Stop()
	var why error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-timer.C():
	}
	if !g.leave(w) {
		return nil
	}
	if why != nil {
		return why
	}
	return g.refuse(w.kind, w.n)
}

// leave takes w out of the queue, and says whether it was in there: else it has its bytes.
func (g *Governor) leave(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.mu.waiting {
		if other == w {
			g.mu.waiting = append(g.mu.waiting[:i], g.mu.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// refuse is the error for one who does not get n bytes.
func (g *Governor) refuse(kind Kind, n int64) error {
	now := g.clock.Now()
	g.mu.Lock()
	g.mu.stats.Refusals++
	used, by, refusals := g.mu.used, g.mu.by, g.mu.stats.Refusals
	warn := g.mu.warned.IsZero() || now.Sub(g.mu.warned) >= warnEvery
	if warn {
		g.mu.warned = now
	}
	g.mu.Unlock()
	if warn {
		attrs := []any{"for", kind.String(), "bytes", n, "usedBytes", used, "totalBytes", g.total, "refusals", refusals}
		for k := range kinds {
			attrs = append(attrs, k.String()+"Bytes", by[k])
		}
		g.log.Warn("Refusing an operation because the server's memory is used up", attrs...)
	}
	return mongoerr.New(mongoerr.ExceededMemoryLimit,
		"Exceeded memory limit of the server: %d bytes more are needed where %d of %d are in use; try again when there is less load", n, used, g.total)
}

// hint has holders asked for n bytes although nobody waits for them.
func (g *Governor) hint(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.wanted = max(g.mu.wanted, n)
	g.relieve()
}

// relieve has a goroutine drop buffers and ask the holders, unless there is one or there is nothing. The caller holds the lock.
func (g *Governor) relieve() {
	if g.mu.relieving || g.mu.over || len(g.mu.holders) == 0 && g.buffers.isEmpty() {
		return
	}
	g.mu.relieving = true
	g.relieving.Go(g.askHolders)
}

// askHolders asks until nobody waits any more.
func (g *Governor) askHolders() {
	for {
		want, holders := g.lacking()
		if want == 0 {
			return
		}
		freed := g.dropBuffers(want)
		for _, h := range holders {
			if freed >= want {
				break
			}
			freed += (*h)(want - freed)
		}
		g.mu.Lock()
		g.mu.stats.Reclaimed += freed
		g.mu.Unlock()
		timer := g.clock.NewTimer(relieveEvery)
		select {
		case <-timer.C():
		case <-g.closed:
			timer.Stop()
			return
		}
	}
}

// lacking is how many bytes are missing, and who may have some; with none the asking is over.
func (g *Governor) lacking() (want int64, holders []*Holder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, w := range g.mu.waiting {
		want += max(0, g.mu.used+w.n-g.limit(w.held))
	}
	want = min(max(want, g.mu.wanted), g.total)
	g.mu.wanted = 0
	g.mu.relieving = want > 0
	return want, g.mu.holders
}
