package due

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ebbdb/ebb/internal/kv"
	"github.com/ebbdb/ebb/internal/storage/expiryorder"
	"github.com/ebbdb/ebb/internal/storage/layout"
	"github.com/ebbdb/ebb/internal/storage/walk"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Front remembers which entries of a rule were dead when somebody counted what is due. They stay in the index until they are
// vacuumed, before all that live, so the next count begins behind them. The zero Front knows of none. What has been added
// before it since is not seen: who counts begins with a new one now and then.
type Front struct {
	behind [][]byte // by span: the last of the dead; nil where there are none
}

// Standing is how far a rule is behind.
type Standing struct {
	// Oldest is the earliest deadline met of a stored document, policy.Never if none was met.
	Oldest int64
	// Due is how many entries were met that are due.
	Due int64
	// Keys is how many keys were read, the dead among them.
	Keys int64
	// All is false when there is more: a bound was reached.
	All bool
}

// Standing says how far the rule is behind at now. It reads at most so many keys, and of a time series one for each meta value more,
// and counts at most limit entries; f, which it
// brings up to date, tells the next one where to go on.
func (r *Source) Standing(rule *policy.Rule, now int64, f *Front, keys, limit int64) (s Standing, err error) {
	s = Standing{Oldest: policy.Never, All: true}
	dead, err := r.State.Tombstones()
	if err != nil {
		return s, err
	}
	if dead != nil && r.isEmptied(rule, dead) {
		dead = nil // no entry here is one of theirs
	}
	spans := r.spans(rule, dueAt(now))
	if len(f.behind) != len(spans) {
		f.behind = make([][]byte, len(spans))
	}
	for i := range spans {
		switch {
		case spans[i].series:
			err = r.seriesStanding(spans[i], &s, keys, limit)
		case spans[i].coarse > 0:
			err = r.coarseStanding(spans[i], &s, keys, limit)
		default:
			err = r.spanStanding(spans[i], dead, &f.behind[i], &s, keys, limit)
		}
		if err != nil || !s.All {
			return s, err
		}
	}
	return s, nil
}

func (s *Standing) meet(deadline int64) {
	s.Oldest = min(s.Oldest, deadline)
	s.Due++
}

func (r *Source) spanStanding(span Span, dead expiryorder.Tombstones, behind *[]byte, s *Standing, keys, limit int64) error {
	after := *behind
	if after != nil && (bytes.Compare(after, span.low) < 0 || bytes.Compare(after, span.high) >= 0) {
		after = nil // it is another index's
	}
	var w walk.Keys
	if err := w.Open(r.Ctx, r.Snapshot, kv.IterOptions{Lower: span.low, Upper: span.high}, span.backward, after); err != nil {
		return err
	}
	defer w.Close()
	var passed []byte
	living := false
	for w.Next() {
		if s.Keys == keys || s.Due == limit {
			s.All = false
			break
		}
		s.Keys++
		counts, err := r.counts(&span, dead, &w)
		if err != nil {
			return err
		}
		if !counts {
			if !living {
				passed = append(passed[:0], w.Key()...)
			}
			continue
		}
		living = true
		if date, ok := span.date(w.Key()); ok {
			s.meet(span.after.After(date))
		}
	}
	if passed != nil {
		*behind = slices.Clone(passed)
	} else {
		*behind = after
	}
	return w.Err()
}

// counts says whether the entry that w stands at is of a document that expires by it.
func (r *Source) counts(span *Span, dead expiryorder.Tombstones, w *walk.Keys) (bool, error) {
	if dead == nil && span.confirm == nil {
		return true, nil
	}
	value, err := w.Value()
	if err != nil {
		return false, fmt.Errorf("storage: what is due in %s: %w", r.Collection.NS, err)
	}
	id, err := span.id(w.Key(), value)
	if err != nil || dead.Cover(id) {
		return false, err
	}
	return span.confirms(id, w.Key())
}

// seriesStanding finds the earliest of each meta value first: they come in the order of those.
func (r *Source) seriesStanding(span Span, s *Standing, keys, limit int64) error {
	if err := r.firstDates(span, func(date int64) { s.Oldest = min(s.Oldest, span.after.After(date)) }); err != nil {
		return err
	}
	all, err := r.walkSeries(span, nil, func(_ layout.RecordID, key []byte) step {
		if s.Keys == keys || s.Due == limit {
			return enough
		}
		s.Keys++
		s.meet(span.after.After(layout.SeriesTime(key)))
		return onward
	})
	s.All = all
	return err
}
