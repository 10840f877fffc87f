package pebblekv

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

// Who comes while a sync runs is not content with it: all who come then share the next one, and its error.
func TestGroupCommit(t *testing.T) {
	const late = 5
	began, end := make(chan struct{}), make(chan error)
	s := groupCommit{clock: clock.NewFake(time.Unix(0, 0))}
	s.sync = func() error {
		began <- struct{}{}
		return <-end
	}
	first := make(chan error, 1)
	go func() { first <- s.wait() }()
	<-began
	var all sync.WaitGroup
	errs := make(chan error, late)
	var joined []*group
	for range late {
		g, first := s.join()
		joined = append(joined, g)
		if first {
			all.Go(func() { s.syncGroup(g) })
		}
		all.Go(func() { <-g.done; errs <- g.err })
	}
	for _, g := range joined {
		if g != joined[0] {
			t.Fatal("who comes during one sync is in two groups")
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

// Those who committed at about the same time are waited for, but no longer than a sync takes. Who is alone never waits.
func TestGroupCommitGather(t *testing.T) {
	const sync = time.Millisecond
	fake := clock.NewFake(time.Unix(0, 0))
	began, end := make(chan struct{}), make(chan struct{})
	s := &groupCommit{clock: fake}
	s.sync = func() error {
		began <- struct{}{}
		<-end
		fake.Advance(sync)
		return nil
	}
	gone := make(chan error, 8)
	come := func(n int) {
		for range n {
			go func() { gone <- s.wait() }()
		}
	}
	// ends lets the sync under way end, and those n who share it go.
	ends := func(n int) {
		end <- struct{}{}
		for range n {
			if err := <-gone; err != nil {
				t.Error(err)
			}
		}
	}
	waits := func(until func() bool) {
		for !until() {
			runtime.Gosched()
		}
	}
	members := func(n int) func() bool {
		return func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.mu.next != nil && s.mu.next.members == n
		}
	}

	for range 3 { // alone
		come(1)
		<-began
		ends(1)
	}
	come(1)
	<-began
	come(2)
	waits(members(2))
	ends(1)
	waits(func() bool { return fake.Waiting() == 1 }) // for the one that has just gone
	come(1)
	<-began
	ends(3)

	come(2)
	waits(func() bool { return members(2)() && fake.Waiting() == 1 })
	fake.Advance(sync) // the third does not come
	<-began
	ends(2)
	come(2)
	<-began
	ends(2)
}

// Where those who are expected do not come, groups do without waiting: one, then three, and so on, until some come again.
func TestGroupCommitGathersInVain(t *testing.T) {
	s := &groupCommit{clock: clock.NewFake(time.Unix(0, 0))}
	s.mu.expected = 3
	tries := func(comes int) (waits bool) {
		g := &group{members: 1, full: make(chan struct{})}
		there, missing := s.beginGather(g)
		if missing > 0 {
			g.members += comes
			s.endGather(g, there, missing)
		}
		return missing > 0
	}
	pattern := func(groups, comes int) (told string) {
		for range groups {
			told += map[bool]string{true: "w", false: "-"}[tries(comes)]
		}
		return told
	}
	if got, want := pattern(15, 0), "w-w---w-------w"; got != want {
		t.Errorf("nobody comes: %s, want %s", got, want)
	}
	s.mu.hurried = 0
	if got, want := pattern(3, 1), "www"; got != want {
		t.Errorf("one of two comes: %s, want %s", got, want)
	}
	if got, want := pattern(4, 0), "w-w-"; got != want {
		t.Errorf("nobody comes again: %s, want %s", got, want)
	}
	for range 10_000 {
		tries(0)
	}
	if s.mu.hurried > 1<<maxVain {
		t.Errorf("%d groups do without", s.mu.hurried)
	}
}

// Rounds that are stopped end what has begun, and tell the rest.
func TestGroupCommitStop(t *testing.T) {
	began, end := make(chan struct{}), make(chan error)
	s := &groupCommit{clock: clock.NewFake(time.Unix(0, 0))}
	s.sync = func() error {
		began <- struct{}{}
		return <-end
	}
	told := make(chan error, 1)
	go func() { told <- s.wait() }()
	<-began
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	end <- nil
	<-stopped
	if err := <-told; err != nil {
		t.Error(err)
	}
	if err := s.wait(); !errors.Is(err, kv.ErrClosed) {
		t.Error(err)
	}
}
