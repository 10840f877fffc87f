package storage

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/serverlog"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/witness"
)

// An operation whose patience (kv.Patience) ends while a commit waits for others to have it is answered, and what it has begun goes on without it. What the
// commit was made under (locks, a snapshot) is held until it is known what became of it, for whoever came next would not see what it has written.
// There are two ways:
//
//   - A write is one commit, and there are many: it is made by the operation itself, which leaves it to a goroutine that waits for its end (Store.leave).
//   - What changes definitions has steps before that commit and after it. A goroutine of its own takes all of them (Apart), and waits for each commit
//     as long as need be; the operation waits for that goroutine, or no longer.

// errLeft is for a write of an operation that has left a commit: it would not see what the operation has written before.
func errLeft(why error) error {
	if why == kv.ErrImpatient {
		return mongoerr.New(mongoerr.WriteConcernTimeout, "nothing was written, for what was written before still waits for a majority of the members")
	}
	return why
}

// leave has a commit be settled whoever waits, and what is held for it let go then.
func (s *Store) leave(p *kv.Patience, u *kv.Unsettled, letGo func()) {
	settled := make(chan struct{})
	p.Left, p.Settled = u.Why, settled
	s.unsettled.Go(func() {
		defer close(settled)
		defer letGo()
		_ = u.Settle() // nobody is there any more who could be told
	})
}

// apart is what Apart knows of what it runs. Only the goroutine that runs that touches it.
type apart struct {
	last bool // the last commit is on its way
	gone bool // nobody waits for it any more
}

type apartKey struct{}

// answer is what Apart returns, or panics with. left is why it was not waited for longer, nil where it was.
type answer[R any] struct {
	done      R
	err, left error
	panicked  any
}

// Apart runs f, and returns what f puts into its result, and its error. f makes commits, the last of them by ChangeLast. Where ctx has a patience f is run by
// a goroutine of its own, and may be returned from before it has ended, when one of its commits is waited for that long; ctx's patience says so then. If
// that commit is the last, the change stands, and the result is returned as it is by then. If it is another, the error is that of the patience, and f is to undo
// what it has begun: its context has ended, and it makes no other commit. What belongs to the operation f must not touch once its context has ended.
func Apart[R any](ctx context.Context, s *Store, f func(context.Context, *R) error) (R, error) {
	p := kv.PatienceOf(ctx)
	if p == nil || p.Over != nil { // a step of what is run apart already, whose last commit is another
		done := new(R)
		err := f(context.WithValue(ctx, apartKey{}, (*apart)(nil)), done)
		return *done, err
	}
	if p.Left != nil {
		return *new(R), errLeft(p.Left)
	}
	answers, settled := make(chan answer[R], 1), make(chan struct{})
	s.unsettled.Go(func() {
		defer close(settled)
		runApart(ctx, s, p, f, answers)
	})
	a := <-answers
	if a.left != nil {
		p.Left, p.Settled = a.left, settled
	}
	if a.panicked != nil {
		panic(a.panicked)
	}
	return a.done, a.err
}

// runApart sends one answer: when f has ended, or when p is over before.
func runApart[R any](ctx context.Context, s *Store, p *kv.Patience, f func(context.Context, *R) error, answers chan<- answer[R]) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	state, done := &apart{}, new(R)
	within = kv.WithPatience(within, &kv.Patience{Timeout: p.Timeout, Clock: p.Clock, Over: func(why error) {
		if state.gone {
			return
		}
		a := answer[R]{left: why, err: errLeft(why)}
		if state.last {
			a.done, a.err = *done, nil
		}
		state.gone = true
		cancel(errLeft(why))
		answers <- a
	}})
	within = witness.With(within, func(c witness.Commit) {
		if !state.gone {
			witness.Tell(ctx, c)
		}
	})
	defer func() {
		panicked := recover()
		s.logPanic(panicked)
		if panicked != nil && !state.gone {
			answers <- answer[R]{panicked: panicked}
		}
	}()
	err := f(context.WithValue(within, apartKey{}, state), done)
	if errors.Is(err, kv.ErrImpatient) { // it has waited for its turn that long
		err = errLeft(kv.ErrImpatient)
	}
	if !state.gone {
		answers <- answer[R]{done: *done, err: err}
	}
}

// logPanic tells the log what a goroutine has panicked with that works for an operation, nil for nothing.
func (s *Store) logPanic(panicked any) {
	if panicked != nil {
		s.options.Logger.Error("a change of definitions panicked", "panic", serverlog.Panic(panicked), serverlog.Stack())
	}
}

// Afterwards runs f, which follows what an operation has committed, or undoes it, and is not waited for longer than that. Where the operation has left a
// commit f is run by another goroutine when it is known what became of that, and where the operation has ended as well; f must not touch the operation then.
func (s *Store) Afterwards(ctx context.Context, f func(context.Context)) {
	p := kv.PatienceOf(ctx)
	switch {
	case p == nil:
		f(context.WithoutCancel(ctx))
	case p.Left == nil && ctx.Err() == nil:
		f(ctx)
	default:
		settled := p.Settled
		s.unsettled.Go(func() {
			defer func() { s.logPanic(recover()) }()
			if settled != nil {
				<-settled
			}
			f(context.Background())
		})
	}
}

// ChangeLast is Change for the last commit of what is run Apart: once it is on its way the change stands, whoever waits for it.
func (s *Store) ChangeLast(ctx context.Context, f func(*catalogchange.Change) error) error {
	return atLast(ctx, func() error { return s.Change(ctx, f) })
}

// atLast runs commit, which is the last of what is run Apart.
func atLast(ctx context.Context, commit func() error) error {
	if state, _ := ctx.Value(apartKey{}).(*apart); state != nil {
		state.last = true
		defer func() { state.last = false }()
	}
	return commit()
}
