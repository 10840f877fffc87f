package exec

import "github.com/ebbdb/ebb/internal/planner"

// idHack looks up one document by its _id.
type idHack struct {
	plan  *planner.IDHack
	stats *Stats
	done  bool
}

func (n *idHack) work(r *reading, m *Member) (status, error) {
	if n.done {
		return ended, nil
	}
	n.done = true
	reader, err := r.reader()
	if err != nil {
		return ended, err
	}
	rec, ok, err := reader.GetByID(n.plan.ID)
	if !ok {
		return ended, err
	}
	n.stats.Keys++
	n.stats.Docs++
	r.seen.Keys++
	r.seen.Docs++
	if r.details != nil {
		r.details.Position = -1
	}
	m.Record = rec
	return advanced, nil
}

func (*idHack) park()        {}
func (*idHack) close() error { return nil }
