package javascript

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/host"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

// Limits of the workers.
const (
	// minWorkers and maxWorkers bound how many there are: two a processor.
	minWorkers, maxWorkers = 4, 16
	// minHeap and maxHeap bound the memory that a worker may use for objects: heapShare of the machine's.
	minHeap, maxHeap = 128 << 20, 512 << 20
	heapShare        = 16
	// idleTime is for how long a worker without a call is kept.
	idleTime = time.Minute
	// idleLook is how often that is looked at.
	idleLook = time.Second
	// idleBytes is from where on a worker that has no call is ended already then: it does not soon give back what it has.
	idleBytes = 48 << 20
)

// Processes say how workers are started.
type Processes struct {
	// Command is a program and its arguments. It gets one more argument, the limit of its heap, and must hand it to Work.
	Command []string
	// Memory is what the machine or the container has; 0 where nobody knows.
	Memory int64
	// Governor gives the memory that workers have; nil gives them what they like.
	Governor *memory.Governor
	// Log is told of workers that failed.
	Log *slog.Logger
}

// InWorkers is an Engine that runs functions in processes of their own. Close ends them.
func InWorkers(c clock.Clock, o Processes) *Engine {
	heap := int64(maxHeap)
	if o.Memory > 0 {
		heap = min(max(o.Memory/heapShare, minHeap), maxHeap)
	}
	workers := min(max(2*host.ProcessorCount(), minWorkers), maxWorkers)
	p := &pool{command: o.Command, heap: heap, governor: o.Governor, log: o.Log, turns: make(chan struct{}, workers)}
	if host.ResidentOf(os.Getpid()) == 0 {
		p.unmeasured = true
	}
	o.Governor.OnShortage(p.endIdle)
	return &Engine{clock: c, pool: p}
}

// pool is the workers. Whoever wants to call takes a turn first: with one in hand there is a worker that is not in a call,
// or room for one more, if memory allows.
type pool struct {
	command  []string
	heap     int64
	governor *memory.Governor
	log      *slog.Logger
	turns    chan struct{}
	patrol   *patrol // nil until somebody wanted a worker
	// unmeasured says that the system does not tell what a process has.
	unmeasured bool
	ending     sync.WaitGroup // of workers without a call, begun under mu
	mu         struct {
		sync.Mutex
		workers []*worker
		waiting []*newcomer // no more than there are turns
		closed  bool
	}
}

// check looks whether f is a function.
func (p *pool) check(f *Function, interrupt func() error) error {
	return p.do(nil, interrupt, func(w *worker) error {
		_, _, err := w.ask(newFrame(w.buf, frameCheck).text(f.text))
		return err
	})
}

// do runs a call of r's, which may be nil, with a worker.
func (p *pool) do(r *Runtime, interrupt func() error, call func(*worker) error) error {
	if err := p.turn(interrupt); err != nil {
		return err
	}
	defer func() { <-p.turns }()
	w, err := p.take(r, interrupt)
	if err != nil {
		return err
	}
	w.begin(interrupt)
	if r != nil && !p.isOwner(w, r) {
		p.own(w, nil) // where it fails, nobody's global variables are in it
		if err = w.reset(r); err == nil {
			p.own(w, r)
		}
	}
	if err == nil {
		err = call(w)
	}
	return p.give(w, err, w.finish())
}

func (p *pool) isOwner(w *worker, r *Runtime) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.owner == r
}

// own makes w the worker that r comes back to. The one before, which was in a call of somebody else's when r came back, has neither what r's
// functions do now to global variables nor the functions that it meets from now on.
func (p *pool) own(w *worker, r *Runtime) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.mu.workers {
		if other.owner == r {
			other.owner = nil
		}
	}
	w.owner = r
}

// turn waits until there is a worker for one more call.
func (p *pool) turn(interrupt func() error) error {
	select {
	case p.turns <- struct{}{}:
		return nil
	default:
	}
	for {
		t := clock.Wall().NewTimer(watchEvery)
		select {
		case p.turns <- struct{}{}:
			t.Stop()
			return nil
		case <-t.C():
		}
		if interrupt == nil {
			continue
		}
		if err := interrupt(); err != nil {
			return err
		}
	}
}

// take is a worker for a call of r's: the one that it has had, one that nobody has, a new one, or the one that was idle for
// longest. Where there is none, and no memory for a new one, it waits for either.
func (p *pool) take(r *Runtime, interrupt func() error) (*worker, error) {
	var room memory.Account // for one more worker
	room.OpenExact(p.governor, memory.Scripts)
	defer func() { room.Close() }() // what no worker got
	for {
		p.mu.Lock()
		if p.mu.closed {
			p.mu.Unlock()
			return nil, mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")
		}
		if p.patrol == nil {
			p.patrol = startPatrol(idleLook, p.look)
		}
		best := p.idle(r)
		if best == nil || best.owner != nil && r != nil && best.owner != r && len(p.mu.workers) < cap(p.turns) {
			if room.Used() > 0 || room.Take(p.least()) {
				w, err := p.start(room)
				if err != nil {
					p.mu.Unlock()
					return nil, err
				}
				room = memory.Account{}
				p.mu.workers, best = append(p.mu.workers, w), w
			}
		}
		if best != nil {
			best.busy = true
			p.mu.Unlock()
			return best, nil
		}
		n := p.enqueue(interrupt)
		p.mu.Unlock()
		if w, err := p.await(n, &room); w != nil || err != nil {
			return w, err
		}
	}
}

// idle is the best worker for r of those that have no call. The caller holds the lock.
func (p *pool) idle(r *Runtime) (best *worker) {
	p.mu.workers = slices.DeleteFunc(p.mu.workers, func(w *worker) bool {
		if w.busy || !w.over() { // one in a call is that call's to bury
			return false
		}
		w.end()
		return true
	})
	for _, w := range p.mu.workers {
		switch {
		case w.busy:
		case r != nil && w.owner == r:
			return w
		case best == nil, best.owner != nil && w.owner == nil, (best.owner == nil) == (w.owner == nil) && w.used.Before(best.used):
			best = w
		}
	}
	return best
}

// give gives a worker back after a call that ended with err; cause is why it was killed, if it was.
func (p *pool) give(w *worker, err, cause error) error {
	var known *mongoerr.Error
	var refusal refused
	switch {
	case errors.As(err, &refusal):
		err = refusal.error
	case cause != nil:
		err = cause
	case err == nil, errors.As(err, &known):
		p.mu.Lock()
		if w.used = clock.Wall().Now(); !p.handOver(w) {
			w.busy = false
		}
		p.mu.Unlock()
		return err
	default: // it is no more
		w.end()
		err = w.why()
		if p.log != nil {
			p.log.Warn("A process that ran JavaScript has ended", "pid", w.cmd.Process.Pid, "reason", err)
		}
	}
	w.end()
	p.mu.Lock()
	p.mu.workers = slices.DeleteFunc(p.mu.workers, func(other *worker) bool { return other == w })
	p.handOver(nil)
	p.mu.Unlock()
	return err
}

// look looks after all workers, and those who wait for one.
func (p *pool) look() {
	p.mu.Lock()
	workers, waiting := slices.Clone(p.mu.workers), slices.Clone(p.mu.waiting)
	p.mu.Unlock()
	for _, n := range waiting {
		n.look()
	}
	for _, w := range workers {
		w.look()
	}
	p.endThose(func(w *worker) bool {
		idle := clock.Since(clock.Wall(), w.used)
		return idle > idleTime || idle > idleLook && w.resident.Load() > idleBytes
	})
}

// endIdle is the pool's part when memory is short: workers without a call go.
func (p *pool) endIdle(want int64) (freed int64) {
	p.endThose(func(w *worker) bool {
		if want <= 0 {
			return false
		}
		want -= w.granted.Load()
		freed += w.granted.Load()
		return true
	})
	return freed
}

// endThose ends the workers without a call that which is true for.
func (p *pool) endThose(which func(*worker) bool) {
	var ended []*worker
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return
	}
	p.mu.workers = slices.DeleteFunc(p.mu.workers, func(w *worker) bool {
		if w.busy || !which(w) {
			return false
		}
		ended = append(ended, w)
		return true
	})
	p.ending.Add(1)
	p.mu.Unlock()
	defer p.ending.Done()
	for _, w := range ended {
		w.end()
	}
}

// resident is how much memory the workers have together.
func (p *pool) resident() (bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.mu.workers {
		bytes += w.resident.Load()
	}
	return bytes
}

func (p *pool) close() {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return
	}
	p.mu.closed = true
	workers := p.mu.workers
	p.mu.workers = nil
	for p.handOver(nil) {
	}
	p.mu.Unlock()
	if p.patrol != nil {
		p.patrol.end()
	}
	for _, w := range workers {
		w.end()
	}
	p.ending.Wait()
}
