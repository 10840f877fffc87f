package storage

import (
	"slices"

	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// makeWay deletes what is hidden, while nobody writes, so that it is in no index's way; of what is spared, what is in the way.
func (b *Build) makeWay() error {
	if b.how.Keep {
		return nil
	}
	now, spared := b.store.expiryClock.Time(), false
	all := b.store.options.HideExpired()
	for i := range b.collection.rules.All() {
		rule := &b.collection.rules.All()[i]
		switch {
		case !rule.Hides(all):
		case b.store.spares(b.collection, rule):
			due, err := b.isDue(rule, now)
			if err != nil {
				return err
			}
			spared = spared || due
		default:
			if _, err := b.store.deleteDue(b.ctx, b.collection, rule, now, underLock); err != nil {
				return err
			}
		}
	}
	if !spared {
		return nil
	}
	trial := b.store.newBuild(b.ctx, b.collection, b.Definitions)
	defer trial.close()
	ids, err := trial.work.HiddenInTheWay()
	if err == nil && len(ids) > 0 {
		_, err = b.removeHidden(b.collection, ids)
	}
	return err
}

func (b *Build) isDue(rule *policy.Rule, now int64) (bool, error) {
	v, r, err := b.view()
	if err != nil {
		return false, err
	}
	defer v.Close()
	n, err := r.Dates().Count(rule, now, 1)
	return n > 0, err
}

// clearTheWay deletes beside writers what is hidden, so that it need not be looked at. What is spared is deleted at the end, where
// it is in the way. What a TTL hides that gets longer with the build counts as deleted for that, as it would be then.
func (b *Build) clearTheWay(p indexPlan, l *loosening) error {
	c := b.store.current.Load().collections[b.Collection]
	if err := b.alive(); err != nil || c == nil || b.how.Keep {
		return err
	}
	next, _ := p.Retime(c.Collection)
	l.toBe(c, next)
	now := b.store.expiryClock.Time()
	for _, rule := range b.store.unspared(c) {
		n, err := b.store.deleteDue(b.ctx, c, rule, now, besideWriters)
		if err != nil {
			return err
		}
		if slices.Contains(l.rules, rule) {
			l.done.Deleted += n
		}
	}
	return nil
}
