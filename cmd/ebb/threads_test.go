package main

import (
	"runtime"
	"testing"
	"time"
)

// TestSpare waits for the thread to come and to go.
func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	s := &spare{threads: minThreads, changed: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run()
	}()
	for _, step := range []struct {
		goesOn bool
		want   int
	}{{true, minThreads + 1}, {false, minThreads}, {true, minThreads + 1}, {false, minThreads}} {
		s.work(step.goesOn)
		for runtime.GOMAXPROCS(0) != step.want {
			time.Sleep(time.Millisecond)
		}
	}
	close(s.changed)
	<-done
}
