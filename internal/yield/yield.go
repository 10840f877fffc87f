// Package yield has a goroutine that works for long let others go first: those who are ready, and those as well for whom something has
// just arrived over the network.
//
// Go's scheduler asks the network when one of its processors has nothing else to do, and otherwise every 10 ms. To runtime.Gosched it always
// has: the goroutine that yields. So where all processors are at work, nobody hears of a request for 10 ms, however often those who work yield.
// Whoever yields here then waits for something out of the poller himself, a byte in a pipe: his processor asks the poller, and finds whatever
// else has arrived. It costs those who work: a turn more of the scheduler for each, on another processor perhaps. So where a processor is idle,
// whose thread waits for the network, or where nothing has arrived for a while, yielding is Go's own; so it is in a process that has not called
// Start.
package yield

import (
	"os"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// askedFor is how long the network is asked after something has arrived. What comes by itself is heard within 10 ms, so that who comes more
// often than each askedFor is heard at once.
const askedFor = 10 * time.Millisecond

// Arrived notes that a request has come over the network.
func Arrived() { process.arrivals.Add(1) }

// Now returns when the others had their turn.
func Now() { process.wait() }

// Start begins to ask the network; once is enough. It is for programs: it is about the whole process, and a goroutine stays for as long as
// that lives.
func Start() error { return process.begin() }

// process is the line of this process: there is one poller in it.
var process line

// line are those who wait for the pipe.
type line struct {
	in    *os.File    // the pipe's end to write to
	works atomic.Bool // somebody reads from the pipe; turned off under mu
	// arrivals are all so far, seen those that the last one who yielded knew of, and seenAt when that was news, on the clock's run.
	arrivals, seen, seenAt atomic.Int64
	mu                     struct {
		sync.Mutex
		waiting []*place
	}
}

// place is what a goroutine needs to yield.
type place struct {
	called  chan struct{}
	figures [3]metrics.Sample
}

var places = sync.Pool{New: func() any {
	p := &place{called: make(chan struct{}, 1)}
	for i, name := range []string{"/sched/gomaxprocs:threads", "/sched/goroutines/running:goroutines", "/sched/goroutines/not-in-go:goroutines"} {
		p.figures[i].Name = name
	}
	return p
}}

// isCrowded says whether all processors are at work.
func (p *place) isCrowded() bool {
	metrics.Read(p.figures[:])
	return p.figures[1].Value.Uint64()+p.figures[2].Value.Uint64() >= p.figures[0].Value.Uint64()
}

// isBusy says whether something has arrived lately.
func (l *line) isBusy() bool {
	now := int64(clock.Monotonic(clock.Wall()))
	if n := l.arrivals.Load(); n != l.seen.Swap(n) {
		l.seenAt.Store(now)
		return true
	}
	return now-l.seenAt.Load() < int64(askedFor)
}

func (l *line) wait() {
	if !l.works.Load() || !l.isBusy() {
		runtime.Gosched()
		return
	}
	p := places.Get().(*place)
	defer places.Put(p)
	if !p.isCrowded() {
		runtime.Gosched()
		return
	}
	l.call(p)
}

// call returns when the poller was asked.
func (l *line) call(p *place) {
	first, works := l.join(p)
	if !works {
		return
	}
	if first { // the others need no byte of their own
		if _, err := l.in.Write([]byte{0}); err != nil {
			l.release(nil)
		}
	}
	<-p.called
}

func (l *line) join(p *place) (first, works bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.works.Load() {
		return false, false
	}
	first = len(l.mu.waiting) == 0
	l.mu.waiting = append(l.mu.waiting, p)
	return first, true
}

// begin opens the pipe, unless it is open.
func (l *line) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.works.Load() {
		return nil
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	l.in = in
	l.works.Store(true)
	go l.run(out)
	return nil
}

// run reads from the pipe as long as the process lives.
func (l *line) run(out *os.File) {
	var spare []*place
	for buf := make([]byte, 1); ; {
		if _, err := out.Read(buf); err != nil {
			break
		}
		spare = l.release(spare)
	}
	l.mu.Lock()
	l.works.Store(false)
	l.mu.Unlock()
	l.release(nil)
}

// release lets all go who wait. The memory of their list is for the next to be released.
func (l *line) release(spare []*place) []*place {
	l.mu.Lock()
	gone := l.mu.waiting
	l.mu.waiting = spare[:0]
	l.mu.Unlock()
	for _, p := range gone {
		p.called <- struct{}{}
	}
	clear(gone)
	return gone
}
