package storage

import (
	"context"
	"slices"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// StopHiding calls set, after which the server's ttlHideExpired hides nothing. What only that hides is deleted before: it does not
// come back. From the last deletion on until set has returned nobody writes to collections with a TTL, and time stands still
// for what readers can see.
func (s *Store) StopHiding(ctx context.Context, how OnHidden, set func() error) (done Loosened, err error) {
	if how.Keep {
		for _, c := range s.withTTL() {
			if err := s.renewGraces(ctx, c); err != nil {
				return done, err
			}
		}
	}
	if done, err = s.expireAmongWriters(ctx, how); err != nil { // most of it
		return done, err
	}
	for {
		done.Kept = 0
		again, err := s.stopHiding(ctx, how, set, &done)
		if !again || err != nil {
			return done, err
		}
	}
}

// renewGraces gives the rules of a collection a grace that hide because all do: what they hid would be deleted as soon as it is seen.
func (s *Store) renewGraces(ctx context.Context, c *collection) error {
	if len(ttlchange.HiddenByAll(c.rules)) == 0 {
		return nil
	}
	found, release, err := s.lockToChange(ctx, c.NS)
	if err != nil {
		return err
	}
	defer release()
	if found[0] == nil {
		return nil
	}
	defer s.options.OnDeadline(c.ID, s.Now()) // who deletes looks when the grace ends
	return s.change(ctx, func(ch *change) error {
		ch.renew = func(_, rule *policy.Rule) bool { return rule.Hides(true) && !rule.Hides(false) }
		return ch.put(found[0].Collection)
	})
}

func (s *Store) expireAmongWriters(ctx context.Context, how OnHidden) (done Loosened, err error) {
	for _, c := range s.withTTL() {
		if how.Keep || s.held(c) != "" && !how.Force {
			continue
		}
		for _, rule := range ttlchange.HiddenByAll(c.rules) {
			n, err := s.deleteDue(ctx, c, rule, s.expiryClock.Time(), besideWriters)
			if done.Deleted += n; err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				return done, err
			}
		}
	}
	return done, nil
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

// stopHiding has to be called again when another collection has got a TTL meanwhile.
func (s *Store) stopHiding(ctx context.Context, how OnHidden, set func() error, done *Loosened) (again bool, err error) {
	all := s.withTTL()
	release, err := lockAll(ctx, all)
	if err != nil {
		return false, err
	}
	defer release()
	if err := s.ddl.lock.Acquire(ctx, true); err != nil {
		return false, err
	}
	defer s.ddl.lock.Release(true)
	if !slices.Equal(all, s.withTTL()) {
		return true, nil
	}
	defer s.expiryClock.FreezeAll()()
	for _, c := range all {
		l := &loosening{store: s, how: how, c: c, after: c.rules, rules: ttlchange.HiddenByAll(c.rules)}
		if err := l.stopHiding(ctx); err != nil {
			return false, err
		}
		done.Deleted += l.done.Deleted
		done.Kept += l.done.Kept
	}
	return false, set()
}

// stopHiding deletes, refuses or counts what the collection hides because all rules do.
func (l *loosening) stopHiding(ctx context.Context) error {
	switch {
	case len(l.rules) == 0:
		return nil
	case l.how.Keep:
		v, err := l.store.View(ctx)
		if err != nil {
			return err
		}
		defer v.Close()
		h, err := v.read(l.c).beforeChange().Hidden(l.rules, l.after, false)
		l.done.Kept = h.Shown
		return err
	case !l.deletes():
		return l.refuse(ctx)
	}
	defer l.tell()
	return l.expire(ctx)
}
