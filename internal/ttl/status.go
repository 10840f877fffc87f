package ttl

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/index"
	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Status is how reclaim stands for one TTL index or clustered collection. Times are milliseconds since the epoch.
type Status struct {
	NS namespace.NS
	// Index is the index's name, "" for a clustered collection.
	Index string
	// Field is what the deadline counts from: the index's path, "_id" or "_ts".
	Field   string
	Seconds int64
	// Hides says whether what has expired is invisible at once.
	Hides bool
	// Inert says why the index never deletes anything; "" when it does.
	Inert string

	// Oldest is the deadline of the oldest document that is still stored, past or to come; policy.Never when none has one.
	Oldest int64
	// Backlog is how many index entries are due and not deleted yet; at least so many when it is not Exact.
	Backlog int64
	Exact   bool

	// Future is how many documents have a time of their last modification that is still to come, counted up to maxFuture: by a
	// TTL index on _ts they live longer by that.
	Future int64
	// Deleted is how many documents were deleted by this since the server started; LastDeleted, in the last sweep.
	Deleted, LastDeleted int64
	// DeletedEver is how many documents of the collection were deleted because they had expired, by whatever rule, since it was made.
	DeletedEver int64
	// LastSweep is when it was swept last, if Swept; NextSweep is when it will be at the latest, if Planned.
	Swept, Planned       bool
	LastSweep, NextSweep int64
	// Order is how the records lie, where this is the rule that orders them; nil elsewhere.
	Order *Order
	// GraceUntil is when what was due when the TTL was made or shortened may be deleted, if InGrace.
	GraceUntil int64
	InGrace    bool
	// Paused says that nothing is deleted of the collection (collMod ttlPaused).
	Paused bool
	// LastError is what went wrong in the last sweep.
	LastError string
}

// Lag is for how long, in milliseconds, the oldest document has been stored past its deadline.
func (s *Status) Lag(now int64) int64 {
	if s.Oldest >= now {
		return 0
	}
	return now - s.Oldest
}

const (
	// maxBacklog is how far a backlog is counted.
	maxBacklog = 1_000_000
	// maxUnclustered is how far records out of order are counted: their keys lie among the documents, and of those of 300 bytes
	// 100 000 take some 60 ms.
	maxUnclustered = 100_000
	// maxFuture is how far documents modified in the future are counted, and soon how far off a time is no future: others write.
	maxFuture = 100_000
	soon      = 1000 // milliseconds
)

// Status says how reclaim stands in the collections that pick chooses, in the order of the catalogue.
func (m *Monitor) Status(ctx context.Context, view *storage.View, pick func(namespace.NS) bool) ([]Status, error) {
	var out []Status
	for _, coll := range view.Catalog().All() {
		if !hasTTL(coll) || !pick(coll.NS) {
			continue
		}
		r, ok := view.CollectionByID(coll.ID)
		if !ok {
			continue
		}
		rules := r.Rules().All()
		for i := range rules {
			s, err := m.status(ctx, r, &rules[i])
			if err != nil {
				return nil, fmt.Errorf("ttl: status of %s: %w", coll.NS, err)
			}
			out = append(out, s)
		}
		for _, d := range coll.Indexes {
			if _, ok := policy.ForIndex(d); d.TTL && !ok {
				out = append(out, Status{NS: coll.NS, Index: d.Name, Field: d.Fields[0].Path, Seconds: int64(d.ExpireAfterSeconds),
					Oldest: policy.Never, Exact: true, Inert: inert(d)})
			}
		}
	}
	return out, ctx.Err()
}

// inert says why a TTL index never deletes anything.
func inert(d *index.Definition) string {
	return fmt.Sprintf("an index of type %s keeps no dates", d.Kind)
}

func (m *Monitor) status(ctx context.Context, r *storage.Reader, rule *policy.Rule) (s Status, err error) {
	s = Status{NS: r.Catalog().NS, Index: rule.Name(), Field: planField(rule), Seconds: rule.Seconds, Hides: rule.Hides(m.params.HideExpired.Get())}
	if s.Oldest, _, err = r.Dates().Next(rule); err != nil {
		return s, err
	}
	if s.Backlog, err = r.Dates().Count(rule, r.View().Now(), maxBacklog); err != nil {
		return s, err
	}
	s.Exact = s.Backlog < maxBacklog
	if s.DeletedEver, err = r.Expired(); err != nil {
		return s, err
	}
	if s.Future, err = r.Dates().ModifiedAfter(rule, r.View().Now()+soon, maxFuture); err != nil {
		return s, err
	}
	if o := r.Catalog().Order; o != nil && rule.Index != nil && o.Index == rule.Index.ID {
		order, err := m.order(ctx, r)
		if err != nil {
			return s, err
		}
		s.Order = &order
	}
	if until, ok := r.GraceUntil(rule); ok { // which is worth a word where anything is spared
		spared, err := r.Dates().Count(rule, rule.Grace.At, 1)
		if err != nil {
			return s, err
		}
		s.GraceUntil, s.InGrace = until, spared > 0
	}
	s.Paused = r.Catalog().Options.TTLPaused
	held := !m.runs() || s.Paused
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.mu.visited[targetOf(r.Catalog().ID, rule)]; a != nil {
		s.Deleted, s.LastDeleted, s.Swept, s.LastSweep, s.LastError = a.deleted, a.lastDeleted, a.swept, a.lastSweep, a.lastErr
	}
	if !held {
		s.NextSweep, s.Planned = m.nextSweep(r.Catalog().ID)
	}
	return s, nil
}

// standing is how far behind all sweeps are together.
type standing struct {
	lag, backlog int64
	keys         int64 // that were read
	more         bool  // whether there are more targets or entries than were looked at
}

// How much standing looks at: it is asked for every second or so.
const (
	maxStandingTargets = 1000
	maxStandingBacklog = 10_000
	maxStandingKeys    = 50_000
)

// frontFor is how long a front is good for. A document that is dated before it is counted when it is over, if a sweep, which begins
// anew each time, has not deleted it by then.
const frontFor = time.Minute

// fronts are where the living begin among the entries of each target, for standing.
type fronts struct {
	mu    sync.Mutex // held for one standing, which reads so many keys at most
	begun time.Duration
	of    map[Target]*due.Front
}

// at is the front of a target.
func (f *fronts) at(t Target) *due.Front {
	front := f.of[t]
	if front == nil {
		front = &due.Front{}
		f.of[t] = front
	}
	return front
}

// standing is the lag of the document that is stored longest past its deadline, and the backlogs' sum. The entries of what has
// been swept already may be many: it passes so many at a time, and goes on behind them the next time.
func (m *Monitor) standing(ctx context.Context) (t standing, err error) {
	if m.store == nil {
		return t, nil
	}
	targets := 0
	err = m.eachStanding(ctx, func(r *storage.Reader, now int64, front func(*policy.Rule) *due.Front) error {
		if r.Catalog().Options.TTLPaused { // sweeps are not behind with what they are to leave alone
			return nil
		}
		rules := r.Rules().All()
		for i := range rules {
			if targets++; targets > maxStandingTargets {
				t.more = true
				return nil
			}
			if err := t.add(r, &rules[i], now, front(&rules[i]), max(0, maxStandingKeys-t.keys)); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

// eachStanding calls f with a reader of each collection that has a TTL, and with the fronts of its rules.
func (m *Monitor) eachStanding(ctx context.Context, f func(r *storage.Reader, now int64, front func(*policy.Rule) *due.Front) error) error {
	wall, ran := m.clock.Read()
	m.fronts.mu.Lock()
	defer m.fronts.mu.Unlock()
	if m.fronts.of == nil || ran-m.fronts.begun >= frontFor {
		m.fronts.begun, m.fronts.of = ran, map[Target]*due.Front{}
	}
	now := wall.UnixMilli()
	return m.eachCollection(ctx, now, nil, func(r *storage.Reader) error {
		return f(r, now, func(rule *policy.Rule) *due.Front { return m.fronts.at(targetOf(r.Catalog().ID, rule)) })
	})
}

// add reads so many keys of one rule at most.
func (t *standing) add(r *storage.Reader, rule *policy.Rule, now int64, f *due.Front, keys int64) error {
	limit := max(1, maxStandingBacklog+1-t.backlog) // one for the lag
	s, err := r.Dates().Standing(rule, now, f, keys, limit)
	if s.Oldest < now {
		t.lag = max(t.lag, now-s.Oldest)
	}
	t.keys += s.Keys
	t.more = t.more || !s.All || t.backlog+s.Due > maxStandingBacklog
	t.backlog = min(t.backlog+s.Due, maxStandingBacklog)
	return err
}

// nextSweep is when the loop looks at the collection at the latest, if nothing holds it up.
func (m *Monitor) nextSweep(collection uint32) (at int64, ok bool) {
	if !m.mu.passes.started {
		return 0, false
	}
	wall, now := m.clock.Read()
	on := func(ran time.Duration) int64 { return wall.Add(ran - now).UnixMilli() }
	at = on(m.mu.lastFull + m.params.sleep())
	if m.params.Precise.Get() {
		at = min(at, max(m.mu.agenda.of(collection), on(m.mu.rested)))
	}
	return max(at, wall.UnixMilli()), true
}
