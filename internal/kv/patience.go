package kv

import (
	"context"
	"errors"
	"time"

	"github.com/ebbdb/ebb/internal/clock"
)

// Patience is how long an operation waits to learn what becomes of a Commit that others have to have before anybody sees it. When its context
// ends, or Timeout has passed, the Commit is left: it is ordered, and will be visible, or never be there, whoever waits. It is for one goroutine.
type Patience struct {
	// Timeout is measured by Clock; 0: only the context ends it.
	Timeout time.Duration
	Clock   clock.Clock
	// Left is why a Commit was left; nil: none was. The operation must not write more then, for it would not see what it has written.
	Left error
	// Settled is closed when it is known what became of the Commit, and all that its transaction held is given back.
	Settled <-chan struct{}
	// Over, unless nil, is for a writer that waits on by itself while whoever it writes for does not: no Commit is left, but once one is waited for that
	// long Over is called with why, before the wait goes on, by the goroutine that waits.
	Over func(why error)
}

// ErrImpatient is why a Commit is left after Patience.Timeout. Where one returns it itself, it has waited for its turn for so long and has written nothing.
var ErrImpatient = errors.New("kv: the commit has taken longer than its writer waits")

// Unsettled is what Commit returns where Patience has ended. The transaction has not: Settle ends it, which waits until it is known what became of
// the Commit, and returns what Commit would have. It must be called, by any goroutine.
type Unsettled struct {
	Why    error
	Settle func() error
}

func (u *Unsettled) Error() string {
	return "kv: it is not known yet what becomes of the commit: " + u.Why.Error()
}

// Is says that it is ErrUndetermined.
func (u *Unsettled) Is(target error) bool { return target == ErrUndetermined }

// Then has f be called with what Settle returns, whose own result takes its place.
func (u *Unsettled) Then(f func(error) error) *Unsettled {
	settle := u.Settle
	return &Unsettled{u.Why, func() error { return f(settle()) }}
}

// Late is the ErrUndetermined of a Commit that the engine goes on with, though it has told its writer: it becomes visible by itself, or never.
type Late struct {
	Why error
	// Visible is sent once which of them it is, when it is known. It is not where the engine is closed before, or fails.
	Visible <-chan bool
}

func (l *Late) Error() string { return ErrUndetermined.Error() + ": " + l.Why.Error() }

// Is says that it is ErrUndetermined.
func (l *Late) Is(target error) bool { return target == ErrUndetermined }

// Unwrap is why.
func (l *Late) Unwrap() error { return l.Why }

type patienceKey struct{}

// WithPatience has a Commit wait no longer than p.
func WithPatience(ctx context.Context, p *Patience) context.Context {
	return context.WithValue(ctx, patienceKey{}, p)
}

// BeforeOver has f be called before the Over of ctx's Patience, if there is one.
func BeforeOver(ctx context.Context, f func()) context.Context {
	p := PatienceOf(ctx)
	if p == nil || p.Over == nil {
		return ctx
	}
	q := *p
	q.Over = func(why error) {
		f()
		p.Over(why)
	}
	return WithPatience(ctx, &q)
}

// PatienceOf is that of WithPatience; nil: Commit waits as long as need be.
func PatienceOf(ctx context.Context) *Patience {
	p, _ := ctx.Value(patienceKey{}).(*Patience)
	return p
}
