package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
	"github.com/ebbdb/ebb/internal/mongoerr"
)

type work struct{ rolledBack int }

func (w *work) Rollback() { w.rolledBack++ }

// nobody is who stops operations where there are none.
func nobody(int64) { panic("there is an operation") }

var start = time.UnixMilli(1e12)

// codes runs operations in a session and tells of each 0 or the code of its error: s starts a transaction, o goes on with it, c commits,
// u commits and is not told what becomes of it, a aborts, w is a retryable write; a digit changes the number, which is 1 at first.
func codes(t *testing.T, operations string) string {
	t.Helper()
	r := NewRegistry(clock.NewFake(start), func(map[string]bool) {})
	id, err := r.Start("")
	if err != nil {
		t.Fatal(err)
	}
	number := int64(1)
	var out []string
	for _, op := range operations {
		if op >= '0' && op <= '9' {
			number = int64(op - '0')
			continue
		}
		if op == '-' {
			number = -1
			continue
		}
		s, err := r.Checkout(context.Background(), id)
		if err != nil {
			t.Fatal(err)
		}
		switch op {
		case 's':
			if err = s.Begin(number, start, start.Add(time.Minute)); err == nil {
				s.Transaction().Work = &work{}
			}
		case 'w':
			_, err = s.Write(number)
		default:
			err = s.Continue(number, start)
			switch txn := s.Transaction(); {
			case err != nil:
			case op == 'c':
				txn.Commit()
			case op == 'u':
				txn.State, txn.Work = Undetermined, nil
			case txn.State == Committed:
				err = mongoerr.New(mongoerr.TransactionCommitted, "")
			case op == 'a':
				txn.Abort()
			}
		}
		s.Return()
		code := mongoerr.Code(0)
		if err != nil {
			code = mongoerr.From(err).Code
		}
		out = append(out, fmt.Sprint(int(code)))
	}
	return strings.Join(out, " ")
}

// TestTransactionStates: what may follow what, as MongoDB has it.
func TestTransactionStates(t *testing.T) {
	for operations, want := range map[string]string{
		"s": "0", "o": "251", "c": "251", "a": "251", "ss": "0 117", "so": "0 0", "sc": "0 0", "sa": "0 0", "os": "251 0",
		"sco": "0 0 256", "scc": "0 0 0", "sca": "0 0 256", "scs": "0 0 117", "sao": "0 0 251", "sac": "0 0 251", "saa": "0 0 251", "sas": "0 0 117",
		"w": "0", "ww": "0 0", "sw": "0 217", "ws": "0 117", "wc": "0 251", "wa": "0 251", "cw": "251 0",
		"1s2c": "0 251", "2s1o": "0 225", "1s2s": "0 0", "2s1s": "0 225", "1s2s1c": "0 0 225", "1sc2s": "0 0 0", "2w1w": "0 225", "1s2w": "0 0", "2w1s": "0 225",
		"suc": "0 0 11602", "suo": "0 0 11602", "sua": "0 0 11602", "su2s": "0 0 0", "suw": "0 0 217",
		"-s": "72", "-o": "72", "-w": "72",
	} {
		if got := codes(t, operations); got != want {
			t.Errorf("%s: %s, want %s", operations, got, want)
		}
	}
}

// TestTransactionsEnd: what is in progress is rolled back once, whatever ends it.
func TestTransactionsEnd(t *testing.T) {
	for name, end := range map[string]func(*Registry, string, *clock.Fake){
		"a newer one": func(r *Registry, id string, _ *clock.Fake) {
			s, _ := r.Checkout(context.Background(), id)
			defer s.Return()
			_ = s.Begin(2, start, start.Add(time.Minute))
		},
		"a newer write": func(r *Registry, id string, _ *clock.Fake) {
			s, _ := r.Checkout(context.Background(), id)
			defer s.Return()
			_, _ = s.Write(2)
		},
		"its time is over": func(r *Registry, _ string, c *clock.Fake) {
			r.AbortOld(start.Add(time.Minute-1), nobody)
			c.Advance(time.Minute)
			r.AbortOld(c.Now(), nobody)
		},
		"a late statement": func(r *Registry, id string, _ *clock.Fake) {
			s, _ := r.Checkout(context.Background(), id)
			defer s.Return()
			_ = s.Continue(1, start.Add(time.Minute))
		},
		"the session ends": func(r *Registry, id string, _ *clock.Fake) { r.End(id) },
		"all are aborted":  func(r *Registry, _ string, _ *clock.Fake) { r.AbortAll(nobody) },
	} {
		c := clock.NewFake(start)
		r := NewRegistry(c, func(map[string]bool) {})
		id, err := r.Start("")
		if err != nil {
			t.Fatal(err)
		}
		w := &work{}
		s, err := r.Checkout(context.Background(), id)
		if err := errors.Join(err, s.Begin(1, start, start.Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		s.Transaction().Work = w
		s.Return()
		end(r, id, c)
		r.AbortAll(nobody)
		if w.rolledBack != 1 {
			t.Errorf("%s: rolled back %d times", name, w.rolledBack)
		}
	}
}

// TestCheckout: one operation at a time has a session, and nobody waits longer than his operation may take. One that ends meanwhile is
// left to who has it.
func TestCheckout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(clock.NewFake(start), func(map[string]bool) {})
		id, err := r.Start("")
		if err != nil {
			t.Fatal(err)
		}
		first, err := r.Checkout(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		refused := errors.New("patience")
		cancel(refused)
		if _, err := r.Checkout(ctx, id); err != refused {
			t.Error(err)
		}
		w := &work{}
		if err := first.Begin(1, start, start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		first.Transaction().Work = w
		r.AbortAll(nobody) // but what somebody is at
		done := make(chan struct{})
		go func() {
			defer close(done)
			second, err := r.Checkout(context.Background(), id)
			if err != nil {
				t.Error(err)
				return
			}
			second.Return()
		}()
		synctest.Wait()
		r.End(id)
		synctest.Wait()
		select {
		case <-done:
			t.Error("two have the session")
		default:
		}
		if w.rolledBack != 0 {
			t.Error("rolled back while somebody is at it")
		}
		first.Return()
		<-done
		synctest.Wait()
		if w.rolledBack != 1 {
			t.Error("not rolled back at its end")
		}
		third, err := r.Checkout(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if third.Transaction().Number != -1 || third.History() != nil {
			t.Error("a session that has ended and begun again knows what it was")
		}
		third.Return()
	})
}

// TestIfOver: what is done when a session is over is done for one that nobody has, and nobody gets it meanwhile.
func TestIfOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(clock.NewFake(start), func(map[string]bool) {})
		id, err := r.Start("")
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		over := func() error { count++; return nil }
		if err := r.IfOver(id, over); err != nil || count != 0 {
			t.Error("a session alive is over", err)
		}
		r.End(id)
		had := make(chan struct{})
		if err := r.IfOver(id, func() error {
			go func() {
				defer close(had)
				s, err := r.Checkout(context.Background(), id)
				if err != nil {
					t.Error(err)
					return
				}
				s.Keep("history", 7, true)
				s.Return()
			}()
			synctest.Wait()
			select {
			case <-had:
				t.Error("somebody got it meanwhile")
			default:
			}
			return over()
		}); err != nil || count != 1 {
			t.Error(count, err)
		}
		<-had
		if r.Count() != 1 {
			t.Error(r.Count(), "sessions")
		}
		s, err := r.Checkout(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if txn := s.Transaction(); s.History() != "history" || txn.Number != 7 || txn.State != Committed {
			t.Error(s.History(), *txn)
		}
		s.Return()
	})
}
