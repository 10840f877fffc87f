package main

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

const (
	// minThreads is how many threads must be able to run Go code at once, for one of them keeps the right to while it waits for
	// clients in the kernel.
	minThreads = 2
	// fewThreads is from how many on nobody notices that one more of them has work of the store's own to do.
	fewThreads = 8
)

// setThreads sets what the environment (GOMAXPROCS) has left open. What it returns is to be told when the store has work of
// its own to do; nil means that nobody wants to know.
func setThreads() (work func(bool)) {
	n := runtime.GOMAXPROCS(0)
	given := os.Getenv("GOMAXPROCS") != ""
	if !given && n < minThreads {
		n = minThreads
		runtime.GOMAXPROCS(n)
	}
	if n >= minThreads {
		slowWatchman()
	}
	if given || n >= fewThreads {
		return nil
	}
	s := &spare{threads: n, changed: make(chan struct{}, 1)}
	go s.run()
	return s.work
}

// spare lets one more thread run Go code while the store has work of its own to do. With two, one of which keeps its right to
// while it waits for clients, that work would have the other: Go takes it away after 10 ms only, and an insert changes
// goroutines three times. The kernel gives threads their turn sooner. At other times one more would cost small inserts a
// sixth more CPU.
type spare struct {
	threads int
	working atomic.Bool
	changed chan struct{} // holds one
}

// spareLinger is how long the thread is kept when the work is done: it comes in pieces, and all threads stop for a change.
const spareLinger = 100 * time.Millisecond

func (s *spare) work(goesOn bool) {
	s.working.Store(goesOn)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *spare) run() {
	for range s.changed {
		if !s.working.Load() {
			<-clock.Wall().NewTimer(spareLinger).C()
		}
		n := s.threads
		if s.working.Load() {
			n++
		}
		if runtime.GOMAXPROCS(0) != n {
			runtime.GOMAXPROCS(n)
		}
	}
}
