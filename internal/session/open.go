package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/operation"
)

// Open is a transaction in progress as others see it.
type Open struct {
	// Session is the id of its session.
	Session          string
	Number           int64
	Started, Expires time.Time
	// ReadConcern is the level that its first statement has asked for, "" for none.
	ReadConcern string
	// ReadTimestamp is the cluster time that it reads as of, 0 where it has not asked for one state.
	ReadTimestamp uint64
	// Client sent the last statement. Operation is the id of the one that is at it, 0 while none is.
	Client    *operation.Client
	Operation int64
	// Stats is what the operations before that one did together.
	Stats *operation.Stats

	at     *operation.Operation
	since  time.Time     // when it began
	active time.Duration // of those before
	ending bool          // it is being committed, which its lifetime does not stop
}

// Active is how long operations were at it until now.
func (o *Open) Active(now time.Time) time.Duration {
	if o.Operation == 0 {
		return o.active
	}
	return o.active + now.Sub(o.since)
}

// Counts are those of all transactions so far, and how long those that are over were open together.
type Counts struct{ Started, Committed, Aborted, Micros atomic.Int64 }

// Counts is how many transactions there were.
func (r *Registry) Counts() *Counts { return &r.counts }

// Open is every transaction in progress.
func (r *Registry) Open() []Open {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Open, 0, len(r.mu.open))
	for s := range r.mu.open {
		all = append(all, *s.open)
	}
	return all
}

// begun is for when the session's transaction has begun.
func (r *Registry) begun(s *live) {
	r.settle(s) // the one before
	r.counts.Started.Add(1)
	s.open = &Open{Stats: &operation.Stats{}, Session: s.ID, Number: s.txn.Number, Started: s.txn.Started, Expires: s.txn.Expires}
	r.mu.Lock()
	r.mu.open[s] = true
	r.mu.Unlock()
}

// Attend shows others that o is at the session's transaction, if one is in progress, until Return. readConcern is what it asks for.
func (s *Seat) Attend(o *operation.Operation, readConcern string) {
	s.show(func(open *Open) {
		open.Client, open.Operation, open.at, open.since = o.Client, o.ID, o, s.registry.clock.Now()
		if open.ReadConcern == "" {
			open.ReadConcern = readConcern
		}
	})
}

// show changes what others see of the session's transaction, if one is in progress.
func (s *Seat) show(change func(*Open)) {
	open := s.session.open
	if open == nil {
		return
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	change(open)
}

// Ends has the lifetime of the session's transaction not stop the operation that is about to commit it: what it answered then would leave open
// whether the transaction is committed.
func (s *Seat) Ends() { s.show(func(o *Open) { o.ending = true }) }

// ReadAt shows others as of which cluster time the session's transaction reads, if one is in progress.
func (s *Seat) ReadAt(clusterTime uint64) {
	s.show(func(o *Open) { o.ReadTimestamp = clusterTime })
}

// settle is for when nobody is at the session's transaction any more: it waits for its next statement, or it is over.
func (r *Registry) settle(s *live) {
	if s.open == nil { // which only who has the session changes
		return
	}
	o := s.open
	over, committed := s.txn.State != InProgress || s.txn.Number != o.Number, s.txn.State == Committed && s.txn.Number == o.Number
	now := r.clock.Now()
	r.mu.Lock()
	if o.at != nil {
		o.Stats.Add(&o.at.Stats)
	}
	o.active, o.Operation, o.at = o.Active(now), 0, nil
	if over {
		s.open = nil
		delete(r.mu.open, s)
	}
	r.mu.Unlock()
	if !over {
		return
	}
	r.counts.Micros.Add(now.Sub(o.Started).Microseconds())
	if committed {
		r.counts.Committed.Add(1)
	} else {
		r.counts.Aborted.Add(1)
	}
	if r.Over != nil {
		r.Over(o, committed)
	}
}

// AbortOld aborts the transactions in progress whose time is over. Where an operation is at one, that is told to stop, which ends the
// transaction, unless it commits it.
func (r *Registry) AbortOld(now time.Time, stop func(operation int64)) {
	r.each(func(s *live) { s.txn.expire(now) }, func(o *Open) {
		if !o.ending && !now.Before(o.Expires) {
			stop(o.Operation)
		}
	})
}

// AbortAll aborts all transactions in progress. Where an operation is at one, that is told to stop.
func (r *Registry) AbortAll(stop func(operation int64)) {
	r.each(func(s *live) { s.txn.Abort() }, func(o *Open) { stop(o.Operation) })
}

// each calls f with each session whose transaction is in progress and that nobody has, and busy with what the others do.
func (r *Registry) each(f func(*live), busy func(*Open)) {
	for _, s := range r.inProgress() {
		select {
		case s.seat <- struct{}{}:
			f(s)
			r.giveBack(s)
			continue
		default:
		}
		r.mu.Lock()
		var o Open
		if r.mu.open[s] {
			o = *s.open
		}
		r.mu.Unlock()
		if o.Operation != 0 {
			busy(&o)
		}
	}
}

func (r *Registry) inProgress() []*live {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*live, 0, len(r.mu.open))
	for s := range r.mu.open {
		all = append(all, s)
	}
	return all
}

// Abort aborts the transactions in progress of the sessions chosen; where somebody has one, when he gives it back.
func (r *Registry) Abort(ctx context.Context, chosen func(id string) bool) error {
	for _, s := range r.inProgress() {
		if !chosen(s.ID) {
			continue
		}
		select {
		case s.seat <- struct{}{}:
			s.txn.Abort()
			r.giveBack(s)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
