package query

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/mongoerr"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// chooseTail plans a find that goes on behind its end: always by walking the records, whatever index it names.
func (p *prepared) chooseTail(c planner.Collection) (err error) {
	if p.coll.IsTimeSeries() {
		return mongoerr.New(mongoerr.InvalidPipelineOperator, "tailable cursors are not supported on the time-series collection %s", p.NS)
	}
	if !p.coll.Options.Capped {
		q := p.query()
		q.Told = told(p.NS, p.order, p.Projection)
		return q.Refused(mongoerr.BadValue, "tailable cursor requested on non capped collection")
	}
	q := p.query()
	if !isNatural(q.Hint) {
		q.Hint = bson.Build().Int32("$natural", 1).Doc().Value()
	}
	q.Counts = false
	plan, err := planner.Choose(c, q)
	if err != nil {
		return err
	}
	if _, ok := plan.Root.(*planner.CollScan); !ok {
		plan.Root = &planner.CollScan{Filter: plan.Filter}
	}
	p.choice = only(plan)
	return nil
}

func isNatural(hint bson.Value) bool {
	return hint.Type == bson.TypeObject && hint.Doc().FirstKey() == "$natural"
}

// tail is what a find on a capped collection goes on with behind its end.
type tail struct {
	store      *storage.Store
	collection uint32
	tailing    func() bool
}

// Tailing implements cursor.Tail.
func (r *Running) Tailing() bool {
	return r.tail != nil && r.tail.tailing() || r.changes != nil && r.changes.Tailing()
}

// Inserted implements cursor.Tail.
func (r *Running) Inserted() (next <-chan struct{}, ok bool) {
	if r.changes != nil {
		return r.changes.Inserted(), true
	}
	if r.tail == nil {
		return nil, false
	}
	return r.tail.store.Inserted(r.tail.collection)
}
