package query

import (
	"context"
	"strings"

	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/exec"
	"github.com/ebbdb/ebb/internal/plancache"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/sortpattern"
)

// open opens the plan of c: the only one, the one remembered for the shape as long as it does not take ten times the works
// that it took when it won, or the winner of a race.
func (c *choice) open(ctx context.Context, e *Engine, call *Call, o exec.Opening) (records *exec.Records, err error) {
	if len(c.plans) == 1 {
		records = o.Open(c.plan)
	} else if records, err = c.contest(ctx, e, call, o); err != nil {
		return nil, err
	}
	e.chose(call, c.plan)
	call.execution.plan, call.execution.stats, call.execution.express = c.plan, records.Stats(), c.plan.Express
	return records, nil
}

func (c *choice) contest(ctx context.Context, e *Engine, call *Call, o exec.Opening) (*exec.Records, error) {
	cache := e.Plans.Of(c.reader.Catalog().ID)
	var key plancache.Key
	if c.remembers() {
		key = c.key()
		if entry := cache.Get(key, c.reader.Catalog()); entry != nil && entry.Active {
			records, err := c.remembered(ctx, entry, o)
			if records != nil || err != nil {
				return records, err
			}
			cache.Deactivate(entry)
		}
	}
	if err := c.race(ctx, o); err != nil {
		return nil, err
	}
	if c.remembers() {
		cache.Put(key, c.reader.Catalog(), c.won(), call.Now)
	}
	return c.racers[c.winner].Records(), nil
}

// remembers says whether the outcome of a race is kept.
func (c *choice) remembers() bool { return c.shape != nil && !c.explains }

// key is what the winner is remembered by: the shape, and the plans that the constants leave.
func (c *choice) key() plancache.Key {
	var usable strings.Builder
	for _, p := range c.plans {
		usable.WriteString(p.Signature())
		usable.WriteByte(0)
	}
	return plancache.KeyOf(c.command(), c.shape(), usable.String())
}

// remembered tries the plan that has won for the shape before; nil when there is none any more or it takes too long.
func (c *choice) remembered(ctx context.Context, entry *plancache.Entry, o exec.Opening) (*exec.Records, error) {
	for _, p := range c.plans {
		if p.Signature() != entry.Solution {
			continue
		}
		records, ok, err := o.Try(ctx, p, entry.MaxWorks())
		if ok {
			c.plan = p
		}
		return records, err
	}
	return nil, nil
}

func (c *choice) race(ctx context.Context, o exec.Opening) (err error) {
	if o.Documents, err = c.reader.Stored(); err != nil {
		return err
	}
	if c.racers, c.winner, err = o.Race(ctx, c.plans); err != nil {
		return err
	}
	c.plan = c.plans[c.winner]
	return nil
}

// won is the outcome of the race as it is remembered.
func (c *choice) won() plancache.Won {
	w := plancache.Won{Solution: c.plan.Signature(), Works: c.racers[c.winner].Stats.Works, FilterSet: c.filtered}
	w.Query = c.description()
	b := bson.Build()
	planSteps(c.plan.Root, nil).fields(b, false)
	w.Plan = b.Doc()
	for _, r := range c.ranked() {
		b := bson.Build()
		planSteps(r.Plan.Root, r.Stats).fields(b, true)
		w.Stats, w.Scores = append(w.Stats, b.Doc()), append(w.Scores, r.Score)
	}
	return w
}

// ranked are the racers, the winner first.
func (c *choice) ranked() (all []exec.Racer) {
	for i, r := range c.racers {
		if i == c.winner {
			all = append([]exec.Racer{r}, all...)
		} else {
			all = append(all, r)
		}
	}
	return all
}

// describeQuery is a query as people read it in what is remembered of it.
func describeQuery(q planner.Query, order *sortpattern.Pattern, project bson.Doc) bson.Doc {
	b := bson.Build()
	filter, sort := bson.EmptyDoc, bson.EmptyDoc
	if q.Filter != nil && q.Filter.Source != nil {
		filter = q.Filter.Source
	}
	if order != nil {
		sort = order.Source()
	}
	if project == nil {
		project = bson.EmptyDoc
	}
	b.Document("query", filter).Document("sort", sort).Document("projection", project)
	if q.Collation != nil {
		b.Document("collation", q.Collation.Doc())
	}
	return b.Doc()
}
