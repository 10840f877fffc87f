package exec

import (
	"github.com/ebbdb/ebb/internal/bson"
	"github.com/ebbdb/ebb/internal/planner"
	"github.com/ebbdb/ebb/internal/storage"
)

// sortNode sorts what its child gives.
type sortNode struct {
	plan  *planner.Sort
	stats *Stats
	in    working
	op    *Op
	sort  *sortStage
	done  bool
	keys  bool // index keys go through the sort, too
}

func (o opener) sort(n *planner.Sort, stats *Stats, w want) *sortNode {
	op := o.r.op
	s := newSortStage(op, patternOrder{n.Pattern, op.collator(), op.Interrupted}, n.Limit, empty{})
	return &sortNode{plan: n, stats: stats, op: op, sort: s, in: o.child(n.Child, stats, want{indexKey: w.indexKey}), keys: w.indexKey}
}

func (n *sortNode) work(r *reading, m *Member) (status, error) {
	if n.done {
		return n.give(r, m)
	}
	s, err := n.in.work(r, m)
	switch {
	case err != nil:
		return ended, err
	case s == ended:
		n.done = true
		return needTime, n.sort.finish()
	case s == needTime:
		return needTime, nil
	}
	n.stats.Held += int64(len(m.Doc))
	if n.plan.IDs {
		n.op.Meta.Set(recordIDMeta, bson.Binary(0, m.ID))
	}
	if n.keys && m.IndexKey != nil {
		n.op.Meta.Set(indexKeyMeta, m.IndexKey.Value())
	}
	if err = n.sort.add(r.ctx, m.Doc); n.plan.IDs || n.keys {
		n.op.Meta.Clear()
	}
	n.stats.Disk = !n.sort.runs.none()
	return needTime, err
}

func (n *sortNode) give(r *reading, m *Member) (status, error) {
	doc, err := n.sort.Next(r.ctx)
	if doc == nil || err != nil {
		return ended, err
	}
	m.Record = storage.Record{Doc: doc}
	if n.plan.IDs {
		_, id := n.op.Meta.Get(recordIDMeta).Binary()
		m.ID = storage.RecordID(id)
	}
	if m.IndexKey = nil; n.keys {
		if v := n.op.Meta.Get(indexKeyMeta); v.Type == bson.TypeObject {
			m.IndexKey = v.Doc()
		}
	}
	if n.plan.IDs || n.keys {
		n.op.Meta.Clear()
	}
	return advanced, nil
}

func (n *sortNode) park() { n.in.park() }

func (n *sortNode) close() error {
	_ = n.sort.Close() // it reads from nothing
	return n.in.close()
}
