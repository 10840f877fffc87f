package storage

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/mongoerr"
)

// hiding is what a view has to know of the server's ttlHideExpired.
type hiding struct {
	all bool
	// frozen is the time after which nothing becomes hidden any more, in milliseconds, or 0: see StopHiding, and Hold.
	frozen int64
}

// hiding is read before the snapshot of a view is taken, and frozen before all: so a view that hides nothing by the parameter
// has a snapshot in which what was hidden is deleted, and one that does not know that time stands still is older than that.
func (s *Store) hiding() hiding {
	frozen := s.frozen.Load()
	if hold := s.hold.Load(); hold != notHeld && (frozen == 0 || hold < frozen) {
		frozen = hold
	}
	return hiding{s.options.HideExpired(), frozen}
}

// StopHiding calls set, after which the server's ttlHideExpired hides nothing. What was hidden is deleted before: it does not
// come back. From the last deletion on until set has returned nobody writes to collections with a TTL, and time stands still
// for what readers can see.
func (s *Store) StopHiding(ctx context.Context, set func() error) error {
	if err := s.expireAmongWriters(ctx); err != nil { // most of it
		return err
	}
	for {
		done, err := s.stopHiding(ctx, set)
		if done || err != nil {
			return err
		}
	}
}

func (s *Store) expireAmongWriters(ctx context.Context) error {
	for _, c := range s.withTTL() {
		for _, rule := range c.rules.All() {
			err := s.expireBeside(ctx, c, &rule, s.hidingTime())
			if err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				return err
			}
		}
	}
	return nil
}

// withTTL are the collections from which something may expire.
func (s *Store) withTTL() (found []*collection) {
	v := s.current.Load()
	for _, entry := range v.catalog.All() {
		if c := v.collections[entry.ID]; c != nil && c.rules.Any() {
			found = append(found, c)
		}
	}
	return found
}

// stopHiding is not done when another collection has got a TTL meanwhile.
func (s *Store) stopHiding(ctx context.Context, set func() error) (done bool, err error) {
	all := s.withTTL()
	release, err := lockAll(ctx, all)
	if err != nil {
		return false, err
	}
	defer release()
	if err := s.ddl.lock.acquire(ctx, true); err != nil {
		return false, err
	}
	defer s.ddl.lock.release(true)
	if !slices.Equal(all, s.withTTL()) {
		return false, nil
	}
	s.freeze(&s.frozen)
	defer s.frozen.Store(0)
	for _, c := range all {
		for _, rule := range c.rules.All() {
			if err := s.expireLocked(ctx, c, &rule, s.hidingTime()); err != nil {
				return false, err
			}
		}
	}
	return true, set()
}

// freezeTries bounds how often freeze looks at a clock that goes on.
const freezeTries = 100

// freeze has time stand still for those who look at it: at the present, so that nobody who does not see it has a later now.
func (s *Store) freeze(at *atomic.Int64) {
	for range freezeTries {
		now := s.hidingTime()
		if at.Store(now); s.hidingTime() == now {
			return
		}
	}
}
