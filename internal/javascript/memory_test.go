package javascript

import (
	"errors"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/memory"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

const mib = 1 << 20

func compiled(t *testing.T, e *Engine, source string) *Function {
	t.Helper()
	f, err := e.Compile(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Many callers, with memory for two workers at rest: all are served, some after others, and never is more used than there is.
func TestWorkersShareMemory(t *testing.T) {
	const total = 44 * mib
	g := memory.New(total, clock.Wall(), nil)
	defer g.Close()
	e := governed(t, g)
	f := compiled(t, e, "function(n) { var s = 0; for (var i = 0; i < 1000; i++) s += n; return s }")
	var all sync.WaitGroup
	for n := range 4 * cap(e.pool.turns) {
		all.Go(func() {
			r := e.Runtime(nil)
			for range 10 {
				if v, err := r.Call(f, bson.Missing, bson.Int32(int32(n))); err != nil || v.AsDouble() != float64(1000*n) {
					t.Errorf("%v %v", v, err)
				}
			}
		})
	}
	all.Wait()
	if s := g.Stats(); s.Peak > total || s.Peak < restBytes || s.By[memory.Scripts] != s.Used {
		t.Errorf("%+v", s)
	}
	e.Close()
	if s := g.Stats(); s.Used != 0 || e.Resident() != 0 {
		t.Errorf("%+v", s)
	}
}

// Functions that want more than there is end with the Governor's error, and what is small is served meanwhile, where it asks again when it was
// refused, and after it.
func TestGreedyWorkersAreRefused(t *testing.T) {
	const total = 64 * mib
	g := memory.New(total, clock.Wall(), nil)
	defer g.Close()
	e := governed(t, g)
	if e.pool.unmeasured {
		t.Skip("the system does not tell what a process has")
	}
	greedy := compiled(t, e, "function() { for (var a = []; ; ) a.push('x' + a.length) }")
	small := compiled(t, e, "function() { return Math.max(1, 2) }")
	var all sync.WaitGroup
	const each, tries = 6, 1000
	for range each {
		all.Go(func() {
			if _, err := e.Runtime(nil).Call(greedy, bson.Missing); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
				t.Error("a function that wants all there is: ", err)
			}
		})
		all.Go(func() {
			_, err := e.Runtime(nil).Call(small, bson.Missing)
			for n := 1; n < tries && mongoerr.Is(err, mongoerr.ExceededMemoryLimit); n++ {
				_, err = e.Runtime(nil).Call(small, bson.Missing)
			}
			if err != nil {
				t.Error("a small one: ", err)
			}
		})
	}
	all.Wait()
	if v, err := e.Runtime(nil).Call(small, bson.Missing); err != nil || v.AsDouble() != 2 {
		t.Errorf("%v %v", v, err)
	}
	if s := g.Stats(); s.Peak > total {
		t.Errorf("%+v", s)
	}
}

// Workers without a call go when somebody else needs the memory.
func TestIdleWorkersMakeRoom(t *testing.T) {
	g := memory.New(40*mib, clock.Wall(), nil)
	defer g.Close()
	e := governed(t, g)
	r := e.Runtime(nil)
	f := compiled(t, e, "function() { return Math.max(1, 2) }")
	if _, err := r.Call(f, bson.Missing); err != nil || g.Stats().By[memory.Scripts] == 0 {
		t.Fatalf("%v, %+v", err, g.Stats())
	}
	var a memory.Account
	a.Open(g, memory.Operators)
	if err := a.Wait(t.Context(), 34*mib); err != nil {
		t.Fatal(err)
	}
	if s := g.Stats(); s.By[memory.Scripts] != 0 || s.Reclaimed < restBytes {
		t.Errorf("%+v", s)
	}
	// The newcomer is refused, or ends with its operation, or gets what is given back.
	stop := errors.New("stop")
	if _, err := e.Runtime(func() error { return stop }).Call(f, bson.Missing); !errors.Is(err, stop) {
		t.Error(err)
	}
	if _, err := r.Call(f, bson.Missing); !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
		t.Error(err)
	}
	done := make(chan error)
	go func() {
		_, err := r.Call(f, bson.Missing)
		done <- err
	}()
	a.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The Engine knows what its workers have, and those that keep much do not stay.
func TestResident(t *testing.T) {
	e := inWorkers(t)
	if e.pool.unmeasured {
		t.Skip("the system does not tell what a process has")
	}
	f := compiled(t, e, "function() { for (var a = [], i = 0; i < 1000000; i++) a.push('x' + i); sleep(100); return a.length }")
	if _, err := e.Runtime(nil).Call(f, bson.Missing); err != nil {
		t.Fatal(err)
	}
	if n := e.Resident(); n < idleBytes {
		t.Errorf("%d", n)
	}
	w := e.pool.mu.workers[0]
	e.pool.mu.Lock()
	w.used = w.used.Add(-2 * idleLook)
	e.pool.mu.Unlock()
	e.pool.look()
	if n := e.Resident(); n != 0 || !w.over() {
		t.Errorf("%d", n)
	}
}
