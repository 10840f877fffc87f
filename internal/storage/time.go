package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
	"github.com/ebbdb/ebb/internal/storage/ownership"
)

// What the store keeps about time, all in milliseconds since the epoch:
//
//   - the latest time that was seen, which whoever opens it compares with the clock;
//   - where the clock of expiry stands still, while expiry is held: what expires after that is hidden by no rule.

// TimeSeen is the latest time that was kept before the store was opened; ok is false when none was.
func (s *Store) TimeSeen() (millis int64, ok bool) { return s.seen, s.seen != 0 }

// NoteTime keeps the latest time that was seen.
func (s *Store) NoteTime(ctx context.Context, millis int64) error {
	return s.keepTime(ctx, layout.MetaTime, millis, kv.Buffered)
}

// HeldAt is where the clock of expiry stands still; held is false when it goes on.
func (s *Store) HeldAt() (millis int64, held bool) {
	return s.expiryClock.Held()
}

// ExpiryTime is up to when what has expired is hidden at the moment, by rules that are not about to change.
func (s *Store) ExpiryTime() int64 { return s.expiryClock.Time() }

// StandStill keeps all others from writing to the collections with a TTL, and from changing the catalogue, and has time stand still for
// what readers see, until goOn is called. all are those collections.
func (s *Store) StandStill(ctx context.Context) (all []Collection, goOn func(), err error) {
	for {
		found := s.withTTL()
		release, err := lockAll(ctx, found)
		if err != nil {
			return nil, nil, err
		}
		if err := s.own.Catalog().Acquire(ctx, ownership.Exclusive); err != nil {
			release()
			return nil, nil, err
		}
		if slices.Equal(found, s.withTTL()) {
			for _, c := range found {
				all = append(all, s.handle(c))
			}
			thaw := s.expiryClock.FreezeAll()
			return all, func() { thaw(); s.own.Catalog().Release(ownership.Exclusive); release() }, nil
		}
		s.own.Catalog().Release(ownership.Exclusive) // another collection has got a TTL meanwhile
		release()
	}
}

// WithTTL are the collections from which something may expire.
func (s *Store) WithTTL() (all []Collection) {
	for _, c := range s.withTTL() {
		all = append(all, s.handle(c))
	}
	return all
}

func (s *Store) withTTL() (found []*collection) {
	v := s.current.Load()
	for _, entry := range v.catalog.All() {
		if c := v.collections[entry.ID]; c != nil && c.rules.Any() {
			found = append(found, c)
		}
	}
	return found
}

// Hold has the clock of expiry stand still at a time, from the views on that begin after it, and for whoever opens the store
// next, until Release.
func (s *Store) Hold(ctx context.Context, millis int64) error {
	if millis == expiryclock.NotHeld || millis == 0 { // which mean that nothing is held; a millisecond more or less does not matter
		millis--
	}
	before := s.expiryClock.Hold(millis)
	if err := s.keepTime(ctx, layout.MetaHold, millis, kv.Synced); err != nil {
		s.expiryClock.Hold(before)
		return err
	}
	return nil
}

// Release has the clock of expiry go on.
func (s *Store) Release(ctx context.Context) error {
	return s.keepTime(ctx, layout.MetaHold, expiryclock.NotHeld, kv.Synced)
}

// keepTime stores one of the times; expiryclock.NotHeld removes it.
func (s *Store) keepTime(ctx context.Context, which byte, millis int64, d kv.Durability) error {
	t, err := s.engine.Begin()
	if err != nil {
		return fmt.Errorf("storage: keep a time: %w", err)
	}
	header.SetTime(t, which, millis)
	if which == layout.MetaHold {
		t.Mean(&meaning.Meaning{Hold: &millis})
	}
	if err := atLast(ctx, func() error { return t.Commit(ctx, d) }); err != nil {
		return fmt.Errorf("storage: keep a time: %w", err)
	}
	return nil
}

// StandStillForOthers has nothing become hidden to those who read other copies of the store, until goOn is called or some time has passed. upTo is when what
// has expired may be hidden there already.
func (s *Store) StandStillForOthers() (upTo int64, goOn func()) {
	c, ok := s.options.Clock.(CommitClock)
	if !ok {
		return math.MinInt64, func() {}
	}
	upTo, goOn = c.StandStill()
	if held, ok := s.expiryClock.Held(); ok {
		upTo = min(upTo, held)
	}
	return upTo, goOn
}
