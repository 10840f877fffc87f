package pebblekv

import (
	"errors"
	"sync"
	"testing"
)

// Who comes while a sync runs is not content with it: all who come then share the next one, and its error.
func TestRounds(t *testing.T) {
	const late = 5
	began, end := make(chan struct{}), make(chan error)
	var s rounds
	s.sync = func() error {
		began <- struct{}{}
		return <-end
	}
	first := make(chan error, 1)
	go func() { first <- s.wait() }()
	<-began
	var all sync.WaitGroup
	errs := make(chan error, late)
	var joined []*round
	for range late {
		r, leads := s.join()
		joined = append(joined, r)
		if leads {
			all.Go(func() { s.lead(r) })
		}
		all.Go(func() { <-r.done; errs <- r.err })
	}
	for _, r := range joined {
		if r != joined[0] {
			t.Fatal("who comes during one sync is in two rounds")
		}
	}
	end <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-began
	if len(errs) > 0 {
		t.Fatal("somebody is content with a sync that had begun before")
	}
	broken := errors.New("broken")
	end <- broken
	all.Wait()
	close(errs)
	for err := range errs {
		if err != broken {
			t.Errorf("%v, want %v", err, broken)
		}
	}
}
