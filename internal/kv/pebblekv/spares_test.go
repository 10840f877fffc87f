package pebblekv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/kv"
)

const spareKeys = 1000

func spareKey(i int) []byte { return fmt.Appendf(nil, "%04d", i) }

// openSpares is a store of spareKeys, half of them in a table.
func openSpares(t *testing.T) *Engine {
	t.Helper()
	e, err := OpenMemory(Options{})
	must(err)
	t.Cleanup(func() { must(e.Close()) })
	for half := range 2 {
		txn, err := e.Begin()
		must(err)
		for i := half; i < spareKeys; i += 2 {
			txn.Set(spareKey(i), spareKey(i))
		}
		must(txn.Commit(context.Background(), kv.Buffered))
		if half == 0 {
			must(e.Flush())
		}
	}
	return e
}

func openIter(t *testing.T, s kv.Reader, low, high int) *iterator {
	t.Helper()
	it, err := s.NewIter(kv.IterOptions{Lower: spareKey(low), Upper: spareKey(high)})
	must(err)
	return it.(*iterator)
}

// An iterator that was used before walks what a new one does, wherever the last one stood.
func TestSparesWalk(t *testing.T) {
	e := openSpares(t)
	s, err := e.Snapshot()
	must(err)
	defer func() { must(s.Close()) }()
	dice := rand.New(rand.NewPCG(1, 2))
	used := map[*pebble.Iterator]bool{}
	for range 2000 {
		low := dice.IntN(spareKeys)
		high := low + dice.IntN(spareKeys-low)
		it := openIter(t, s, low, high)
		used[it.it] = true
		if it.Valid() {
			t.Fatal("it stands somewhere before it was moved")
		}
		from, step, move := low, 1, it.Next
		switch dice.IntN(4) {
		case 0:
			from, step, move = high-1, -1, it.Prev
		case 1:
			from = low + dice.IntN(high-low+1)
			move = func() bool { move = it.Next; return it.SeekGE(spareKey(from)) }
		case 2:
			from, step = low+dice.IntN(high-low+1), -1
			upper := spareKey(from)
			from--
			move = func() bool { move = it.Prev; return it.SeekLT(upper) }
		}
		for n := dice.IntN(50); n > 0; n-- {
			there := from >= low && from < high
			if move() != there {
				t.Fatalf("[%d, %d): %d is there: %v", low, high, from, there)
			}
			if !there {
				break
			}
			if value, err := it.Value(); string(it.Key()) != string(spareKey(from)) || string(value) != string(it.Key()) || err != nil {
				t.Fatalf("[%d, %d): %s=%s (%v), want %d", low, high, it.Key(), value, err, from)
			}
			from += step
		}
		must(it.Close())
	}
	if len(used) != 1 {
		t.Errorf("one after the other took %d iterators", len(used))
	}
}

// A view keeps a few, gives the one that was used nearest, and none any more when something was committed.
func TestSparesAreOfTheSharedView(t *testing.T) {
	e := openSpares(t)
	s, err := e.Snapshot()
	must(err)
	defer func() { must(s.Close()) }()
	var open []*iterator
	for i := range maxSpares + 2 {
		open = append(open, openIter(t, s, 100*i, 100*i+10))
	}
	near, late := open[3].it, open[maxSpares+1]
	for _, it := range open[:maxSpares+1] {
		must(it.Close())
	}
	spares := &s.(*snapshot).view.spares
	if n := len(spares.kept); n != maxSpares {
		t.Errorf("%d are kept", n)
	}
	it := openIter(t, s, 305, 309)
	if it.it != near {
		t.Error("the one that was used nearby is not taken")
	}
	txn, err := e.Begin()
	must(err)
	txn.Set(spareKey(0), nil)
	must(txn.Commit(context.Background(), kv.Buffered))
	if n := len(spares.kept); n != 0 {
		t.Errorf("%d are kept of a view that nobody gets any more", n)
	}
	if !it.Next() || string(it.Key()) != "0305" {
		t.Errorf("one that is in use stands on %s", it.Key())
	}
	must(it.Close())
	must(late.Close())
	if n := len(spares.kept); n != 0 {
		t.Errorf("%d are kept that came back later", n)
	}
}

// What nobody uses goes after a moment.
func TestSparesGo(t *testing.T) {
	e := openSpares(t)
	fake, quit := clock.NewFake(time.Unix(0, 0)), make(chan struct{})
	views := snapshotCache{spared: make(chan struct{}, 1)}
	keeper := startSpareKeeper(&views, fake, quit)
	v := views.acquire(e.db, &e.commits.sequence)
	s := &snapshot{v, e.commits.rows}
	must(openIter(t, s, 0, 10).Close())
	if len(v.spares.kept) != 1 {
		t.Fatal("it is not kept")
	}
	for fake.Waiting() == 0 { // until the keeper has seen it
		runtime.Gosched()
	}
	fake.Advance(spareTime)
	views.spared <- struct{}{} // which is taken when it has been at work
	for fake.Waiting() == 0 {
		runtime.Gosched()
	}
	v.spares.mu.Lock()
	n := len(v.spares.kept)
	v.spares.mu.Unlock()
	if n != 0 {
		t.Errorf("%d are kept", n)
	}
	must(openIter(t, s, 0, 10).Close())
	must(s.Close())
	close(quit)
	keeper.wait()
	views.forget()
}
