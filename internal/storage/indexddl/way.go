package indexddl

import (
	"slices"

	"github.com/ebbdb/ebb/internal/storage/indexplan"
	"github.com/ebbdb/ebb/internal/storage/loosen"
	"github.com/ebbdb/ebb/internal/storage/sweeper"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// makeWay deletes what is hidden, while nobody writes, so that it is in no index's way; of what is spared, what is in the way. A replay spares
// all: whoever made the index then may have held expiry, and a later entry may tell that what was hidden is kept.
func (b *builder) makeWay() error {
	if b.how.Keep {
		return nil
	}
	now := b.ddl.store.ExpiryTime()
	unspared, spared := b.ddl.Hiding(b.collection)
	if b.how.Replayed {
		unspared, spared = nil, slices.Concat(unspared, spared)
	}
	for _, rule := range unspared {
		if _, err := b.ddl.Sweeper.DeleteDue(b.ctx, b.collection, rule, now, sweeper.UnderLock); err != nil {
			return err
		}
	}
	due, err := b.anyDue(spared, now)
	if !due || err != nil {
		return err
	}
	trial := b.ddl.newBuilder(b.ctx, b.collection, b.Definitions)
	defer trial.close()
	ids, err := trial.work.HiddenInTheWay()
	if err == nil && len(ids) > 0 {
		_, err = b.removeHidden(b.collection, ids)
	}
	return err
}

// anyDue says whether anything has expired by one of the rules.
func (b *builder) anyDue(rules []*policy.Rule, now int64) (bool, error) {
	if len(rules) == 0 {
		return false, nil
	}
	v, r, err := b.view()
	if err != nil {
		return false, err
	}
	defer v.Close()
	for _, rule := range rules {
		if n, err := r.Dates().Count(rule, now, 1); n > 0 || err != nil {
			return n > 0, err
		}
	}
	return false, nil
}

// clearTheWay deletes beside writers what is hidden, so that it need not be looked at. What is spared is deleted at the end, where
// it is in the way. What a TTL hides that gets longer with the build counts as deleted for that, as it would be then.
func (b *builder) clearTheWay(p *indexplan.Plan, l *loosen.Change) error {
	c, ok := b.ddl.store.CollectionByID(b.Collection)
	if err := b.alive(); err != nil || !ok || b.how.Keep || b.how.Replayed {
		return err
	}
	next, _ := p.Retime(c.Collection)
	l.ToBe(c, next)
	return l.ClearBeside(b.ctx)
}

// expireAhead deletes most of what commit would delete because TTLs get longer with it.
func (b *builder) expireAhead(p *indexplan.Plan, l *loosen.Change) error {
	c, ok := b.ddl.store.CollectionByID(b.Collection)
	if err := b.alive(); err != nil || !ok {
		return err
	}
	next, _ := p.Retime(c.Collection)
	l.ToBe(c, next)
	return l.Beside(b.ctx)
}
