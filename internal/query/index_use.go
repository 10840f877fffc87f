package query

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/catalog"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage/meaning"
)

// IndexUse is how often plans have used an index, and since when that is counted (milliseconds since the epoch).
type IndexUse struct {
	Ops   int64
	Since int64
}

// indexUses counts by index number.
type indexUses struct {
	started int64
	byID    sync.Map // uint32 → *indexCounter
}

type indexCounter struct {
	ops   atomic.Int64
	since int64
}

// add counts the indexes that a plan walks.
func (u *indexUses) add(p *planner.Plan) {
	var counted []uint32 // an index that several leaves walk is used once
	for n := range planner.Leaves(p.Root) {
		if x := planner.IndexOf(n); x != nil && !slices.Contains(counted, x.ID) {
			u.use(x.ID)
			counted = append(counted, x.ID)
		}
	}
}

func (u *indexUses) use(id uint32) {
	c, ok := u.byID.Load(id)
	if !ok {
		c, _ = u.byID.LoadOrStore(id, &indexCounter{since: u.started})
	}
	c.(*indexCounter).ops.Add(1)
}

// IndexUse is the use of the index with the number id.
func (e *Engine) IndexUse(id uint32) IndexUse {
	c, ok := e.uses.byID.Load(id)
	if !ok {
		return IndexUse{Since: e.uses.started}
	}
	return IndexUse{c.(*indexCounter).ops.Load(), c.(*indexCounter).since}
}

// Forget forgets what is known of a collection that is not to be: the transaction that has made it was rolled back.
func (e *Engine) Forget(coll *catalog.Collection) {
	e.Plans.Forget(coll.ID)
	for _, d := range coll.Indexes {
		e.uses.byID.Delete(d.ID)
	}
}

// NoteDDL is told of each change of the catalogue: plans made before are forgotten, and an index that is new or changed is
// counted from then on.
func (e *Engine) NoteDDL(ev meaning.Event) {
	if ev.Kind == meaning.CollectionDropped {
		e.Plans.Forget(ev.Collection)
	} else {
		e.Plans.Clear(ev.Collection)
	}
	switch ev.Kind {
	case meaning.IndexCreated, meaning.IndexModified:
		e.uses.byID.Store(ev.Index.ID, &indexCounter{since: e.Store.Now()})
	case meaning.IndexDropped:
		e.uses.byID.Delete(ev.Index.ID)
	}
}
