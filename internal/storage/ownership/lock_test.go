package ownership

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestLock: first come, first served, and who gives up leaves the queue in order.
func TestLock(t *testing.T) {
	var l lock
	background := context.Background()
	if err := errors.Join(l.Acquire(background, false), l.Acquire(background, false)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(background)
	var work sync.WaitGroup
	order := make(chan string, 3)
	queue := func(ctx context.Context, name string, exclusive bool) {
		before := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.waiting) }
		n := before()
		work.Go(func() {
			if err := l.Acquire(ctx, exclusive); err != nil {
				order <- name + " gave up"
				return
			}
			order <- name
			l.Release(exclusive)
		})
		for before() == n {
			time.Sleep(time.Microsecond)
		}
	}
	queue(background, "first", true)
	queue(ctx, "second", true)
	queue(background, "third", false)
	if l.Try(false) {
		t.Error("the shared lock was given past one who waits for the exclusive one")
	}
	cancel()
	if got := <-order; got != "second gave up" {
		t.Error(got)
	}
	l.Release(false)
	l.Release(false)
	if a, b := <-order, <-order; a != "first" || b != "third" {
		t.Error(a, b)
	}
	work.Wait()
	if !l.Try(true) {
		t.Error("the lock is not free at the end")
	}
}
