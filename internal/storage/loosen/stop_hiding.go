package loosen

import (
	"context"
	"math"

	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/catalogchange"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/storage/ttlchange"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// StopHiding calls set, after which the server's ttlHideExpired hides nothing. What only that hides is deleted before: it does not
// come back. From the last deletion on until set has returned nobody writes to collections with a TTL, and time stands still
// for what readers can see. Where ctx has a patience that ends before, set is not called, and what is hidden stays so.
func (l *Loosener) StopHiding(ctx context.Context, how ttlchange.OnHidden, set func() error) (ttlchange.Loosened, error) {
	return storage.Apart(ctx, l.store, func(ctx context.Context, done *ttlchange.Loosened) (err error) {
		if how.Keep {
			for _, c := range l.store.WithTTL() {
				if err := l.renewGraces(ctx, c); err != nil {
					return err
				}
			}
		}
		if *done, err = l.expireAmongWriters(ctx, how); err != nil { // most of it
			return err
		}
		return l.stopHiding(ctx, how, set, done)
	})
}

// renewGraces gives the rules of a collection a grace that hide because all do: what they hid would be deleted as soon as it is seen.
func (l *Loosener) renewGraces(ctx context.Context, c storage.Collection) error {
	if len(ttlchange.HiddenByAll(c.Rules())) == 0 {
		return nil
	}
	now, release, err := l.store.LockToChange(ctx, c.NS)
	if mongoerr.Is(err, mongoerr.NamespaceNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	defer l.store.Options().OnDeadline(c.ID, l.store.Now()) // who deletes looks when the grace ends
	return l.store.Change(ctx, func(ch *catalogchange.Change) error {
		ch.Renew = func(_, rule *policy.Rule) bool { return rule.Hides(true) && !rule.Hides(false) }
		return ch.Put(now.Collection)
	})
}

func (l *Loosener) expireAmongWriters(ctx context.Context, how ttlchange.OnHidden) (done ttlchange.Loosened, err error) {
	for _, c := range l.store.WithTTL() {
		if how.Keep || c.Held() != "" && !how.Force {
			continue
		}
		for _, rule := range ttlchange.HiddenByAll(c.Rules()) {
			n, err := l.sweeper.DeleteDue(ctx, c, rule, l.store.ExpiryTime(), sweeper.BesideWriters)
			if done.Deleted += n; err != nil && !mongoerr.Is(err, mongoerr.NamespaceNotFound) {
				return done, err
			}
		}
	}
	return done, nil
}

// stopHiding is StopHiding for what is left.
func (l *Loosener) stopHiding(ctx context.Context, how ttlchange.OnHidden, set func() error, done *ttlchange.Loosened) error {
	all, goOn, err := l.store.StandStill(ctx)
	if err != nil {
		return err
	}
	defer goOn()
	for _, c := range all {
		ch := l.Begin(how)
		ch.c, ch.after, ch.rules = c, c.Rules(), ttlchange.HiddenByAll(c.Rules())
		if err := ch.stopHiding(ctx); err != nil {
			return err
		}
		done.Deleted += ch.done.Deleted
		done.Kept += ch.done.Kept
	}
	if ctx.Err() != nil { // whose set it is may be there no more
		return context.Cause(ctx)
	}
	return set()
}

// stopHiding deletes, refuses or counts what the collection hides because all rules do.
func (l *Change) stopHiding(ctx context.Context) error {
	switch {
	case len(l.rules) == 0:
		return nil
	case l.how.Keep:
		v, err := l.store.View(ctx)
		if err != nil {
			return err
		}
		defer v.Close()
		h, err := l.c.Read(v).BeforeChange().Hidden(l.rules, l.after, false)
		l.done.Kept = h.Shown
		return err
	case !l.Deletes():
		return l.refuse(ctx, math.MinInt64)
	}
	defer l.tell()
	return l.expire(ctx, sweeper.UnderLock, math.MinInt64)
}
