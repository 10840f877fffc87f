package ownership

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLockModes: who may hold a lock beside whom, and who passes whom in the queue.
func TestLockModes(t *testing.T) {
	names := map[Mode]string{Shared: "shared", Exclusive: "exclusive", Lasting: "lasting", Statement: "statement", Sweeping: "sweeping"}
	beside := map[Mode][]Mode{
		Shared:    {Shared, Lasting, Statement},
		Exclusive: nil,
		Lasting:   {Shared, Lasting, Statement, Sweeping},
		Statement: {Shared, Lasting, Statement},
		Sweeping:  {Lasting},
	}
	for held, with := range beside {
		for wanted := range Modes {
			var l lock
			l.Try(held)
			if got, want := l.Try(wanted), slices.Contains(with, wanted); got != want {
				t.Errorf("%s beside %s: %v", names[wanted], names[held], got)
			}
		}
	}
	for _, test := range []struct {
		held    []Mode
		waiting []Mode
		want    []int // of those who wait, who has got it
	}{
		{[]Mode{Shared}, []Mode{Exclusive, Shared, Lasting, Statement, Sweeping}, nil},
		// Who waits for a transaction's end is passed by its statements and by sweeps, and by nobody else.
		{[]Mode{Lasting}, []Mode{Exclusive, Shared, Lasting}, nil},
		{[]Mode{Lasting}, []Mode{Exclusive, Shared, Statement}, []int{2}},
		{[]Mode{Lasting}, []Mode{Exclusive, Shared, Sweeping}, []int{2}},
		{[]Mode{Lasting, Shared}, []Mode{Exclusive, Sweeping, Statement}, nil}, // or statements would starve sweeps
		// A sweep that waits for writers keeps writers waiting, and does not keep a transaction from beginning.
		{[]Mode{Shared}, []Mode{Sweeping, Shared, Lasting}, []int{2}},
		{[]Mode{Lasting, Statement}, []Mode{Sweeping, Statement, Shared, Lasting}, []int{3}},
		{[]Mode{Lasting, Sweeping}, []Mode{Shared, Statement, Sweeping, Lasting}, []int{3}},
		{[]Mode{Sweeping}, []Mode{Exclusive, Lasting}, nil},
	} {
		var l lock
		for _, mode := range test.held {
			if !l.Try(mode) {
				t.Fatalf("%v cannot be held together", test.held)
			}
		}
		var waiters []*waiter
		for _, mode := range test.waiting {
			w := &waiter{mode, make(chan struct{})}
			l.mu.Lock()
			l.waiting = append(l.waiting, w)
			l.grant()
			l.mu.Unlock()
			waiters = append(waiters, w)
		}
		var got []int
		for i, w := range waiters {
			select {
			case <-w.granted:
				got = append(got, i)
			default:
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v held, %v waiting: %v have got it", test.held, test.waiting, got)
		}
	}
}

// TestLock: first come, first served, and who gives up leaves the queue in order.
func TestLock(t *testing.T) {
	var l lock
	background := context.Background()
	if err := errors.Join(l.Acquire(background, Shared), l.Acquire(background, Shared)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	var work sync.WaitGroup
	order := make(chan string, 3)
	queue := func(ctx context.Context, name string, mode Mode) {
		before := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.waiting) }
		n := before()
		work.Go(func() {
			if err := l.Acquire(ctx, mode); err != nil {
				order <- name + " gave up"
				return
			}
			order <- name
			l.Release(mode)
		})
		for before() == n {
			time.Sleep(time.Microsecond)
		}
	}
	queue(background, "first", Exclusive)
	queue(ctx, "second", Exclusive)
	queue(background, "third", Shared)
	if l.Try(Shared) {
		t.Error("the shared lock was given past one who waits for the exclusive one")
	}
	cancel()
	if got := <-order; got != "second gave up" {
		t.Error(got)
	}
	l.Release(Shared)
	l.Release(Shared)
	if a, b := <-order, <-order; a != "first" || b != "third" {
		t.Error(a, b)
	}
	work.Wait()
	if !l.Try(Exclusive) {
		t.Error("the lock is not free at the end")
	}
}
