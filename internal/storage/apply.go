package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/multikey"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// What the store has in memory follows from the Commits that the engine has ordered, and apply is where it does: for a Commit
// that was written here, and for one that comes from elsewhere by Store.Apply. The catalogue that is published, multikey bits,
// date histograms, what is known of tombstones, sweeps and moved records, numbers of records: nobody else changes those, but for
// a writer that looks ahead. Whoever writes holds the locks of the collections meanwhile; Store.Apply takes them.
//
// It is called twice for each Commit, in the order of the Commits, while nobody else commits. So what readers have to be careful
// about is there before they can see its cause, and what they may rely on only after. Those outside of the store are told last
// (tell), when the engine lets others commit again: what they do may take long.

// stage is when apply is called.
type stage bool

const (
	ordered stage = false // nobody sees the Commit yet
	visible stage = true  // whoever begins to read sees it
)

// observer is the store as the engine knows it.
type observer struct{ store *Store }

func (o observer) Now() int64           { return o.store.commitTime() }
func (o observer) Ordered(c *kv.Commit) { o.store.apply(c, ordered) }
func (o observer) Visible(c *kv.Commit) { o.store.apply(c, visible) }

// Appears has whoever begins to read while the Commit becomes visible wait for that, where half of it would be the catalogue.
func (o observer) Appears(c *kv.Commit) {
	if m, ok := c.Meaning.(*meaning.Meaning); ok && m != nil {
		o.store.current.Turn(m)
	}
}

// apply brings what is in memory up to date with a Commit.
func (s *Store) apply(c *kv.Commit, at stage) {
	if m, ok := c.Meaning.(*meaning.Meaning); ok && m != nil {
		m.Number = c.Number
		if at == ordered {
			m.Fill(c, &s.logClock)
			s.logClock.Follow(m.Timestamp)
			s.turn(m)
		} else if m.Timestamp != 0 {
			wake := s.logWatches.Tell(m, s.Catalog())
			s.logClock.Show(m.Timestamp) // behind what knows of it, and before who is woken looks
			for _, next := range wake {
				close(next)
			}
		}
		v := s.current.Coming()
		for _, change := range m.Changes {
			if c := v.collections[change.Collection]; c == nil {
				continue // of what is dropped nothing is in memory
			} else if at == ordered {
				s.expect(c, change)
			} else {
				s.follow(c, change)
			}
		}
		if at == visible {
			if old, next, changed := s.current.Publish(); changed {
				old.tellOfChange(next)
			}
		}
		if at == visible && m.Hold != nil {
			s.expiryClock.Hold(*m.Hold)
		}
	}
	if at == visible && s.options.OnCommit != nil {
		s.options.OnCommit(c)
	}
}

// expect does what has to be done before the change can be seen.
func (s *Store) expect(c *collection, change *meaning.Change) {
	for _, m := range change.Multikey {
		if stored := c.multikeyOf(m.Index); stored != nil {
			stored.Store(m.Stored)
		}
	}
	if change.Tombstones == meaning.TombstonesSet {
		c.state.tombstones.Set()
	}
	c.state.relocations.Begin(change.Moved)
	if c.order != nil && change.HasDocuments() {
		change.AddToHistogram(c.order)
	}
	c.state.own.Follow(change)
}

// follow does what may be relied on when the change can be seen.
func (s *Store) follow(c *collection, change *meaning.Change) {
	if len(change.Sweeps) > 0 {
		c.state.lastSweep.Store(s.sweeps.Add(1)) // before the floors rise, see Reader.floor
	}
	if change.Tombstones == meaning.TombstonesDeleted {
		c.state.tombstones.Deleted(&s.sweeps)
	}
	for _, swept := range change.Sweeps {
		if c.order != nil {
			c.order.Histogram.Swept(swept.Span, swept.Date, swept.All, swept.Spared)
		}
	}
	c.state.own.Follow(change) // again, for who has looked since it was ordered
	c.state.writes.Add(1)
	if change.Trimmed != nil {
		c.state.trimmed = change.Trimmed
	}
	c.state.relocations.End(change.Moved, &s.relocations)
	if change.Inserted && c.Options.Capped {
		c.state.inserts.tell()
	}
}

// turn finds what the commit makes of the catalogue: what it does to documents may be in collections that it makes itself. Whoever
// begins to read while both become visible waits for that, where it does both.
func (s *Store) turn(m *meaning.Meaning) {
	old := s.current.Load()
	if m.DDL == nil || len(m.DDL.Steps) == 0 {
		s.current.Expect(old, false)
		return
	}
	s.current.Expect(old.next(m.DDL.ApplyTo(old.catalog), true, m.DDL.MultikeyOf), slices.ContainsFunc(m.Changes, func(c *meaning.Change) bool {
		return old.oplog == nil || c.Collection != old.oplog.ID
	}))
}

// tell tells those outside of the store of what has been committed.
func (s *Store) tell(m *meaning.Meaning) {
	if m == nil {
		return
	}
	if m.DDL != nil {
		for _, e := range m.DDL.Events {
			s.options.OnDDL(e)
		}
	}
	for _, change := range m.Changes {
		if change.Earliest != math.MaxInt64 {
			s.options.OnDeadline(change.Collection, change.Earliest)
		}
	}
}

// later calls over when it is known what became of a Commit.
func (s *Store) later(late *kv.Late, over func(visible bool)) {
	s.unsettled.Go(func() {
		select {
		case visible := <-late.Visible:
			over(visible)
		case <-s.closing.Done():
		}
	})
}

// Apply commits what another store has committed: c is its next Commit, with the number that it has there. It holds the locks
// that its writer held, so that what works here at the collections meanwhile finds them as a writer leaves them.
func (s *Store) Apply(ctx context.Context, c *kv.Commit, d kv.Durability) error {
	m, err := meaning.Decode(c, s.Catalog(), s.options.Indexes)
	if err != nil {
		return err
	}
	release, err := s.lockToApply(ctx, m)
	if err != nil {
		return err
	}
	defer release()
	own := *c
	if m != nil {
		own.Meaning = m
	}
	if err := s.engine.Apply(ctx, &own, d); err != nil {
		if m != nil && m.DDL != nil {
			s.current.Fail(m)
		}
		return fmt.Errorf("storage: apply commit %d: %w", c.Number, err)
	}
	s.tell(m)
	return nil
}

// lockToApply takes the locks of the collections that a Meaning is about and, if it changes the catalogue, that of the catalogue.
func (s *Store) lockToApply(ctx context.Context, m *meaning.Meaning) (release func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	var touched []*collection
	v := s.current.Load()
	for _, change := range m.Changes {
		touched = append(touched, v.collections[change.Collection])
	}
	if m.DDL == nil {
		return lockAll(ctx, touched)
	}
	for _, step := range m.DDL.Steps {
		if step.Put != nil {
			touched = append(touched, v.collections[step.Put.ID])
		} else {
			touched = append(touched, v.collections[step.Drop])
		}
	}
	unlock, err := lockAll(ctx, touched)
	if err != nil {
		return nil, err
	}
	if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
		unlock()
		return nil, err
	}
	return func() { s.own.Catalog().Release(ownership.Exclusive); unlock() }, nil
}

// multikeyOf is the bits of an index by its number, ready or on its way; nil where there is none.
func (c *collection) multikeyOf(number uint32) *multikey.Index {
	if ix := c.index(number); ix != nil {
		return ix.Multikey
	}
	for _, b := range c.state.building() {
		for _, t := range b.Tables {
			if t.ID == number {
				return t.Multikey
			}
		}
	}
	return nil
}
