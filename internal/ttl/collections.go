package ttl

import (
	"context"
	"fmt"

	"github.com/ebbdb/ebb/internal/namespace"
	"github.com/ebbdb/ebb/internal/storage"
	"github.com/ebbdb/ebb/internal/storage/due"
	"github.com/ebbdb/ebb/internal/ttl/policy"
)

// Collection is how reclaim stands in one collection, all of its rules together. It costs less to know than a Status.
type Collection struct {
	NS namespace.NS
	// Lag is for how many milliseconds the oldest document has been stored past its deadline.
	Lag int64
	// Backlog is how many index entries were met that are due and not deleted yet; there are more where More says so. A document that
	// is due by two rules has two.
	Backlog int64
	More    bool
	// Next is the earliest deadline that is still to come, in milliseconds since the epoch; policy.Never when there is none.
	Next int64
	// Deleted is how many documents have been deleted because they had expired, since the collection was made; Bytes is how large those
	// were that have been since the server started.
	Deleted, Bytes int64
	// Paused says that nothing is deleted of it (collMod ttlPaused).
	Paused bool
}

// What a look at all collections reads: so many keys, and of each rule a few more when those are used up.
const (
	maxCollectionsKeys = 50_000
	minRuleKeys        = 100
)

// Collections says how reclaim stands in each collection that has a TTL, in the order of the catalogue, of the first so many. left is
// how many others there are.
func (m *Monitor) Collections(ctx context.Context, most int) (all []Collection, left int, err error) {
	if m.store == nil {
		return nil, 0, nil
	}
	keys := int64(0)
	err = m.eachStanding(ctx, func(r *storage.Reader, now int64, front func(*policy.Rule) *due.Front) error {
		if len(all) == most {
			left++
			return ctx.Err()
		}
		c, err := m.collection(r, now, front, &keys)
		if err != nil {
			return fmt.Errorf("ttl: figures of %s: %w", r.Catalog().NS, err)
		}
		all = append(all, c)
		return ctx.Err()
	})
	return all, left, err
}

func (m *Monitor) collection(r *storage.Reader, now int64, front func(*policy.Rule) *due.Front, keys *int64) (c Collection, err error) {
	c = Collection{NS: r.Catalog().NS, Next: policy.Never, Paused: r.Catalog().Options.TTLPaused}
	var sum standing
	rules := r.Rules().All()
	for i := range rules {
		if err := sum.add(r, &rules[i], now, front(&rules[i]), max(minRuleKeys, maxCollectionsKeys-*keys-sum.keys)); err != nil {
			return c, err
		}
		next, _, err := r.Dates().Upcoming(&rules[i], now)
		if err != nil {
			return c, err
		}
		c.Next = min(c.Next, next)
	}
	*keys += sum.keys
	c.Lag, c.Backlog, c.More = sum.lag, sum.backlog, sum.more
	if c.Deleted, err = r.Expired(); err != nil {
		return c, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Bytes = m.mu.reclaimed[r.Catalog().ID]
	return c, nil
}
