package session

import (
	"context"
	"time"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// State is how far a session's transaction is.
type State uint8

// The states of a transaction.
const (
	// NoTransaction: the session's number is that of a retryable write, or there is none.
	NoTransaction State = iota
	InProgress
	Committed
	Aborted
	// Undetermined is one whose commit was under way when it could not be known any more what becomes of it.
	Undetermined
)

// Work is what a transaction has done and not committed.
type Work interface {
	// Rollback leaves nothing of it.
	Rollback()
}

// Transaction is a session's transaction: the one with the highest number so far.
type Transaction struct {
	// Number is -1 before the first.
	Number int64
	State  State
	// ReadConcern is the one that it began with, as it is shown; "" where that is the plainest.
	ReadConcern string
	// API is what its first statement says of the stable API, "" for nothing. Each other one has to say the same.
	API string
	// Work is nil but in progress.
	Work Work
	// Started is when it began, Expires when it is aborted at the latest, if it is in progress.
	Started, Expires time.Time
}

// Seat is a session in the hands of one operation: nobody else begins, goes on with or ends its transaction meanwhile.
type Seat struct {
	id       string
	session  *live
	registry *Registry
}

// live is a session with what only its Seat touches.
type live struct {
	Session
	seat    chan struct{} // full while somebody has it
	txn     Transaction
	open    *Open // txn as others see it, while it is in progress; what it holds is guarded by the Registry's lock
	history any
	// over says that the session has ended, and seated that it has been checked out once; guarded by the Registry's lock.
	over, seated bool
}

func newLive(id string, now time.Time) *live {
	return &live{Session: Session{id, now, now}, seat: make(chan struct{}, 1), txn: Transaction{Number: -1}}
}

// Checkout gives the session to the caller, when whoever has it gives it back; where there is none it is begun. Return gives it back.
func (r *Registry) Checkout(ctx context.Context, id string) (*Seat, error) {
	for {
		s, err := r.use(id, r.clock.Now())
		if err != nil {
			return nil, err
		}
		if err := s.take(ctx); err != nil {
			return nil, err
		}
		r.mu.Lock()
		is := r.mu.live[id] == s
		s.seated = true
		r.mu.Unlock()
		if is {
			return &Seat{id, s, r}, nil
		}
		<-s.seat // it was over while the caller waited
	}
}

// take waits until nobody has the session. Most often nobody has, and then the context's channel, which may have to be made, is not asked for.
func (s *live) take(ctx context.Context) error {
	select {
	case s.seat <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.seat <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Return gives the session back. Where it has ended meanwhile nothing remains of it.
func (s *Seat) Return() { s.registry.giveBack(s.session) }

func (r *Registry) giveBack(s *live) {
	r.mu.Lock()
	over := s.over
	if over {
		delete(r.mu.live, s.ID)
	}
	r.mu.Unlock()
	if over {
		s.txn.Abort()
	}
	r.settle(s)
	<-s.seat
}

// History is what Keep was given last, nil before.
func (s *Seat) History() any { return s.session.history }

// Keep has the session keep what it has done, number the last of it, until it ends. committed says that it was a transaction.
func (s *Seat) Keep(history any, number int64, committed bool) {
	s.session.history = history
	if t := s.Transaction(); number > t.Number || number == t.Number && t.State == Undetermined && committed {
		*t = Transaction{Number: number}
		if committed {
			t.State = Committed
		}
	}
}

// Transaction is the session's; it is the caller's to change until Return.
func (s *Seat) Transaction() *Transaction { return &s.session.txn }

// Begin starts the transaction with the number. One of a lower number that is in progress is aborted: the client has given it up.
func (s *Seat) Begin(number int64, now, expires time.Time) error {
	t := s.Transaction()
	switch {
	case number < 0:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	case number < t.Number:
		return mongoerr.New(mongoerr.TransactionTooOld, "Cannot start transaction with { txnNumber: %d } on session %s because a newer transaction with txnNumberAndRetryCounter { txnNumber: %d } has already started on this session.",
			number, describe(s.id), t.Number)
	case number == t.Number:
		return mongoerr.New(mongoerr.ConflictingOperationInProgress, "Only servers in a sharded cluster can start a new transaction at the active transaction number")
	}
	t.Abort()
	*t = Transaction{Number: number, State: InProgress, Started: now, Expires: expires}
	s.registry.begun(s.session)
	return nil
}

// Continue says whether a statement of the transaction with the number may run, or its commit or end.
func (s *Seat) Continue(number int64, now time.Time) error {
	t := s.Transaction()
	switch {
	case number < 0:
		return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	case number < t.Number:
		return mongoerr.New(mongoerr.TransactionTooOld, "Cannot continue transaction with { txnNumber: %d } on session %s because a newer transaction with txnNumberAndRetryCounter { txnNumber: %d } has already started on this session.",
			number, describe(s.id), t.Number)
	case number > t.Number || t.State == NoTransaction:
		return mongoerr.New(mongoerr.NoSuchTransaction, "Given transaction number %d does not match any in-progress transactions. The active transaction number is %d", number, t.Number)
	}
	t.expire(now)
	switch t.State {
	case Undetermined: // who asks again may learn it from the next primary
		return mongoerr.New(mongoerr.InterruptedDueToReplStateChange, "operation was interrupted")
	case Aborted:
		return mongoerr.New(mongoerr.NoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", number)
	}
	return nil
}

// Write says whether a retryable write with the number may run. new says that none has run under that number yet: what is in the way
// is aborted, and the number is the session's from then on.
func (s *Seat) Write(number int64) (isNew bool, err error) {
	t := s.Transaction()
	switch {
	case number < 0:
		return false, mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
	case number < t.Number:
		return false, mongoerr.New(mongoerr.TransactionTooOld, "Retryable write with txnNumber %d is prohibited on session %s because a newer retryable write with txnNumber %d has already started on this session.",
			number, describe(s.id), t.Number)
	case number == t.Number && t.State != NoTransaction:
		return false, mongoerr.New(mongoerr.IncompleteTransactionHistory, "Cannot retry a retryable write that has been converted into a transaction")
	case number == t.Number:
		return false, nil
	}
	t.Abort()
	*t = Transaction{Number: number}
	return true, nil
}

// end ends a session, at once or when whoever has it gives it back: nobody else gets it before.
func (r *Registry) end(s *live) {
	r.mu.Lock()
	s.over = true
	r.mu.Unlock()
	select {
	case s.seat <- struct{}{}:
		r.giveBack(s)
	default:
	}
}

// Abort rolls the transaction back, if it is in progress.
func (t *Transaction) Abort() {
	if t.State != InProgress {
		return
	}
	t.State = Aborted
	if t.Work != nil {
		t.Work.Rollback()
		t.Work = nil
	}
}

// Commit is for when what it has done was committed.
func (t *Transaction) Commit() { t.State, t.Work = Committed, nil }

// expire aborts the transaction when its time is over.
func (t *Transaction) expire(now time.Time) {
	if t.State == InProgress && !now.Before(t.Expires) {
		t.Abort()
	}
}

// IfOver runs f, unless the session is alive. Meanwhile nobody gets it.
func (r *Registry) IfOver(id string, f func() error) error {
	r.mu.Lock()
	if r.mu.live[id] != nil {
		r.mu.Unlock()
		return nil
	}
	s := newLive(id, r.clock.Now())
	s.seat <- struct{}{}
	s.over = true
	r.mu.live[id] = s
	r.mu.Unlock()
	defer r.giveBack(s)
	return f()
}
