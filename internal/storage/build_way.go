package storage

import (
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// makeWay deletes what is hidden, while nobody writes, so that it is in no index's way; of what is spared, what is in the way.
func (b *Build) makeWay() error {
	if b.how.Keep {
		return nil
	}
	now, spared := b.store.hidingTime(), false
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
	ids, err := b.hiddenInTheWay()
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

// hiddenInTheWay are the hidden records without which the build would not fail; none when it fails anyway. It builds on trial.
func (b *Build) hiddenInTheWay() (ids []RecordID, err error) {
	trial := b.store.newBuild(b.ctx, b.collection, b.Definitions)
	defer trial.close()
	v, r, err := b.view()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	c, err := r.Unhidden().Scan(RecordScan{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for c.Next() {
		rec := c.Record()
		if trial.try(rec) == nil {
			continue
		}
		if !r.hidden(rec) || len(ids) == maxInTheWay {
			return nil, nil // the build says what is wrong with it
		}
		ids = append(ids, rec.ID.Clone())
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	for _, t := range trial.tables {
		more, fails, err := t.HiddenHolders(r.seen, maxInTheWay)
		if err != nil || fails || len(ids)+len(more) > maxInTheWay {
			return nil, err
		}
		ids = append(ids, more...)
	}
	return ids, nil
}

// maxInTheWay bounds the records that are deleted because an index is built for which they are in the way.
const maxInTheWay = 1 << 20

// seen says whether a record is stored, and whether it is hidden.
func (r *Reader) seen(id RecordID) (there, hidden bool, err error) {
	rec, there, err := r.stored(id)
	return there, there && err == nil && r.hidden(rec), err
}
