package kvtest

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/kv"
)

func add(t *testing.T, e kv.Engine, key string, delta int64) {
	t.Helper()
	txn := begin(t, e)
	txn.Add([]byte(key), delta)
	commit(t, txn)
}

func checkCounters(t *testing.T, s *Store) {
	add(t, s, "n", 5)
	one := snap(t, s)
	txn := begin(t, s)
	txn.Add([]byte("n"), 10)
	txn.Add([]byte("n"), -3)
	txn.Add([]byte("m"), 1)
	haveCount(t, txn, "n", 12)
	haveCount(t, one, "n", 5)
	add(t, s, "n", 100) // counters never conflict
	two := snap(t, s)
	haveCount(t, txn, "n", 12) // its own snapshot, its own additions
	commit(t, txn)
	three := snap(t, s)
	for _, c := range []struct {
		view kv.Snapshot
		n, m int64
	}{{one, 5, 0}, {two, 105, 0}, {three, 112, 1}} {
		haveCount(t, c.view, "n", c.n)
		haveCount(t, c.view, "m", c.m)
		noError(t, c.view.Close())
	}
	add(t, s, "n", -112)
	add(t, s, "big", math.MaxInt64)
	add(t, s, "big", -1)
	add(t, s, "low", math.MinInt64)
	last := snap(t, s)
	defer last.Close()
	haveCount(t, last, "n", 0)
	haveCount(t, last, "big", math.MaxInt64-1)
	haveCount(t, last, "low", math.MinInt64)
	haveCount(t, last, "never", 0)
}

// checkConcurrentCounters: in each snapshot the counter equals the number of records that were put with it.
func checkConcurrentCounters(t *testing.T, s *Store) {
	const workers, rounds = 6, 50
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				txn, err := s.Begin()
				if err != nil {
					t.Error(err)
					return
				}
				txn.Set(binary.BigEndian.AppendUint32([]byte("r"), uint32(w*rounds+i)), nil)
				txn.Add([]byte("n"), 1)
				if err := txn.Commit(context.Background(), kv.Buffered); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		view := snap(t, s)
		haveCount(t, view, "n", records(t, view))
		noError(t, view.Close())
	}
	view := snap(t, s)
	defer view.Close()
	haveCount(t, view, "n", workers*rounds)
}

func records(t *testing.T, r kv.Reader) int64 {
	t.Helper()
	it, err := r.NewIter(kv.IterOptions{Lower: []byte("r"), Upper: []byte("s")})
	noError(t, err)
	var n int64
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	noError(t, it.Err())
	noError(t, it.Close())
	return n
}
