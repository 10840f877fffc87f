package kvtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

func claim(txn kv.Txn, keys ...string) {
	for _, key := range keys {
		txn.Claim([]byte(key))
	}
}

func checkLostUpdate(t *testing.T, s *Store) {
	put(t, s, "a=0")
	first, second := begin(t, s), begin(t, s)
	claim(first, "a")
	write(first, "a=first")
	claim(second, "a")
	write(second, "a=second", "b=second")
	second.Add([]byte("n"), 1)
	if second.Conflicts([]byte("a")) {
		t.Error("a conflict before anybody has committed")
	}
	commit(t, first)
	if !second.Conflicts([]byte("a")) || second.Conflicts([]byte("b")) {
		t.Error("a conflict is not told before the commit, or one that there is not")
	}
	conflict(t, second)
	view := snap(t, s)
	defer view.Close()
	have(t, view, "a=first")
	haveCount(t, view, "n", 0)

	again := begin(t, s)
	claim(again, "a")
	write(again, "a=again")
	commit(t, again)
}

// checkWriteSkew: each reads both keys and writes the other one. Claims of what was read make one of them fail.
func checkWriteSkew(t *testing.T, s *Store) {
	put(t, s, "x=1", "y=1")
	first, second := begin(t, s), begin(t, s)
	claim(first, "x", "y")
	write(first, "x=0")
	claim(second, "x", "y")
	write(second, "y=0")
	commit(t, first)
	conflict(t, second)

	// A transaction that only claims is a guard for the others too.
	guard, writer := begin(t, s), begin(t, s)
	claim(guard, "x")
	claim(writer, "x")
	write(writer, "y=0")
	commit(t, guard)
	conflict(t, writer)
}

func checkBlindWrites(t *testing.T, s *Store) {
	first, second, third := begin(t, s), begin(t, s), begin(t, s)
	write(first, "a=first")
	claim(second, "b")
	write(second, "a=second")
	claim(third, "c", "c")
	write(third, "a=third")
	commit(t, second)
	commit(t, first)
	commit(t, third)
	view := snap(t, s)
	have(t, view, "a=third")
	noError(t, view.Close())
}

func checkClaimsEnd(t *testing.T, s *Store) {
	old := begin(t, s) // keeps every claim alive
	for i := range 20 {
		txn := begin(t, s)
		claim(txn, "a", fmt.Sprint("k", i))
		write(txn, fmt.Sprint("a=", i))
		commit(t, txn)
	}
	claim(old, "k3")
	conflict(t, old)
	late := begin(t, s)
	claim(late, "k3", "a")
	commit(t, late)
}

func checkFailedClaims(t *testing.T, s *Store) {
	first, second, third := begin(t, s), begin(t, s), begin(t, s)
	claim(first, "a")
	claim(second, "a", "b")
	claim(third, "b")
	commit(t, first)
	conflict(t, second)
	commit(t, third) // second's claim of b never happened
}

// checkConcurrentClaims: many goroutines raise the same numbers by reading, claiming and writing. None may be lost.
func checkConcurrentClaims(t *testing.T, s *Store) {
	const workers, rounds, keys = 8, 60, 3
	var wg sync.WaitGroup
	var conflicts atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				key := fmt.Sprint("k", (w+i)%keys)
				for !raise(t, s, key) {
					conflicts.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return // a worker that could not go on has not done its part
	}
	view := snap(t, s)
	defer view.Close()
	sum := 0
	for k := range keys {
		value, err := view.Get(fmt.Appendf(nil, "k%d", k))
		noError(t, err)
		sum += len(value)
	}
	if sum != workers*rounds {
		t.Fatalf("%d of %d updates were lost", workers*rounds-sum, workers*rounds)
	}
	t.Logf("%d conflicts on %d commits", conflicts.Load(), workers*rounds)
}

// raise makes the value one byte longer; false on a conflict.
func raise(t *testing.T, e kv.Engine, key string) bool {
	txn, err := e.Begin()
	if err != nil {
		t.Error(err)
		return true
	}
	value, err := txn.Get([]byte(key))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		t.Error(err)
	}
	claim(txn, key)
	txn.Set([]byte(key), append(value, 'x'))
	switch err := txn.Commit(context.Background(), kv.Buffered); {
	case errors.Is(err, kv.ErrConflict):
		return false
	case err != nil:
		t.Error(err)
	}
	return true
}
