package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/operation"
)

// registry is one with a session whose transaction has begun, which nobody is at, at the time start.
func registry(t *testing.T) (r *Registry, c *clock.Fake, id string, w *work) {
	t.Helper()
	c = clock.NewFake(start)
	r = NewRegistry(c, func(map[string]bool) {})
	id, err := r.Start("")
	if err != nil {
		t.Fatal(err)
	}
	w = &work{}
	s := seat(t, r, id)
	if err := s.Begin(7, start, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.Attend(&operation.Operation{ID: 11}, "snapshot")
	s.Transaction().Work = w
	c.Advance(time.Second)
	s.Return()
	return r, c, id, w
}

func seat(t *testing.T, r *Registry, id string) *Seat {
	t.Helper()
	s, err := r.Checkout(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOpen: others see a transaction from when it begins until it ends, who is at it, and for how long somebody was.
func TestOpen(t *testing.T) {
	r, c, id, _ := registry(t)
	c.Advance(time.Second)
	all := r.Open()
	if len(all) != 1 {
		t.Fatal(all)
	}
	o := all[0]
	if o.Session != id || o.Number != 7 || !o.Started.Equal(start) || !o.Expires.Equal(start.Add(time.Minute)) || o.ReadConcern != "snapshot" ||
		o.Operation != 0 || o.Active(c.Now()) != time.Second {
		t.Errorf("%+v", o)
	}
	client := &operation.Client{ConnectionID: 3}
	s := seat(t, r, id)
	s.Attend(&operation.Operation{ID: 12, Client: client}, "local")
	c.Advance(time.Second)
	if o = r.Open()[0]; o.Operation != 12 || o.Client != client || o.Active(c.Now()) != 2*time.Second || o.ReadConcern != "snapshot" {
		t.Errorf("%+v", o)
	}
	s.Transaction().Commit()
	s.Return()
	if all := r.Open(); len(all) != 0 {
		t.Error(all)
	}
	s = seat(t, r, id)
	s.Attend(&operation.Operation{ID: 13}, "") // a commit that is sent again
	s.Return()
	if all := r.Open(); len(all) != 0 {
		t.Error(all)
	}
}

// TestCounts: each transaction that began is committed or aborted once.
func TestCounts(t *testing.T) {
	for name, c := range map[string]struct {
		end                         func(*Registry, *Seat)
		started, committed, aborted int64
	}{
		"goes on":            {func(*Registry, *Seat) {}, 1, 0, 0},
		"is committed":       {func(_ *Registry, s *Seat) { s.Transaction().Commit() }, 1, 1, 0},
		"is aborted":         {func(_ *Registry, s *Seat) { s.Transaction().Abort() }, 1, 0, 1},
		"begins another":     {func(_ *Registry, s *Seat) { _ = s.Begin(8, start, start.Add(time.Minute)) }, 2, 0, 1},
		"begins a write":     {func(_ *Registry, s *Seat) { _, _ = s.Write(8) }, 1, 0, 1},
		"is over":            {func(_ *Registry, s *Seat) { _ = s.Continue(7, start.Add(time.Hour)) }, 1, 0, 1},
		"loses its session":  {func(r *Registry, s *Seat) { r.End(s.id) }, 1, 0, 1},
		"is aborted by hand": {func(_ *Registry, s *Seat) { *s.Transaction() = Transaction{Number: 7, State: Aborted} }, 1, 0, 1},
	} {
		r, _, id, _ := registry(t)
		s := seat(t, r, id)
		c.end(r, s)
		s.Return()
		n := r.Counts()
		if n.Started.Load() != c.started || n.Committed.Load() != c.committed || n.Aborted.Load() != c.aborted || int64(len(r.Open())) != c.started-c.committed-c.aborted {
			t.Errorf("%s: %d started, %d committed, %d aborted, %d open", name, n.Started.Load(), n.Committed.Load(), n.Aborted.Load(), len(r.Open()))
		}
	}
}

// TestAbort: what is chosen is aborted, and where somebody has the session that is waited for.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, id, w := registry(t)
		if err := r.Abort(t.Context(), func(string) bool { return false }); err != nil || w.rolledBack != 0 {
			t.Error("aborted without being chosen", err)
		}
		mine := func(one string) bool { return one == id }
		s := seat(t, r, id)
		refused := errors.New("patience")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(refused)
		if err := r.Abort(ctx, mine); err != refused || w.rolledBack != 0 {
			t.Error(err)
		}
		done := make(chan error)
		go func() { done <- r.Abort(context.Background(), mine) }()
		synctest.Wait()
		if w.rolledBack != 0 {
			t.Error("aborted while somebody is at it")
		}
		s.Return()
		if err := <-done; err != nil || w.rolledBack != 1 || len(r.Open()) != 0 {
			t.Error(err, w.rolledBack)
		}
	})
}

// TestBusyIsStopped: what an operation is at is not aborted behind its back: the operation is stopped.
func TestBusyIsStopped(t *testing.T) {
	r, c, id, w := registry(t)
	s := seat(t, r, id)
	s.Attend(&operation.Operation{ID: 12}, "")
	var stopped []int64
	stop := func(id int64) { stopped = append(stopped, id) }
	r.AbortOld(c.Now(), stop)
	if stopped != nil {
		t.Error("stopped before its time was over")
	}
	r.AbortOld(start.Add(time.Minute), stop)
	r.AbortAll(stop)
	if len(stopped) != 2 || stopped[0] != 12 || stopped[1] != 12 || w.rolledBack != 0 {
		t.Error(stopped, w.rolledBack)
	}
	s.Ends()
	r.AbortOld(start.Add(time.Minute), stop)
	if len(stopped) != 2 {
		t.Error("the commit was stopped")
	}
	s.Return()
	r.AbortOld(start.Add(time.Minute), stop)
	if len(stopped) != 2 || w.rolledBack != 1 {
		t.Error(stopped, w.rolledBack)
	}
}

// TestEndTogether: of sessions that end together is told once, and of those alone that there were.
func TestEndTogether(t *testing.T) {
	var told []map[string]bool
	c := clock.NewFake(start)
	r := NewRegistry(c, func(ids map[string]bool) { told = append(told, ids) })
	for _, id := range []string{"one", "two", "three"} {
		if err := r.Use(id, c.Now()); err != nil {
			t.Fatal(err)
		}
	}
	r.End("unknown")
	r.End("one", "unknown", "two", "one")
	if len(told) != 1 || len(told[0]) != 2 || !told[0]["one"] || !told[0]["two"] || r.Count() != 1 {
		t.Error(told, r.Count(), "sessions are left")
	}
	c.Advance(Timeout)
	r.Expire(Timeout)
	if len(told) != 2 || !told[1]["three"] || r.Count() != 0 {
		t.Error(told, r.Count(), "sessions are left")
	}
}
