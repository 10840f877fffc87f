package javascript

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
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
)

// Processes say how workers are started.
type Processes struct {
	// Command is a program and its arguments. It gets one more argument, the limit of its heap, and must hand it to Work.
	Command []string
	// Memory is what the machine or the container has; 0 where nobody knows.
	Memory int64
	// Log is told of workers that failed.
	Log *slog.Logger
}

// InWorkers is an Engine that runs functions in processes of their own. Close ends them.
func InWorkers(c clock.Clock, o Processes) *Engine {
	heap := int64(maxHeap)
	if o.Memory > 0 {
		heap = min(max(o.Memory/heapShare, minHeap), maxHeap)
	}
	workers := min(max(2*runtime.GOMAXPROCS(0), minWorkers), maxWorkers)
	return &Engine{clock: c, pool: &pool{command: o.Command, heap: heap, log: o.Log, turns: make(chan struct{}, workers)}}
}

// pool is the workers. Whoever wants to call takes a turn first: with one in hand there is a worker that is not in a call,
// or room for one more.
type pool struct {
	command []string
	heap    int64
	log     *slog.Logger
	turns   chan struct{}
	patrol  *patrol // nil until there has been a worker
	mu      struct {
		sync.Mutex
		workers []*worker
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
	w, err := p.take(r)
	if err != nil {
		return err
	}
	w.begin(interrupt)
	if r != nil && w.owner != r { // of whom nobody else can make it one
		if err = w.reset(r); err == nil {
			p.mu.Lock()
			w.owner = r
			p.mu.Unlock()
		}
	}
	if err == nil {
		err = call(w)
	}
	return p.give(w, err, w.finish())
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
// longest.
func (p *pool) take(r *Runtime) (*worker, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, mongoerr.New(mongoerr.InterruptedAtShutdown, "interrupted at shutdown")
	}
	p.mu.workers = slices.DeleteFunc(p.mu.workers, func(w *worker) bool {
		if w.busy || !w.over() { // one in a call is that call's to bury
			return false
		}
		w.end()
		return true
	})
	var best *worker
	for _, w := range p.mu.workers {
		switch {
		case w.busy:
		case r != nil && w.owner == r:
			w.busy = true
			return w, nil
		case best == nil, best.owner != nil && w.owner == nil, (best.owner == nil) == (w.owner == nil) && w.used.Before(best.used):
			best = w
		}
	}
	if best == nil || best.owner != nil && r != nil && len(p.mu.workers) < cap(p.turns) {
		w, err := p.start()
		if err != nil {
			return nil, err
		}
		if p.patrol == nil {
			p.patrol = startPatrol(idleLook, p.look)
		}
		p.mu.workers, best = append(p.mu.workers, w), w
	}
	best.busy = true
	return best, nil
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
		w.busy, w.used = false, clock.Wall().Now()
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
	p.mu.Unlock()
	return err
}

// look looks after all workers.
func (p *pool) look() {
	p.mu.Lock()
	workers := slices.Clone(p.mu.workers)
	var idle []*worker
	p.mu.workers = slices.DeleteFunc(p.mu.workers, func(w *worker) bool {
		old := !w.busy && clock.Since(clock.Wall(), w.used) > idleTime
		if old {
			idle = append(idle, w)
		}
		return old
	})
	p.mu.Unlock()
	for _, w := range workers {
		w.look()
	}
	for _, w := range idle {
		w.end()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.mu.closed = true
	workers := p.mu.workers
	p.mu.workers = nil
	p.mu.Unlock()
	if p.patrol != nil {
		p.patrol.end()
	}
	for _, w := range workers {
		w.end()
	}
}
