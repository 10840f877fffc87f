package storage

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryclock"
	"github.com/ebbdb/ebb/internal/storage/header"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/meaning"
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
	if err := t.Commit(ctx, d); err != nil {
		return fmt.Errorf("storage: keep a time: %w", err)
	}
	return nil
}
